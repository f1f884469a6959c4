"""One session of a service: awake with a run in this process, or asleep as the journal of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from koi_lang.errors import KoiError
from koi_lang.outcome import capture
from koi_lang.program.error_report import message as message_of
from koi_lang.rpc.dispatcher import Dispatcher, refusal
from koi_lang.runtime.concurrency.cancellation import detached_context
from koi_lang.runtime.journal.store import path_of
from koi_lang.service.errors import ServiceError
from koi_lang.service.feed import Feed
from koi_lang.service.limits import HostLimits
from koi_lang.service.programs import ServedProgram
from koi_lang.service.store import SessionRow
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import GRACE_S

HostedState: TypeAlias = Literal["working", "waiting", "paused", "idle", "asleep", "failed"]
# Commands that put another run in the place of that of the session.
OF_OTHER_RUNS = ("new_session", "resume_session", "branch", "quit")
ANSWERING = ("answer", "approve")
SESSIONS = "sessions"
FILES = "files"


def session_folder(folder: Path, run: str) -> Path:
    """Where a session has what belongs to it alone."""
    return folder / ".koi" / SESSIONS / run


def _start_task(group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Have something done that knows nothing of the request that needs it first."""
    return group.create_task(work, context=detached_context())


class HostedSession:
    """A session with an owner.

    Attributes:
        row: what is kept of it.
        feed: what is told of it.
        used: when it was used last, in seconds of the loop's clock.
    """

    def __init__(self, row: SessionRow, program: ServedProgram, group: asyncio.TaskGroup, limits: HostLimits) -> None:
        self.row, self.program, self._group, self._limits = row, program, group, limits
        self._folder = program.options.folder
        redact = program.options.key_lookup().redactor()
        self.feed = Feed(row.run, path_of(self._folder, row.run), redact, self._note_state)
        self._dispatcher: Dispatcher | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._waking = asyncio.Lock()
        self._told_state: HostedState = "asleep"
        self.used = asyncio.get_running_loop().time()

    @property
    def id(self) -> str:
        """That of its run."""
        return self.row.run

    @property
    def owner(self) -> str:
        """The name of the user whose it is."""
        return self.row.owner

    @property
    def files(self) -> Path:
        """The folder of its files."""
        return session_folder(self._folder, self.id) / FILES

    @property
    def state(self) -> HostedState:
        """What goes on."""
        if self._dispatcher is None:
            return "asleep"
        session = self._dispatcher.session
        if not session.is_open:
            return "failed"
        if self.feed.requests:
            return "waiting"
        if session.call is None:
            return "idle"
        return "paused" if session.run.steering.is_paused else "working"

    def _note_state(self, message: Message) -> None:
        """Tell that something else goes on than before, where that is so."""
        state = self.state
        if state != self._told_state:
            self._told_state = state
            self.feed.tell({"type": "state", "state": state})

    def greeting(self) -> dict[str, Any]:
        """The first message to who follows it."""
        known = {"program": self.row.program, "title": self.row.title}
        told = {} if self._dispatcher is None else self._dispatcher.ready()
        return {**told, "type": "rpc_ready", "id": self.id, **known, "state": self.state}

    # ------------------------------------------------------------ commands

    async def handle(self, message: Mapping[str, Any]) -> Message:
        """Carry out a command of `koi rpc` and give its response; one that sleeps wakes first."""
        self.used = asyncio.get_running_loop().time()
        if message.get("type") in OF_OTHER_RUNS:
            help = "Begin, branch and delete runs by requests of their own."
            told = SessionError("unknown_command", f"`{message['type']}` is no command of a session here", help=help)
            return refusal(told, message)
        try:
            dispatcher = await self.wake()
        except KoiError as error:
            return refusal(error, message)
        response = await dispatcher.handle(message, lambda response: None)
        if response.get("success") and message["type"] in ANSWERING:
            self.feed.settle(message["request"])
        self._note_state(response)
        return response

    # ------------------------------------------------------------ waking and sleeping

    async def begin(self) -> None:
        """Open the run of a new session. Raises KoiError."""
        await self._open(is_new=True)

    async def wake(self) -> Dispatcher:
        """Have it be where it was when it went to sleep. Raises KoiError."""
        async with self._waking:
            if self._dispatcher is None or not self._dispatcher.session.is_open:
                await self.sleep()
                await self._open(is_new=False)
        assert self._dispatcher is not None, "it has been opened"
        return self._dispatcher

    async def _open(self, *, is_new: bool) -> None:
        await self._limits.slots.take(self)
        self.files.mkdir(parents=True, exist_ok=True)
        self._over = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = _start_task(self._group, self._hold(ready, is_new=is_new))
        await ready

    async def _hold(self, ready: asyncio.Future[None], *, is_new: bool) -> None:
        """Keep its run until it is to sleep; what breaks it breaks nothing else."""
        error = (await capture(self._live(ready, is_new=is_new))).error
        self._dispatcher = None
        self._limits.slots.free(self)
        self._limits.accounts.forget(self.id)
        if error is not None and not ready.done():
            ready.set_exception(error if isinstance(error, KoiError) else KoiError(message_of(error)))
        self._note_state({})

    async def _live(self, ready: asyncio.Future[None], *, is_new: bool) -> None:
        payer = self._limits.accounts.of_session(self.id, self.owner)
        factory = self.program.factory(self._note, self.id, self.files, self.feed.follow, payer)
        dispatcher = Dispatcher(factory.served_config(), self.feed.tell)
        async with dispatcher.session.open(None if is_new else factory.open_recorded(self.id, None, False)):
            self._dispatcher = dispatcher
            ready.set_result(None)
            await self._over.wait()
            await dispatcher.session.close(GRACE_S)

    def _note(self, text: str) -> None:
        self.feed.tell({"type": "log", "text": text})

    async def sleep(self) -> None:
        """End its run, with what is under way in it; the next command wakes it."""
        self._over.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    def require_quiet(self) -> None:
        """Raise ServiceError while it works."""
        if self.state not in ("idle", "asleep", "failed"):
            raise ServiceError("not_allowed_here", f"`{self.id}` is at work", help="Cancel it first.")
