"""One program for one client: a run that lasts, in which one call after the other is carried out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError
from koi_lang.events import CallEnded, CallStarted, Event, EventData
from koi_lang.outcome import raised_as
from koi_lang.program.error_report import message
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import BudgetAccount, LimitReachedError, in_time
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.playbook.steering import QueuedMessage
from koi_lang.runtime.replay.location import Path as Trail
from koi_lang.runtime.replay.location import current_place
from koi_lang.runtime.replay.ordering import LATE
from koi_lang.runtime.run import Run
from koi_lang.sessions.client_host import ANSWER_S, Client, Message
from koi_lang.sessions.config import ExtensionCommand, OpenRun, PreparedRun, SessionConfig
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_run import HeldRun
from koi_lang.sessions.totals import Statistics

if TYPE_CHECKING:
    from koi_lang.runtime.journal.history import History

# How long something that ends is waited for.
GRACE_S = 5.0
Work = Callable[[Run], Awaitable[Any]]
GoOver = Callable[["Session", "History"], Awaitable[None]]


@dataclass(slots=True, eq=False)
class SessionCall:
    """A call that is under way.

    Attributes:
        number: counts from 1 within the session.
        aborted: whether it is being ended at the wish of the client.
        outcome: what is told of its end.
        scope: in which it is carried out, once it is.
    """

    number: int
    name: str
    aborted: bool = False
    task: asyncio.Task[None] | None = None
    outcome: dict[str, Any] = field(default_factory=lambda: {"ok": False, "aborted": True})
    scope: CancelScope = field(default_factory=CancelScope)

    @property
    def id(self) -> str:
        """How messages name it."""
        return f"call-{self.number}"

    @property
    def path(self) -> Trail:
        """Where its events have happened."""
        return (f"call#{self.number}",)


class Session:
    """The state of one client.

    Args:
        send: takes what the client is told beside responses.
        go_over: brings a session that goes on to where it was.
        answer_s: how long questions to the client are open.

    Attributes:
        call: what is under way.
        last: the handler that was called last, and what it was given.
        named: what the client calls the session.
    """

    def __init__(
        self, served: SessionConfig, send: Callable[[Message], None], go_over: GoOver, *, answer_s: float = ANSWER_S
    ) -> None:
        self.served, self._send, self._go_over = served, send, go_over
        self.client = Client(send, answer_s)
        self.statistics = Statistics()
        self.call: SessionCall | None = None
        self.last: tuple[type[Agent], str, Any] | None = None
        self.named = ""
        self._held: HeldRun | None = None
        self._group: asyncio.TaskGroup | None = None
        # How often events of a type were told of the session itself.
        self._counts: Counter[str] = Counter()
        self._interrupted: SessionCall | None = None
        self._calls = 0

    # ------------------------------------------------------------ the run

    @property
    def is_open(self) -> bool:
        """Whether it has a run."""
        return self._held is not None and self._held.opened is not None

    @property
    def run(self) -> Run:
        """The run. Raises SessionError when it is over."""
        return self._require_opened().run

    @property
    def journal(self) -> Path | None:
        """Where the run is recorded."""
        return self._require_opened().journal

    @property
    def commands(self) -> Mapping[str, ExtensionCommand]:
        """What extensions add to the protocol."""
        return self._require_opened().commands

    def _require_opened(self) -> PreparedRun:
        opened = self._require().opened
        assert opened is not None, "a run that is held"
        return opened

    def _require(self) -> HeldRun:
        if self._held is None or self._held.opened is None:
            raise SessionError(
                "session_over", "the run of this session has ended", help="Begin another with `new_session`."
            )
        return self._held

    async def renew(self, open_run: OpenRun | None = None) -> None:
        """End the run, if there is one, and begin another.

        Args:
            open_run: of a session that goes on; what was done in it is gone over first.

        Raises:
            SessionError: the run cannot be opened, or what was done cannot be gone over.
        """
        assert self._group is not None, "a session that is not open"
        await self.close(GRACE_S)
        self.statistics, self.last, self.named = Statistics(), None, ""
        self._counts.clear()
        opening = partial(self._open, open_run or self.served.open_run)
        self._held = HeldRun(opening, self._go_over_past, self._tell_failure)
        with raised_as(_as_session_over):
            await self._held.begin(self._group)

    @contextmanager
    def _open(self, open_run: OpenRun, consumers: Sequence[Consumer]) -> Iterator[PreparedRun]:
        with open_run(self.client, [self.statistics, self._tell, *consumers]) as opened:
            opened.run.events.subscribe(self._tell, transient=True)
            yield opened

    async def _go_over_past(self, run: Run) -> None:
        """Bring a run that goes on to where the session was."""
        if run.recorded.history is not None:
            self.statistics.usage = run.recorded.history.usage()
            await self._go_over(self, run.recorded.history)

    def _tell_failure(self, error: Exception) -> None:
        self._send({"type": "session_failed", "error": message(error), "report": self.served.explain(error)})

    async def close(self, grace_s: float) -> bool:
        """End the run; gives whether everything in it had ended by itself in time."""
        held = self._held
        if held is None or held.opened is None:
            return True
        if self.call is not None and self.call.task is not None:
            await asyncio.wait([self.call.task], timeout=grace_s)
        in_time = self.call is None
        await self.abort()
        return await held.end(grace_s if in_time else 0) and in_time

    def _tell(self, event: Event) -> None:
        self._send({"type": "event", "event": event.as_data(self.served.detail)})

    # ------------------------------------------------------------ calls

    def require_idle(self) -> None:
        """Raise Refused while a call is under way."""
        if self.call is not None:
            help = "Use `steer` or `follow_up`, or `abort` it first."
            raise SessionError("agent_busy", f"`{self.call.name}` is being carried out", help=help)

    def emit(self, data: EventData, agent: str = "") -> None:
        """Tell something that the client has changed, under a path of its own."""
        run = self.run
        self._counts[data.type] += 1
        run.events.emit(data, agent, path=(f"{data.type}#{self._counts[data.type]}",))

    def number_from(self, number: int) -> None:
        """Have the next call be the n-th."""
        self._calls = number - 1

    def begin(self, name: str, work: Work, **given: Any) -> SessionCall:
        """Start a call; what it is `given` is told. Raises Refused while another one is under way."""
        self.require_idle()
        held, run = self._require(), self.run
        self._calls += 1
        call = self.call = SessionCall(self._calls, name)
        run.events.emit(CallStarted(call.id, name, **given), path=call.path)
        call.task = held.start_task(self._carry_out(run, call, work), held.context.copy())
        # Not at the end of the task itself: one that is cancelled before its first step never comes to that.
        call.task.add_done_callback(lambda _: self._end_call(run, call))
        return call

    def _end_call(self, run: Run, call: SessionCall) -> None:
        self.call = None
        run.events.emit(CallEnded(call.id, call.name, **call.outcome), path=call.path)

    def begin_handler(self, agent: type[Agent], event: str, payload: Any) -> SessionCall:
        """Start the call of a handler. Raises Refused while another one is under way."""
        call = self.begin(f"{agent.about.name}.{event}", lambda run: run.call(agent, event, payload), args=payload)
        self.last = (agent, event, payload)
        return call

    async def within(self, work: Work) -> Any:
        """What comes of something that is done in the run beside its calls. Raises as that does, and Refused."""
        held, run = self._require(), self.run
        outcome: list[Any] = []

        async def carry_out() -> None:
            try:
                outcome.append(await work(run))
            except (Exception, SystemExit) as error:  # raised again where it is waited for
                outcome.append(KoiError("the work was ended") if isinstance(error, SystemExit) else error)

        await asyncio.wait([held.start_task(carry_out(), held.context.copy())])
        if outcome and isinstance(outcome[0], Exception):
            raise outcome[0]
        if not outcome:
            raise SessionError("session_over", "the run of this session ended before the work was done")
        return outcome[0]

    async def _carry_out(self, run: Run, call: SessionCall, work: Work) -> None:
        try:
            async with call.scope, in_time(BudgetAccount(self.served.limit, f"`{call.name}`", run.clock)):
                call.outcome = {"ok": True, "result": await work(run)}
            run.ledger.tell_overspent(run.host.log)
        except asyncio.CancelledError:
            if not call.aborted:
                raise
        except (Exception, SystemExit) as error:  # told to the client; a program cannot end the process
            call.outcome = {"ok": False, **_time(error, call), **self._error_fields(error)}

    def _error_fields(self, error: BaseException) -> dict[str, Any]:
        help = {"help": error.help} if isinstance(error, KoiError) and error.help else {}
        return {"error": message(error), **help, "report": self.served.explain(error)}

    async def abort(self) -> list[QueuedMessage]:
        """End the call that is under way and wait for that; gives the notes that it will not hear any more."""
        call = self.call
        if call is None or call.task is None:
            return []
        taken = self.run.steering.take_back()
        self._cancel()
        await asyncio.wait([call.task])
        self.run.steering.go_on()
        return taken

    def interrupt(self, delay_s: float) -> None:
        """Have the call that is under way end, or give it some seconds, although its code computes and nothing else
        happens meanwhile. Any thread may ask for it."""
        call = self.call
        if call is not None:
            self._interrupted, call.aborted = call, True
            call.scope.cancel(delay_s)

    def take_interrupted(self) -> bool:
        """Whether a call was ended that way since this was asked last."""
        call, self._interrupted = self._interrupted, None
        return call is not None and call is not self.call

    async def follow_to_its_cut(self, call: SessionCall) -> None:
        """Have a call get as far as it had got when it was ended from outside, and end it there again."""
        held, task = self._require(), call.task
        assert task is not None, "a call that has begun"
        root = held.context.run(current_place)
        assert root is not None, "a run that has been entered"
        with root.time_out():
            async with together() as group:
                turn = group.create_task(self.run.recorder.turns.take(LATE, call.path))
                await asyncio.wait([task, turn], return_when=asyncio.FIRST_COMPLETED)
                turn.cancel()
        self._cancel()
        await asyncio.wait([task])

    def _cancel(self) -> None:
        if self.call is not None and self.call.task is not None:
            self.call.aborted = True
            self.call.task.cancel()

    @asynccontextmanager
    async def open(self, open_run: OpenRun | None = None) -> AsyncIterator[Session]:
        """A context in which the session has a run, a new one or that of a session that goes on.

        Leaving it ends what is under way. Raises KoiError.
        """
        async with together() as group:
            self._group = group
            try:
                await self.renew(open_run)
                yield self
            finally:
                if self._held is not None:
                    self._held.cancel()


def _as_session_over(error: Exception) -> SessionError:
    """Why a run could not be opened, for the client."""
    help = error.help if isinstance(error, KoiError) else None
    return SessionError("session_over", message(error), help=help)


def _time(error: BaseException, call: SessionCall) -> dict[str, Any]:
    """Whether the time that a call may take was up."""
    is_up = isinstance(error, LimitReachedError) and (error.limit, error.what) == ("time", f"`{call.name}`")
    return {"timed_out": True} if is_up else {}
