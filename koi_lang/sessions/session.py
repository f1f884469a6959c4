"""One program for one client: a run that lasts, in which one call after the other is carried out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError, ProgramChangedError, raised_as
from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    CallStarted,
    Detail,
    Event,
    EventData,
    LinePrinted,
    MessageDelivered,
    PlanModeChanged,
)
from koi_lang.extensions.collecting import LoadedExtensions, collect_extensions
from koi_lang.js.undefined import undefined
from koi_lang.program.error_report import message
from koi_lang.runtime.actions.client_tools import NOTHING, PREFIX, client_offer
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.exports import plain_copy
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.playbook.steering import QueuedMessage
from koi_lang.runtime.replay.location import current_place
from koi_lang.runtime.replay.ordering import LATE
from koi_lang.runtime.run import Run
from koi_lang.sessions.client_host import ANSWER_S, Client, Message
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.earlier_session import BranchPoint, read_recorded
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.held_run import HeldRun
from koi_lang.sessions.messages import EventMessage, FailureMessage
from koi_lang.sessions.model_selection import ModelSelection
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.recording import recording

if TYPE_CHECKING:
    from koi_lang.runtime.journal.history import History

# How long something that ends is waited for.
GRACE_S = 5.0
Work = Callable[[Run], Awaitable[Any]]
GoOver = Callable[["Session", "History"], Awaitable[None]]
COUNTED = {
    ActionEnded.type: "actions",
    ActionFailed.type: "failed_actions",
    CallStarted.type: "calls",
    MessageDelivered.type: "notes",
    LinePrinted.type: "printed",
}


class Session(HeldRun):
    """The run of one client, and another one in its place when the client says so.

    Args:
        send: takes what the client is told beside responses.
        go_over: brings a session that goes on to where it was.
        answer_s: how long questions to the client are open.

    Attributes:
        choice: the models of its runs.
        limit: the time that a call may take.
        detail: how much of an event is told.
        clean_up_s: how long a call that is ended from outside may clean up.
        last: the handler that was called last, and what it was given.
        named: what the client calls the session.
    """

    def __init__(
        self, ready: Prepared, send: Callable[[Message], None], go_over: GoOver, *, answer_s: float = ANSWER_S
    ) -> None:
        super().__init__(partial(self._opening, NEW_RUN), ready.explain, self._go_over_past, self._tell_failure)
        self.choice = ModelSelection(ready.wanted, is_stood_in=ready.has_stand_in)
        self.ready = replace(ready, latest=lambda: self.choice.wanted)
        self.limit = Budget(time_s=ready.options.call_time_s)
        self.detail: Detail = "verbose" if ready.options.debug else "detailed"
        self.clean_up_s = GRACE_S
        self._send = send
        self._go_over = go_over
        self.client = Client(send, answer_s)
        self.statistics = Statistics()
        self.last: tuple[type[Agent], str, Any] | None = None
        self.named = ""
        self._outer: asyncio.TaskGroup | None = None
        # How often events of a type were told of the session itself.
        self._counts: Counter[str] = Counter()
        self._interrupted: HeldCall | None = None
        self._commands: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {}

    # ------------------------------------------------------------ the run

    @property
    def is_open(self) -> bool:
        """Whether it has a run."""
        return self.opened is not None

    @property
    def run(self) -> Run:
        """The run. Raises SessionError when it is over."""
        if self.opened is None:
            raise _over_error()
        return self.opened

    @property
    def commands(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        """The commands of extensions in the protocol. Raises SessionError when it is over."""
        if self.opened is None:
            raise _over_error()
        return self._commands

    async def renew(self, going: Continuation = NEW_RUN) -> None:
        """End the run, if there is one, and begin another.

        Args:
            going: the record of a session that goes on; what was done in it is gone over first.

        Raises:
            SessionError: the run cannot be opened, or what was done cannot be gone over.
            ProgramChangedError: what was done does not fit the program any more.
        """
        assert self._outer is not None, "a session that is not open"
        if self.opened is not None:
            await self.finish(GRACE_S)
        self.statistics = Statistics()
        self.last = None
        self.named = ""
        self._counts.clear()
        self._open_run = partial(self._opening, going)
        with raised_as(_as_session_over):
            await self.open_in(self._outer)

    def read_recorded(self, run: str, at: int | None, trusted: bool) -> Continuation:
        """The record of an earlier session, up to an entry of it. Raises KoiError."""
        return read_recorded(self.ready, run, None if at is None else BranchPoint(at), trusted=trusted)

    @contextmanager
    def _opening(self, going: Continuation, consumers: Sequence[Consumer]) -> Iterator[tuple[Run, Writer | None]]:
        ready, choice = self.ready, self.choice
        choice.go_on_with(going, ready.note)
        loaded = collect_extensions(ready.extensions) if ready.extensions else LoadedExtensions()
        choice.providers, self._commands = loaded.added.providers, loaded.rpc
        own: dict[str, Any] = {
            "limits": {**ready.options.session_limits, **going.limits},
            "detailed": True,
            "added": loaded.added,
        }
        if going.history is not None:
            own["today"] = going.today
        own |= {"history": going.history, "id": going.run or ready.run_id, "seed": going.seed}
        # Clients who are told the entries of its journal need not be told events beside these.
        watching = [self.statistics] if ready.followers else [self.statistics, self._tell]
        run = ready.run(self.client, [*watching, *consumers], ready.note, **own)
        live = None if ready.make_live is None else ready.make_live(self)
        with recording(run, ready, replace(going, followers=ready.followers, live=live)) as writer:
            run.events.subscribe_to_transient(self._tell)
            yield run, writer

    async def _go_over_past(self, run: Run) -> None:
        """Bring a run that goes on to where the session was."""
        if run.recorded.history is not None:
            self.statistics.usage = run.recorded.history.usage()
            await self._go_over(self, run.recorded.history)

    def _tell_failure(self, error: Exception) -> None:
        failure = FailureMessage(type="session_failed", error=message(error), report=self.ready.explain(error))
        if isinstance(error, ProgramChangedError):
            failure["code"] = "program_changed"
        self._send(failure)

    async def finish(self, grace_s: float) -> bool:
        """End the run; gives whether everything in it had ended by itself in time."""
        if self.opened is None:
            return True
        if self.current_call is not None:
            await asyncio.wait([self.current_call.task], timeout=grace_s)
        in_time = self.current_call is None
        await self.abort()
        return await self.end(grace_s if in_time else 0) and in_time

    async def suspend(self) -> None:
        """End the run at once; its open work continues when the session does.

        Its journal ends here, as if the process had been killed: nobody has ended the calls.
        """
        if self.opened is not None:
            if self.writer is not None:
                self.writer.stop()
            for call in tuple(self.calls):
                call.cancel(self.clean_up_s)
            self.interrupt_run()
            await self.wait_for_end()

    def _tell(self, event: Event) -> None:
        self._send(EventMessage(type="event", event=event.as_data(self.detail)))

    # ------------------------------------------------------------ calls

    @property
    def current_call(self) -> HeldCall | None:
        """The current call; None for none."""
        return next(iter(tuple(self.calls)), None)

    def require_idle(self) -> None:
        """Raise SessionError while a call is under way."""
        if self.current_call is not None:
            help = "Use `steer` or `follow_up`, or `abort` it first."
            raise SessionError("agent_busy", f"`{self.current_call.name}` is being carried out", help=help)

    def emit(self, data: EventData, agent: str = "") -> None:
        """Tell something that the client has changed, under a path of its own."""
        run = self.run
        self._counts[data.type] += 1
        run.events.emit(data, agent, path=(f"{data.type}#{self._counts[data.type]}",))

    def set_plan_mode(self, on: bool) -> None:
        """Begin or end plan mode, under a path of its own."""
        type = PlanModeChanged.type
        self._counts[type] += 1
        self.run.planning.set(on, (f"{type}#{self._counts[type]}",))

    def begin(self, name: str, work: Work, id: str = "", **given: Any) -> HeldCall:
        """Start a call; its payload is reported. Raises SessionError during another one.

        Args:
            id: of the caller; a call without is named by its number.
        """
        self.require_idle()
        return self.start(name, work, self.limit, id, is_alone=True, **given)

    def begin_handler(self, agent: type[Agent], event: str, payload: Any, id: str = "") -> HeldCall:
        """Start the call of a handler, as `begin` does, with the offer of the client.

        Raises:
            SessionError: another one is under way, or the name of a tool could be that of an event of a member.
        """
        given = {} if payload is undefined else {"args": payload}
        offer = client_offer.get()
        if offer is not NOTHING:
            given |= offer.as_fields()
        if offer.tools:
            key = PREFIX.removesuffix("::")
            if team := next((each for each in self.run.teams() if key in each.members()), None):
                message = (
                    f"the team `{team.name}` has a member `{key}`, and tools of a client are called `{PREFIX}NAME`"
                )
                raise SessionError("invalid_request", message, help="Call the member otherwise, or send no tools.")

        async def set_state_first(run: Run) -> Any:
            for each in (known for known in self.ready.agents if known.about.name in offer.state):
                live, fields = run.agent(each), offer.state[each.about.name]
                if changed := {name: value for name, value in fields.items() if live.state.get(name) != value}:
                    run.update_state(live, plain_copy(changed))
            return await run.call(agent, event, payload)

        work = set_state_first if offer.state else lambda run: run.call(agent, event, payload)
        call = self.begin(f"{agent.about.name}.{event}", work, id, **given)
        self.last = (agent, event, payload)
        return call

    async def within(self, work: Work) -> Any:
        """The result of work in the run beside its calls. Raises as that does, and SessionError."""
        try:
            return await self.perform(work)
        except KoiError as error:
            if self.opened is None:
                raise _as_session_over(error) from error
            raise

    async def abort(self) -> list[QueuedMessage]:
        """End the call that is under way and wait for that; gives the notes that it will not hear any more."""
        call = self.current_call
        if call is None:
            return []
        taken = self.run.steering.take_back()
        call.cancel(self.clean_up_s)
        await asyncio.wait([call.task])
        self.run.steering.go_on()
        return taken

    def interrupt(self, delay_s: float) -> None:
        """Interrupt the call that is under way, at once or after some seconds, also while its code computes.

        Any thread may call this.
        """
        call = self.current_call
        if call is not None:
            self._interrupted = call
            call.interrupt(delay_s)

    def take_interrupted(self) -> bool:
        """Whether a call was ended that way since this was asked last."""
        call, self._interrupted = self._interrupted, None
        return call is not None and call is not self.current_call

    async def follow_to_its_cut(self, call: HeldCall) -> None:
        """Have a call get as far as it had got when it was ended from outside, and end it there again."""
        root = self.context.run(current_place)
        assert root is not None, "a run that has been entered"
        with root.time_out():
            async with together() as group:
                turn = group.create_task(self.run.recorder.slots.take_slot(LATE, call.path))
                await asyncio.wait([call.task, turn], return_when=asyncio.FIRST_COMPLETED)
                turn.cancel()
        call.cancel()
        await asyncio.wait([call.task])

    async def begin_in(self, group: asyncio.TaskGroup, going: Continuation = NEW_RUN) -> None:
        """Have a run in a task of a group, a new one or that of a session that goes on. Raises KoiError."""
        self._outer = group
        await self.renew(going)

    @asynccontextmanager
    async def open(self, going: Continuation = NEW_RUN) -> AsyncIterator[Session]:
        """A context in which the session has a run, a new one or that of a session that goes on.

        Leaving it ends what is under way. Raises KoiError.
        """
        async with together() as group:
            try:
                await self.begin_in(group, going)
                yield self
            finally:
                self.interrupt_run()


def _over_error() -> SessionError:
    help = "Begin another session, with `new_session` or `POST /api/runs`."
    return SessionError("session_over", "the run of this session has ended", help=help)


def _as_session_over(error: Exception) -> KoiError:
    """Why a run could not be opened, for the client."""
    if isinstance(error, ProgramChangedError):
        return error
    help = error.help if isinstance(error, KoiError) else None
    return SessionError("session_over", message(error), help=help)


@dataclass(slots=True)
class Statistics:
    """A consumer that counts.

    What a session that goes on had done before counts, too: it is told again, as recalled. What that took is `usage`
    from the beginning.
    """

    usage: UsageTotals = field(default_factory=UsageTotals)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED.values(), 0))

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if event.type in COUNTED:
            self.counts[COUNTED[event.type]] += 1
        else:
            self.usage.add(event)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self.usage.as_data(), "tokens": dict(self.usage.by_kind), **self.counts}
