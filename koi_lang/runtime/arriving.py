"""An answer of a model while it arrives: from pieces, or from what is known of it beforehand, to what it took."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.errors import ProviderError
from koi_lang.llm.accounting import usage_of
from koi_lang.llm.layers import opened
from koi_lang.llm.messages import Adapter, Finished, Request, TextDelta, Usage
from koi_lang.llm.models import cost_usd
from koi_lang.runtime.failing import data_of
from koi_lang.runtime.limits import Spending
from koi_lang.runtime.outside import never
from koi_lang.runtime.paths import Path

if TYPE_CHECKING:
    from koi_lang.runtime.agents.agent import Agent
    from koi_lang.runtime.engine import Run
    from koi_lang.runtime.hooking import Hooked
    from koi_lang.runtime.journal.past import Answer


class CutOff(ProviderError):
    """The run was interrupted while an answer arrived; nothing is wrong with the model."""


class Before:
    """What is known of an answer beforehand.

    Attributes:
        answer: its text; None when there was none.
        failure: what it broke off with.
        unended: whether its call took too long before it could end or break off.
    """

    def __init__(self, answer: Answer | None, failure: BaseException | None, *, unended: bool = False) -> None:
        self.answer, self.failure, self.unended = answer, failure, unended
        if failure is None and answer is not None and not answer.is_whole:
            self.failure = CutOff("the run was interrupted while the answer arrived")


NO_ANSWER = ProviderError("the recording holds no answer to this request")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that an agent makes of a model, and where in the run."""

    agent: Agent
    model: Adapter
    request: Request
    path: Path


class Arriving:
    """One answer on its way.

    Args:
        before: what is known of it beforehand; None when the model is to be asked.
        hooked: what hooks made of the request; None without hooks, and for an answer that is known beforehand.

    Attributes:
        counted: tokens of request and answer together, as the provider counted; 0 until the end, and where it did not.
    """

    def __init__(self, run: Run, asked: Asked, before: Before | None, hooked: Hooked | None) -> None:
        self._run, self._before, self._hooked = run, before, hooked
        self._agent, self._model, self._request, self._path = asked.agent, asked.model, asked.request, asked.path
        self._pieces: list[str] = []
        self._told = self._length = self.counted = 0
        self._end = Finished(None, "cut")

    async def pieces(self) -> AsyncGenerator[str, None]:
        """Its text, piece by piece; what is known of it beforehand in one. Raises ProviderError."""
        if self._before is not None:
            for piece in self._recalled(self._before):
                yield piece
            if self._before.unended:
                await never()
            if self._before.failure is not None:
                raise self._before.failure
            return
        if self._hooked is not None and self._hooked.is_whole:
            yield self._added(await self._after_hooks(self._hooked))
            return
        async with aclosing(self._written()) as written:
            async for text in written:
                yield self._added(text)

    async def _written(self) -> AsyncGenerator[str, None]:
        """What the model writes, piece by piece, each counted."""
        async with opened(self._model, self._request) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    self._length += len(delta.text)
                    yield delta.text
                else:
                    self._end = delta

    async def _after_hooks(self, hooked: Hooked) -> str:
        """The whole text as hooks leave it; it takes what the model wrote, and nothing where a hook wrote it."""
        if hooked.answer is not None:
            self._end = Finished(None, "replaced", replayed=True)
            return hooked.answer
        return await hooked.revise("".join([text async for text in self._written()]))

    def _recalled(self, before: Before) -> Iterator[str]:
        pass_over = getattr(self._model, "pass_over", None)
        if pass_over is not None:
            pass_over(self._request)
        if before.answer is not None:
            self._length += len(before.answer.text)
            yield self._added(before.answer.text)

    def _added(self, text: str) -> str:
        """A piece that now counts as part of the answer."""
        self._pieces.append(text)
        on_text = self._run.models.on_text
        if on_text is not None:
            on_text(self._agent.name, self._path, text)
        return text

    def keep(self) -> None:
        """Tell what has arrived so far: an action of it is about to begin."""
        if self._run.detailed and self._before is None and self._told < len(self._pieces):
            text = "".join(self._pieces[self._told :])
            self._told = len(self._pieces)
            self._run.events.emit("model_wrote", self._agent.name, path=self._path, text=text)

    def tell_failure(self, error: ProviderError) -> None:
        """Tell that the model could not answer, or not to the end."""
        if self._run.detailed and not isinstance(error, CutOff):
            self._run.events.emit("model_failed", self._agent.name, path=self._path, **data_of(error))

    def close(self, spending: Spending) -> None:
        """Count what the answer took, and tell that it has ended."""
        known = self._before.answer.end if self._before is not None and self._before.answer is not None else None
        if known is not None:
            tokens, usd = known.data.get("tokens") or {}, known.data.get("usd")
            taken = int(tokens.get("input", 0)) + int(tokens.get("output", 0))
            self.counted = 0 if known.data.get("estimated") else taken
            spending.spend(taken, usd)
            about = {name: value for name, value in known.data.items() if name not in ("changed", "recalled")}
            self._run.events.emit("model_answered", self._agent.name, path=self._path, **about)
            return
        model = self._end.answered_by or self._request.model or self._model.model
        about = {"model": model, "stop": self._end.stop_reason}
        if self._run.detailed:
            about["text"] = "".join(self._pieces)
        if self._end.replayed:
            self._tell_kept(about)
        elif self._length or self._end.usage:
            self._account(usage_of(self._request, self._length, self._end.usage), spending, about)

    def _account(self, usage: Usage, spending: Spending, about: Mapping[str, Any]) -> None:
        usd, tokens = cost_usd(about["model"], usage), usage.input_tokens + usage.output_tokens
        spending.spend(tokens, usd)
        self.counted = 0 if usage.estimated else tokens
        if usage.estimated:
            about = {**about, "estimated": True}
        counted = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
        self._run.events.emit("model_answered", self._agent.name, path=self._path, tokens=counted, usd=usd, **about)

    def _tell_kept(self, about: Mapping[str, Any]) -> None:
        """An answer that was kept from an earlier request costs nothing; only who wants its text is told of it."""
        if self._run.detailed:
            counted = {"input": 0, "output": 0, "cached": 0}
            about = {**about, "tokens": counted, "usd": 0.0, "replayed": True}
            self._run.events.emit("model_answered", self._agent.name, path=self._path, **about)
