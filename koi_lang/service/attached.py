"""Runs of a folder that other processes work on, or that are over, as the sessions of a service are seen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

from koi_lang.errors import JournalError, KoiError
from koi_lang.rpc.commands import message_for
from koi_lang.rpc.dispatcher import refusal
from koi_lang.runtime.concurrency.cancellation import start_detached
from koi_lang.runtime.journal.entries import NOTHING
from koi_lang.runtime.journal.reader import lines, read_header
from koi_lang.runtime.journal.store import is_running, journal_paths, path_of
from koi_lang.service.feed import Feed, MessageView, Reader, Subscription, view_all
from koi_lang.service.live.addresses import is_there, socket_path
from koi_lang.service.live.client import LiveClient, open_client
from koi_lang.service.run_listing import RunListing, read_handler, read_outcome
from koi_lang.sessions.calls import Control, P, T
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.messages import GreetingMessage, StateMessage

# No path leads out of the folder of journals.
RUN = re.compile(r"[0-9a-zA-Z]+(?:-[0-9a-zA-Z]+)*")


class RunHandle(Protocol):
    """A run as a service shows it: one of its own sessions, or one of another process."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def feed(self) -> Feed:
        """The messages of the run."""

    @property
    def state(self) -> str:
        """The state of the run."""

    @property
    def is_awake(self) -> bool:
        """Whether a process works on it."""

    def greeting(self) -> GreetingMessage:
        """The first message to a follower."""

    def listing(self) -> RunListing:
        """The run as it is listed. Raises JournalError."""

    async def describe_call(self) -> dict[str, Any]:
        """The current call, and the last one."""

    async def outcome(self, call: str | None = None) -> dict[str, Any]:
        """How the last call ended, or an earlier one by its id; see `read_outcome`. Raises JournalError."""

    async def perform(self, control: Control[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Carry out a control of its session, one of `sessions/calls.py`. Raises KoiError."""

    async def handle(self, message: Mapping[str, Any]) -> Message:
        """Carry out a command of `koi rpc` and give its response."""


class AttachedFeed(Feed):
    """The messages of a run in another process, which is asked while there are readers.

    Args:
        begin: is called when there is a reader.
        end: is called when there is none any more.
    """

    def __init__(self, journal: Path, begin: Callable[[], None], end: Callable[[], None]) -> None:
        super().__init__(journal.stem, journal, NOTHING, lambda message: None)
        self._begin, self._end = begin, end

    def subscribe(self, since: int, view: MessageView = view_all) -> Subscription:
        """All messages behind an entry, then the new ones."""
        reader = super().subscribe(since, view)
        self._begin()
        return reader

    def leave(self, reader: Reader) -> None:
        """Tell a reader nothing any more."""
        super().leave(reader)
        if not self._readers:
            self._end()

    def forget_open(self) -> None:
        """Close the open requests, since nobody there waits for them any more."""
        for request in self.requests:
            self.settle(request["id"])
        self._texts.clear()


class AttachedRun:
    """A run that this process does not work on; a `RunHandle`.

    Attributes:
        feed: what is told of it.
    """

    def __init__(self, journal: Path, group: asyncio.TaskGroup) -> None:
        self.journal, self._group = journal, group
        self.feed = AttachedFeed(journal, self._attach, self._detach)
        self._task: asyncio.Task[None] | None = None
        self._client: LiveClient | None = None
        self._told_state = ""

    @property
    def id(self) -> str:
        """That of the run."""
        return self.journal.stem

    @property
    def _socket(self) -> Path:
        return socket_path(self.journal.parents[2], self.id)

    @property
    def is_awake(self) -> bool:
        """Whether another process works on it and takes followers."""
        with suppress(JournalError):
            return is_there(self._socket) and is_running(self.journal)
        return False

    @property
    def state(self) -> str:
        """The state of the run, or its end. Raises JournalError."""
        return self.listing().state

    def greeting(self) -> GreetingMessage:
        """The first message to a follower. Raises JournalError."""
        program = Path(read_header(self.journal).program).stem
        return GreetingMessage(type="rpc_ready", id=self.id, program=program, title="", state=self.state, attached=True)

    def listing(self) -> RunListing:
        """The run as it is listed. Raises JournalError."""
        return RunListing.of_journal(self.journal, self._told_state if self._client is not None else "")

    async def describe_call(self) -> dict[str, Any]:
        """The handler that was called last with its payload, by the journal."""
        return {"call": None, **await asyncio.to_thread(read_handler, self.journal)}

    async def outcome(self, call: str | None = None) -> dict[str, Any]:
        """How the last call ended, or an earlier one by its id. Raises JournalError."""
        return await asyncio.to_thread(read_outcome, self.journal, self.listing().usage.last_call, call)

    async def perform(self, control: Control[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Have a control carried out where the run is, as the command that it is there. Raises SessionError."""
        response = await self.handle(message_for(control, *args, **fields))
        if not response["success"]:
            raise SessionError(response["error_code"], response["error"], help=response.get("help"))
        return cast(T, response.get("data"))

    async def handle(self, message: Mapping[str, Any]) -> Message:
        """Have a command carried out where the run is, and give its response."""
        try:
            if self._client is not None:
                return await self._client.ask(message)
            async with open_client(self._socket) as client:
                return await client.ask(message)
        except OSError:
            help = f"`koi runs show {self.id}` tells how it stands."
            return refusal(SessionError("session_over", "no process works on this run", help=help), message)
        except KoiError as error:
            return refusal(error, message)

    # ------------------------------------------------------------ the connection

    def _attach(self) -> None:
        if self._task is None or self._task.done():
            self._task = start_detached(self._group, self._follow())

    def _detach(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        """Pass on the messages of the run until it is over; each reader reads earlier entries from the journal."""
        last = await asyncio.to_thread(_last_number, self.journal)
        with suppress(OSError, KoiError):  # it is over, or takes no followers: its journal tells the rest
            async with open_client(self._socket) as client:
                self._client = client
                try:
                    await client.follow(last, may_answer=True)
                    await self._pass_on(client)
                finally:
                    self._forget(client)
        with suppress(JournalError):
            self.feed.tell(StateMessage(type="state", state=self.state))

    async def _pass_on(self, client: LiveClient) -> None:
        async for message in client:
            if message["type"] == "state":
                self._told_state = str(message["state"])
            self.feed.pass_on(message)

    def _forget(self, client: LiveClient) -> None:
        """Be without a connection, unless there is a newer one."""
        if self._client is client:
            self._client, self._told_state = None, ""
            self.feed.forget_open()


class AttachedRuns:
    """The runs of a folder that are no sessions of this service."""

    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self._folder, self._group = folder, group
        self._known: dict[str, AttachedRun] = {}

    def find(self, run: str) -> AttachedRun | None:
        """The run of an id; None where there is no journal of it."""
        path = path_of(self._folder, run)
        if not RUN.fullmatch(run) or not path.is_file():
            return None
        if run not in self._known:
            self._known[run] = AttachedRun(path, self._group)
        return self._known[run]

    def working(self) -> Iterator[AttachedRun]:
        """Those that other processes work on now."""
        for path in journal_paths(self._folder):
            found = self.find(path.stem) if is_there(socket_path(self._folder, path.stem)) else None
            if found is not None and found.is_awake:
                yield found


def _last_number(journal: Path) -> int:
    """The number of the last entry of a journal; 0 where there is none."""
    try:
        return max((line.entry.n for line in lines(journal) if line.entry is not None), default=0)
    except JournalError:
        return 0
