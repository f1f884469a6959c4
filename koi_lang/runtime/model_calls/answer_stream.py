"""An answer of a model while it arrives: from the stream or from the record, with its cost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AnswerTooLongError, ProviderError, RequestError
from koi_lang.events import (
    AnswerDelta,
    AnswerDiscarded,
    EventData,
    ModelAnswered,
    ModelFailed,
    ModelWrote,
    ThoughtDelta,
)
from koi_lang.llm.layers import open_stream
from koi_lang.llm.messages import Adapter, Discarded, Request, StreamEnd, TextDelta, ThinkingDelta, Thoughts, Usage
from koi_lang.llm.models import cost_usd, priced_name
from koi_lang.llm.sdk_model import CUT_SHORT
from koi_lang.llm.token_weight import weight
from koi_lang.llm.usage import usage_of
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.budget.payment import Cost, PaidRequest, Payment, input_in
from koi_lang.runtime.model_calls.frozen_plans import PROVIDER, PlanModel
from koi_lang.runtime.playbook.framing import without_thoughts
from koi_lang.runtime.playbook.written_answer import WrittenAnswer
from koi_lang.runtime.replay.answers import CutOffError, RecordedBefore
from koi_lang.runtime.replay.calls import never
from koi_lang.runtime.replay.error_records import data_of
from koi_lang.runtime.replay.location import Path

if TYPE_CHECKING:
    from koi_lang.runtime.hooks.runner import HookedRequest
    from koi_lang.runtime.journal.entries import JournalEntry
    from koi_lang.runtime.ports import AgentPort, RunPort


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request of an agent to a model, with its place in the run and its payment."""

    agent: AgentPort
    model: Adapter
    request: Request
    path: Path
    payment: Payment

    @property
    def name(self) -> str:
        """Of the model."""
        return self.request.model or self.model.model


class AnswerStream:
    """One answer on its way.

    Args:
        before: what is known of it beforehand; None when the model is to be asked.
        hooked: what hooks made of the request; None without hooks, and for an answer that is known beforehand.

    Attributes:
        request: as it is sent.
        counted: tokens of request and answer together, as the provider counted; 0 until the end, and where it did not.
    """

    def __init__(
        self, run: RunPort, asked: ModelRequest, before: RecordedBefore | None, hooked: HookedRequest | None
    ) -> None:
        self._run = run
        self._before = before
        self._hooked = hooked
        self._agent = asked.agent
        self._model = asked.model
        self._path = asked.path
        self.request = asked.request
        self._payment, self._reserved = asked.payment, asked.payment.reservation
        self._pieces: list[str] = []
        self._told = self.counted = self._attempts = 0
        self._weight = self._thought_weight = 0.0
        self._end = StreamEnd(None, "cut")
        self._usage: Usage | None = None
        # Whether the model was asked and has neither answered to the end nor failed.
        self._is_open = False

    @property
    def thoughts(self) -> Thoughts | None:
        """The thoughts of the model, for its provider; None where they are unknown."""
        return self._end.thoughts

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended because it had reached its limit of tokens."""
        return self.stop_reason in CUT_SHORT

    @property
    def _recorded_end(self) -> JournalEntry | None:
        """The entry of its end in an earlier part of the run; None for an answer that is new, or was cut off."""
        return None if self._before is None or self._before.answer is None else self._before.answer.end

    @property
    def stop_reason(self) -> Any:
        """Why the answer ended, as its provider says it; `ENDLESS` where it was not read any longer."""
        recorded = self._recorded_end
        return self._end.stop_reason if recorded is None else recorded.data.get("stop")

    @property
    def is_frozen(self) -> bool:
        """Whether a frozen plan gives it."""
        recorded = self._recorded_end
        if recorded is not None:
            return str(recorded.data.get("model")).startswith(f"{PROVIDER}/")
        return isinstance(self._model, PlanModel)

    async def pieces(self) -> AsyncGenerator[str, None]:
        """Its text, piece by piece; it ends, or breaks off, when it is its turn to end. Raises ProviderError."""
        failure: ProviderError | None = None
        try:
            async with aclosing(self._texts()) as texts:
                async for text in texts:
                    yield text
        except CutOffError:
            raise
        except ProviderError as error:
            failure = error
            self._settle_failure(error)
        await self._run.recorder.wait_for_slot(path=self._path)
        if failure is not None:
            raise failure

    async def text(self, written: WrittenAnswer | None = None) -> str:
        """The whole of it, without thoughts that it begins with, told while it is written. Raises ProviderError."""
        pieces = []
        async for piece in self.pieces():
            pieces.append(piece)
            if written is not None:
                written.add(piece)
        if written is not None:
            written.end()
        return without_thoughts("".join(pieces))

    async def _texts(self) -> AsyncGenerator[str, None]:
        """The pieces as they come; recorded text as one."""
        if self._before is not None:
            for piece in self._recall(self._before):
                yield piece
            if self._before.unended:
                await never()
            if self._before.failure is not None:
                raise self._before.failure
            return
        if self._hooked is not None and self._hooked.is_whole:
            yield self._add_text(await self._after_hooks(self._hooked))
            return
        async with aclosing(self._write_text()) as written:
            async for text in written:
                yield self._add_text(text)

    async def _write_text(self) -> AsyncGenerator[str, None]:
        """The text of the model, piece by piece, each counted."""
        self._is_open = True
        async with open_stream(self._model, self.request) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    self._weight += weight(delta.text)
                    yield delta.text
                elif isinstance(delta, ThinkingDelta):
                    self._show_thought(delta.text)
                elif isinstance(delta, Discarded):
                    self._is_open = False
                    self._thought_weight = 0.0  # it is counted in what is discarded
                    self._discard(delta)
                    await self._payment.reserve_again()
                    self._is_open = True
                else:
                    self._end = delta
        self._is_open = False
        self._settle()

    def _show_thought(self, text: str) -> None:
        """Show thoughts, which are paid for; hooks that hold the answer back hold these back, too."""
        self._thought_weight += weight(text)
        if self._hooked is None or not self._hooked.is_whole:
            self.emit(ThoughtDelta(text))

    async def _after_hooks(self, hooked: HookedRequest) -> str:
        """The whole text after the hooks; it is paid for unless a hook wrote it."""
        if hooked.answer is not None:
            self._end = StreamEnd(None, "replaced", replayed=True)
            return hooked.answer
        return await hooked.revise("".join([text async for text in self._write_text()]))

    def _recall(self, before: RecordedBefore) -> Iterator[str]:
        pass_over = getattr(self._model, "pass_over", None)
        if pass_over is not None:
            pass_over(self.request)
        if before.answer is not None:
            self._weight += weight(before.answer.text)
            yield self._add_text(before.answer.text)

    def _add_text(self, text: str) -> str:
        """A piece that now counts as part of the answer."""
        self._pieces.append(text)
        self.emit(AnswerDelta(text))
        return text

    def emit(self, data: EventData) -> None:
        """Tell something of this answer."""
        self._run.events.emit(data, self._agent.name, path=self._path)

    def keep(self) -> None:
        """Record the text so far: an action of it is about to begin."""
        if self._run.detailed and self._before is None and self._told < len(self._pieces):
            text = "".join(self._pieces[self._told :])
            self._told = len(self._pieces)
            self.emit(ModelWrote(text))

    def _settle_failure(self, error: ProviderError) -> None:
        """Count the cost of a failed or broken answer, and release its reservation."""
        if self._before is not None:
            return
        discarded = error.discarded if self._is_open and isinstance(error, RequestError) else None
        self._is_open = False
        if discarded is not None and self._weight:
            self._end = StreamEnd(discarded.usage, "cut", discarded.answered_by)
        elif discarded is not None:
            self._discard(discarded)
        self._settle()

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, ProviderError):
                self._fail(error)
        finally:
            self._close()

    def _fail(self, error: ProviderError) -> None:
        """Tell that the model could not answer, or not to the end. Raises LimitReachedError where that is why."""
        limit, reservation = None, self._reserved
        if isinstance(error, AnswerTooLongError) and reservation is not None and reservation.limited_by is not None:
            limit = reservation.limited_by.too_little(reservation.answer_tokens)
        if self._run.detailed and not isinstance(error, CutOffError):
            self.emit(ModelFailed(data_of(limit or error)))
        if limit is not None:
            raise limit from error

    def _settle(self) -> None:
        """Count the cost of the answer, once, and release its reservation."""
        if self._usage is None and not self._end.replayed and (self._weight or self._end.usage):
            self._usage = usage_of(self.request, self._weight + self._thought_weight, self._end.usage)
            self._count(ModelAnswered, self._path, self._end, self._usage)
        self._payment.release()

    def _count(self, event_type: type[PaidRequest], path: Path, end: StreamEnd | Discarded, usage: Usage) -> None:
        """Count the cost of an attempt, and calibrate later estimates by it."""
        name = self._name_of(end)
        if not usage.estimated:
            self._run.ledger.calibration.learn(name, self.request, usage.input_tokens)
        cost = self._cost(end, usage)
        self._payment.count(event_type.type, path, cost.tokens, cost.usd)

    def _close(self) -> None:
        """Count the cost of the answer, and report its end."""
        recorded = self._recorded_end
        if recorded is not None:
            taken = self._payment.count_again(recorded)
            self.counted = 0 if recorded.data.get("estimated") else taken
            if self.counted:
                self._run.ledger.calibration.learn(
                    str(recorded.data.get("model")), self.request, input_in(recorded.data)
                )
            return
        if self._is_open and not self._weight:  # it has read the request, whatever it has thought since
            self._discard(Discarded(usage_of(self.request, self._thought_weight, None)), stop="cut")
        self._settle()
        about: dict[str, Any] = {"stop": self._end.stop_reason}
        if self._run.detailed:
            about["text"] = "".join(self._pieces)
        if self._usage is not None:
            self.counted = 0 if self._usage.estimated else self._usage.input_tokens + self._usage.output_tokens
            self._payment.tell(ModelAnswered, self._path, self._cost(self._end, self._usage), **about)
        elif self._end.replayed and self._run.detailed:  # it costs nothing; only who wants its text is told of it
            tokens = {"input": 0, "output": 0, "cached": 0}
            answered = ModelAnswered(self._name_of(self._end), tokens, 0.0, **about, replayed=True)
            self.emit(answered)

    def _name_of(self, end: StreamEnd | Discarded) -> str:
        return end.answered_by or self.request.model or self._model.model

    def _cost(self, end: StreamEnd | Discarded, usage: Usage) -> Cost:
        name = self._name_of(end)
        priced = name if end.answered_by else priced_name(self._model.provider, name)
        return Cost(name, usage, cost_usd(priced, usage))

    # ------------------------------------------------------------ attempts that nobody is given

    def _discard(self, discarded: Discarded, **about: str) -> None:
        """Count an attempt that came to nothing."""
        path = self._next_attempt()
        self._count(AnswerDiscarded, path, discarded, discarded.usage)
        self._payment.tell(AnswerDiscarded, path, self._cost(discarded, discarded.usage), **about)
        self._attempts += 1

    def _next_attempt(self) -> Path:
        return (*self._path, f"attempt#{self._attempts + 1}")

    def recall_discarded(self) -> None:
        """Count the attempts of an earlier part of the run again; those that are made now follow them.

        One that was under way when the process was killed is counted for the first time.
        """
        recorded = self._run.recorded
        while (known := recorded.recall(AnswerDiscarded.type, self._next_attempt()).entry) is not None:
            self._payment.count_again(known)
            self._attempts += 1
        if self._before is None and self._model.provider not in UNPAID and recorded.was_killed_at(self._path):
            killed = Discarded(usage_of(self.request, 0, None))
            self._payment.count_killed(AnswerDiscarded, self._next_attempt(), self._cost(killed, killed.usage))
            self._attempts += 1
