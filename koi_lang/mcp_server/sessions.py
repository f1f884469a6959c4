"""Sessions of clients: each has a run of its own, in which its calls take place."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar

from koi_lang.errors import AgentError, KoiError, capture
from koi_lang.events import Event
from koi_lang.mcp_server.call import ClientHost, ExposedCall, calling, follow
from koi_lang.mcp_server.completions import GivenArguments
from koi_lang.mcp_server.watching import FindAgent, Watch
from koi_lang.program.error_report import explain
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import Budget, BudgetAccount, in_time
from koi_lang.runtime.concurrency.cancellation import start_detached
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.prompts import Prompt
from koi_lang.runtime.run import Run

# How long a client may take to hear something that it did not ask for.
TELL_S = 10.0
# How long a client without a connection may take to come back, and how many sessions wait for theirs at once.
KEEP_S, MAX_KEPT = 3600.0, 1000
AsResult = Callable[[Any], Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """A handler to call.

    Attributes:
        name: of the tool or document that it makes.
        as_result: the value that the handler returns, as the client gets it.
    """

    name: str
    agent: type[Agent]
    event: str
    payload: Any
    as_result: AsResult


@dataclass(frozen=True, slots=True)
class PromptCall:
    """A declared prompt to render.

    Attributes:
        as_result: its text, as the client gets it.
    """

    prompt: Prompt
    arguments: Sequence[str]
    as_result: AsResult

    @property
    def name(self) -> str:
        """Of the prompt."""
        return self.prompt.name


Work = HandlerCall | PromptCall


class McpSession(Protocol):
    """The session of a client: the state and the memory of agents, and the servers they use.

    Attributes:
        is_kept: whether it goes on when the request that began it is over, since the client has asked for that.
        watch: documents that the client watches.
        given: arguments that it has sent, for completions.
    """

    is_kept: bool
    watch: Watch
    given: GivenArguments

    @property
    def handle(self) -> str:
        """By which a client without a connection comes back to it; empty until there is a run."""

    async def begin(self, work: Work, *, asks: bool, approves: bool = False) -> ExposedCall:
        """Start a call in the run of this session. Raises KoiError when there is none."""

    def hold(self, call: ExposedCall) -> None:
        """Have a call go on although its request is over, for a client that comes back to it."""

    async def rejoin(self, id: str) -> ExposedCall:
        """Such a call. Raises UnknownCallError."""

    async def cancel(self, call: ExposedCall) -> None:
        """End such a call."""

    async def watch_agent(self, agent: type[Agent]) -> FindAgent:
        """Where to find an agent of the run. Raises KoiError when there is no run."""

    def leave(self) -> bool:
        """Note that a request is over; gives whether the session stays in memory for a client that comes back."""

    def end(self) -> None:
        """End the calls that are under way; the client has left."""


# Makes the session of a client, in a group: a new one, or that of a handle. Raises UnknownCallError.
OpenSession = Callable[[asyncio.TaskGroup, str], McpSession]


class UnknownCallError(KoiError):
    """A client comes back to a call that is gone: its session has ended, or belongs to another user."""

    def __init__(self) -> None:
        super().__init__("there is no such session or call; its time may be over")


class ClientSession:
    """An `McpSession` with a run that nobody else uses.

    Args:
        group: in which the run lives.
        limit: the time that a call may take.
    """

    def __init__(
        self,
        open_run: Callable[[Host, Consumer], Run],
        log: Callable[[str], None],
        limit: Budget,
        group: asyncio.TaskGroup,
        handle: str,
    ) -> None:
        if handle:  # what is in memory is found there
            raise UnknownCallError
        self._handle, self.is_kept = secrets.token_urlsafe(24), False
        self.watch, self.given = Watch(self._start), GivenArguments()
        self._run = open_run(ClientHost(log), self._follow)
        self._log = log
        self._limit = limit
        self._calls: dict[str, ExposedCall] = {}
        self._numbers = count(1)
        self._context: Context | None = None
        self._group: asyncio.TaskGroup | None = None
        self._ready, self._over = asyncio.Event(), asyncio.Event()
        start_detached(group, self.live())

    @property
    def handle(self) -> str:
        """By which a client without a connection comes back to it; cannot be guessed."""
        return self._handle

    async def watch_agent(self, agent: type[Agent]) -> FindAgent:
        """Where to find an agent of the run."""
        return partial(self._run.agent, agent)

    def _follow(self, event: Event) -> None:
        follow(event)
        self.watch.look(event)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something told while the session lasts."""
        if self._group is None:
            work.close()
            return
        start_task(self._group, try_to_tell(work), Context())

    async def live(self) -> None:
        """Hold the run until the end; calls that are not over then are cancelled."""
        try:
            ended = await capture(self._hold())
            if ended.error is not None:  # nobody waits for the session any more: whoever runs the server is told
                self._log(explain(ended.error))
        finally:
            self._context = None
            self._ready.set()

    async def _hold(self) -> None:
        async with self._run, asyncio.TaskGroup() as group:
            self._group, self._context = group, copy_context()
            self._ready.set()
            await self._over.wait()
            for call in self._calls.values():
                call.end()

    def end(self) -> None:
        """Have the run end."""
        self._over.set()

    async def begin(self, work: Work, *, asks: bool, approves: bool = False) -> ExposedCall:
        """Start a call in the run of this session. Raises AgentError when the run has failed."""
        await self._ready.wait()
        if self._context is None or self._group is None:
            raise AgentError("the run of this session has failed; whoever runs the server is told why")
        call = ExposedCall(asks, approves, id=str(next(self._numbers)))
        self._calls[call.id] = call
        context = self._context.copy()
        context.run(calling.set, call)
        call.task = start_task(self._group, call.carry_out(lambda: _perform(work, self._run, self._limit)), context)
        call.task.add_done_callback(lambda _: call.is_held or self._calls.pop(call.id, None))
        return call

    def hold(self, call: ExposedCall) -> None:
        """Have a call go on although its request is over, for a client that comes back to it in time."""
        call.is_held, self._calls[call.id] = True, call
        asyncio.get_running_loop().call_later(KEEP_S, self._calls.pop, call.id, None)

    async def rejoin(self, id: str) -> ExposedCall:
        """Such a call. Raises UnknownCallError."""
        call = self._calls.get(id)
        if call is None or not call.is_held:
            raise UnknownCallError
        return call

    async def cancel(self, call: ExposedCall) -> None:
        """End such a call."""
        call.end()

    def leave(self) -> bool:
        """Note that a request is over; gives whether the client may come back."""
        return self.is_kept or bool(self._calls)


async def _perform(work: Work, run: Run, limit: Budget) -> Any:
    """The result of some work, of a handler within the time that a call may take."""
    if isinstance(work, PromptCall):
        return work.as_result(await work.prompt.text_in(run, *work.arguments))
    async with in_time(BudgetAccount(limit, f"`{work.name}`", run.clock)):
        value = await run.call(work.agent, work.event, work.payload)
    run.ledger.tell_overspent(run.host.log)
    return work.as_result(value)


async def try_to_tell(work: Coroutine[Any, Any, None]) -> None:
    """Tell a client something; one that cannot be told has gone, or does not listen."""
    await capture(asyncio.wait_for(work, TELL_S))


def start_task(group: asyncio.TaskGroup, work: Coroutine[Any, Any, T], context: Context) -> asyncio.Task[T]:
    """Begin a task in a context of its own."""
    return group.create_task(work, context=context)


class Sessions:
    """The sessions of a server.

    Args:
        open_session: makes a new one, or that of a handle; raises UnknownCallError.
    """

    def __init__(self, open_session: Callable[[str], McpSession]) -> None:
        self._open_session = open_session
        self._all: list[McpSession] = []
        self._only: McpSession | None = None
        # Those whose clients may come back without a connection, by their handles, and when one did last.
        self._kept: dict[str, tuple[McpSession, float]] = {}

    def open(self, handle: str = "") -> McpSession:
        """A new session, or that of a handle. Raises UnknownCallError."""
        if handle in self._kept:
            return self._kept[handle][0]
        session = self._open_session(handle)
        self._all.append(session)
        return session

    def only(self) -> McpSession:
        """The session of the client that has the server for itself."""
        if self._only is None:
            self._only = self.open()
        return self._only

    def release(self, session: McpSession) -> None:
        """End a session whose request is over, unless its client may come back to it within `KEEP_S`."""
        if session not in self._all:
            return
        if not session.leave():
            self.close(session)
            return
        self._kept.pop(session.handle, None)
        if len(self._kept) >= MAX_KEPT:
            self.close(next(iter(self._kept.values()))[0])
        loop = asyncio.get_running_loop()
        self._kept[session.handle] = session, loop.time()
        loop.call_later(1.01 * KEEP_S, self._end_unused, session)

    def _end_unused(self, session: McpSession) -> None:
        kept = self._kept.get(session.handle)
        if kept is not None and asyncio.get_running_loop().time() - kept[1] > KEEP_S:
            self.close(session)

    def close(self, session: McpSession) -> None:
        """End a session."""
        self._kept.pop(session.handle, None)
        session.end()
        self._all.remove(session)

    def close_all(self) -> None:
        """End all sessions."""
        for session in self._all:
            session.end()


@asynccontextmanager
async def sessions_of(open_session: OpenSession) -> AsyncIterator[Sessions]:
    """A context in which sessions can be opened; leaving it ends them all and waits for them."""
    async with asyncio.TaskGroup() as group:
        sessions = Sessions(lambda handle: open_session(group, handle))
        try:
            yield sessions
        finally:
            sessions.close_all()
