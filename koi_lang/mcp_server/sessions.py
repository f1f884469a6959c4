"""Sessions of clients: each has a run of its own, in which its calls take place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.events import Event
from koi_lang.mcp_server.call import ANSWER_S, ClientHost, ExposedCall, calling, follow
from koi_lang.mcp_server.completions import GivenArguments
from koi_lang.mcp_server.watching import Watch
from koi_lang.outcome import capture
from koi_lang.program.error_report import explain
from koi_lang.runtime.concurrency.cancellation import detached_context
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.run import Run

# How long a client may take to hear something that it did not ask for.
TELL_S = 10.0
OpenRun = Callable[[Host, Consumer], Run]
Work = Callable[[Run], Awaitable[Any]]


class ClientSession:
    """What lasts as long as a client stays: the state and the memory of agents, and the servers they use.

    Attributes:
        waiting: calls that a client has to come back to, by id.
        watch: documents that the client watches.
        given: what it has given as arguments.
    """

    def __init__(self, open_run: Callable[[Consumer], Run], log: Callable[[str], None]) -> None:
        self.waiting: dict[str, ExposedCall] = {}
        self.watch, self.given = Watch(self._start), GivenArguments()
        self._run, self._log = open_run(self._follow), log
        self._calls: set[ExposedCall] = set()
        self._context: Context | None = None
        self._group: asyncio.TaskGroup | None = None
        self._ready, self._over = asyncio.Event(), asyncio.Event()

    @property
    def run(self) -> Run:
        """The run of the session."""
        return self._run

    def _follow(self, event: Event) -> None:
        follow(event)
        self.watch.look(event)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry something out while the session lasts; a client that cannot be told has gone, or does not listen."""
        if self._group is None:
            work.close()
            return
        _start_task(self._group, _try_to_tell(work), Context())

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
            for call in self._calls:
                call.end()

    def end(self) -> None:
        """Have `live` end."""
        self._over.set()

    async def begin(self, work: Work, *, asks: bool, approves: bool = False) -> ExposedCall:
        """Start a call in the run of this session. Raises AgentError when the run has failed."""
        await self._ready.wait()
        if self._context is None or self._group is None:
            raise AgentError("the run of this session has failed; whoever runs the server is told why")
        call = ExposedCall(asks, approves)
        context = self._context.copy()
        context.run(calling.set, call)
        call.task = _start_task(self._group, call.carry_out(lambda: work(self._run)), context)
        self._calls.add(call)
        call.task.add_done_callback(lambda _: self._calls.discard(call))
        return call

    def keep(self, call: ExposedCall) -> None:
        """Remember a call that its client has to come back to; not for ever, as clients may have other plans."""
        self.waiting[call.id] = call
        asyncio.get_running_loop().call_later(2 * ANSWER_S, self.waiting.pop, call.id, None)


async def _try_to_tell(work: Coroutine[Any, Any, None]) -> None:
    await capture(asyncio.wait_for(work, TELL_S))


def _start_task(group: asyncio.TaskGroup, work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
    return group.create_task(work, context=context)


class Sessions:
    """The sessions of a server; they live in its task group."""

    def __init__(self, group: asyncio.TaskGroup, open_run: OpenRun, log: Callable[[str], None]) -> None:
        self._group, self._open_run, self._log = group, open_run, log
        self._all: list[ClientSession] = []
        self._only: ClientSession | None = None

    def open(self) -> ClientSession:
        """A new session."""
        session = ClientSession(lambda consumer: self._open_run(ClientHost(self._log), consumer), self._log)
        # The task of a session knows nothing of the request that needs it first.
        _start_task(self._group, session.live(), detached_context())
        self._all.append(session)
        return session

    def only(self) -> ClientSession:
        """The session of the client that has the server for itself."""
        if self._only is None:
            self._only = self.open()
        return self._only

    def close(self, session: ClientSession) -> None:
        """End a session."""
        session.end()
        self._all.remove(session)

    def close_all(self) -> None:
        """End all sessions."""
        for session in self._all:
            session.end()


@asynccontextmanager
async def sessions_of(open_run: OpenRun, log: Callable[[str], None]) -> AsyncIterator[Sessions]:
    """A context in which sessions can be opened; leaving it ends them all and waits for them."""
    async with asyncio.TaskGroup() as group:
        sessions = Sessions(group, open_run, log)
        try:
            yield sessions
        finally:
            sessions.close_all()
