"""Requests of a run to the answers of its models: which model, within which budget, told as events, answered once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from koi_lang.errors import PermissionDenied, ProviderError
from koi_lang.llm.accounting import worst_case
from koi_lang.llm.messages import Adapter, Message, Request, message_of
from koi_lang.runtime.arriving import NO_ANSWER, Arriving, Asked, Before
from koi_lang.runtime.connections import Connect, Connections
from koi_lang.runtime.failing import data_of, from_data
from koi_lang.runtime.limits import UNPAID, Spending
from koi_lang.runtime.outside import is_over
from koi_lang.runtime.paths import Path, Place, current_place, passing
from koi_lang.runtime.told import Told

if TYPE_CHECKING:
    from koi_lang.runtime.agents.agent import Agent
    from koi_lang.runtime.engine import Run
    from koi_lang.runtime.hooking import Hooked

OnText = Callable[[str, Path, str], None]
Usual = Mapping[str, Callable[[], Mapping[str, Any]]]


class Models:
    """The models of a run; agents with the same settings share one.

    Args:
        connect: makes a model from the settings of an `llm` block.
        usual: the settings for a purpose that an agent says nothing about.
        verbatim: whether events carry all that a model is told.

    Attributes:
        on_text: is told every piece of an answer as it arrives, with its agent and path.
    """

    def __init__(self, run: Run, connect: Connect, usual: Usual, *, verbatim: bool) -> None:
        self.verbatim = verbatim
        self._run, self._usual = run, usual
        self._connections = Connections(connect)
        self._unpriced: set[str] = set()
        self._told = Told(run.redact)
        self.on_text: OnText | None = None

    def settings(self, agent: Agent, use: str = "default") -> dict[str, Any]:
        """What counts for the model an agent uses for a purpose, as in an `llm` block."""
        own = agent.about.llm
        declared = own.get(use) or self._usual.get(use) or own.get("default")
        return dict(declared()) if declared is not None else {}

    def options(self, agent: Agent, use: str = "default") -> dict[str, Any]:
        """The same, with the usual settings for what the agent leaves open."""
        usual = self._usual.get(use)
        return {**(usual() if usual is not None else {}), **self.settings(agent, use)}

    def of(self, agent: Agent, use: str = "default") -> Adapter:
        """The model an agent uses for a purpose: `default`, `small`, `judge`."""
        return self._connections.of(self.settings(agent, use))

    async def aclose(self) -> None:
        """Close all of them."""
        await self._connections.aclose()

    async def forget(self) -> None:
        """Have models be connected anew, with the settings that count then; answers on their way arrive."""
        await self._connections.forget()

    @asynccontextmanager
    async def asked(
        self, agent: Agent, request: Request, spending: Spending | None = None, use: str = "default"
    ) -> AsyncIterator[Arriving]:
        """An answer on its way; at the end of the block it is paid for, whether or not it was read to its end.

        Raises:
            LimitReached: a budget does not allow the request, or its time is up.
            PermissionDenied: a hook denies the request.
            ProviderError: while it is read: the model cannot answer.
        """
        run, spending = self._run, spending or self._run.spending
        async with self._connections.kept(self.of(agent, use)) as model:
            name = request.model or model.model
            self._allow(request, model, name, spending)
            path, place = passing("model"), current_place()
            news = self._told.news(place, request) if run.effects.is_kept else None
            before = None if news is None else self._before(model, place, path, news.fingerprint)
            hooked = None if before is not None else await self._hooked((agent.name, use, name, request), path)
            if hooked is not None and hooked.call.request is not request:
                request, name = hooked.call.request, hooked.call.request.model or model.model
                self._allow(request, model, name, spending)
            told = {**({} if news is None else news.as_data()), **self._verbatim(request)}
            run.events.emit("model_asked", agent.name, path=path, model=name, **told)
            arriving = Arriving(run, Asked(agent, model, request, path), before, hooked)
            try:
                yield arriving
            except ProviderError as error:
                arriving.tell_failure(error)
                raise
            finally:
                arriving.close(spending)

    async def _hooked(self, asked: tuple[str, str, str, Request], path: Path) -> Hooked | None:
        """What hooks make of a request; one that is denied has failed for good. Raises PermissionDenied."""
        hooks = self._run.hooks
        if hooks is None or not hooks.around_models:
            return None
        try:
            return await hooks.before_request(*asked)
        except PermissionDenied as denied:
            if self._run.detailed:
                self._run.events.emit("model_failed", asked[0], path=path, **data_of(denied))
            raise

    def _allow(self, request: Request, model: Adapter, name: str, spending: Spending) -> None:
        if not spending.limits_requests():
            return
        tokens, usd = worst_case(request, name)
        spending.allow(tokens, usd)
        if usd is None and spending.limits_usd() and model.provider not in UNPAID and name not in self._unpriced:
            self._unpriced.add(name)
            self._run.host.log(f"the price of `{name}` is not known, so no budget in usd bounds what it takes")

    def _before(self, model: Adapter, place: Place | None, path: Path, fingerprint: str) -> Before | None:
        """What is known of the answer beforehand; None when the model is to be asked."""
        past = self._run.effects.past
        if past is None or place is None or place.changed:
            return None
        asked = past.find("model_asked", path)
        if past.mode != "replay" and asked is not None and asked.data.get("request") != fingerprint:
            if past.mode == "resume":
                self._run.effects.diverge("a model is asked something else than before", path)
            place.mark_changed()
            return None
        answer, failed = past.answer(path), past.find("model_failed", path)
        if is_over(place) and failed is None and (answer is None or not answer.is_whole):
            return Before(answer, None, unended=True)
        if answer is not None and not answer.is_whole and model.provider in UNPAID and past.mode != "replay":
            return None  # a model of this process answers the same again
        if answer is None and failed is None:
            if past.mode == "branch":
                place.mark_changed()
            return Before(None, NO_ANSWER) if past.mode == "replay" else None
        if past.mode == "branch" and answer is not None and answer.end is not None and answer.end.data.get("changed"):
            place.mark_changed()
        return Before(answer, None if failed is None else from_data(failed.data))

    def _verbatim(self, request: Request) -> dict[str, Any]:
        """All that a model is told, where that was asked for."""
        if not self.verbatim:
            return {}
        messages = [[message.role, message.text] for message in request.messages]
        return {"system": request.system, "kept": 0, "messages": messages}

    async def complete(
        self, agent: Agent, instruction: str, data: str | Message, spending: Spending | None = None, use: str = "small"
    ) -> str:
        """A plain answer to an instruction about some data, from the agent's model for a use."""
        request = Request(instruction, (message_of(data),))
        async with self.asked(agent, request, spending, use) as arriving:
            return "".join([piece async for piece in arriving.pieces()])
