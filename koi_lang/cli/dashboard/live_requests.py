"""What the runs at work in a folder have asked, by their sockets: told when it happens, and answered there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from koi_lang.cli.dashboard.snapshot import OpenRequest
from koi_lang.errors import KoiError
from koi_lang.service.live.addresses import connect, has_sockets, is_there, socket_path

# Behind every entry: what has happened before is read from the journal.
SINCE = 2**53
MAX_LINE_BYTES = 64 << 20
# How long the first messages of a run, and the response to a command, may take.
FIRST_S, ANSWER_S = 1.0, 10.0
STATE = "state"


class LiveRequests:
    """The sockets of the runs at work.

    Args:
        folder: of the runs.
        changed: is called when something was asked, answered, or goes on otherwise.
    """

    def __init__(self, folder: Path, changed: Callable[[], None]) -> None:
        self._folder, self._changed = folder, changed
        self._runs: dict[str, FollowedSocket] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, runs: Collection[str], group: asyncio.TaskGroup) -> None:
        """Follow runs that have a socket and are not followed yet, as long as they work; others may answer, too."""
        for run in runs if has_sockets() else ():
            if run not in self._runs and is_there(socket_path(self._folder, run)):
                followed = self._runs[run] = FollowedSocket(self._folder, run)
                self._tasks.add(task := group.create_task(self._keep(followed)))
                task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Follow no run any more."""
        for task in self._tasks:
            task.cancel()

    async def _keep(self, followed: FollowedSocket) -> None:
        try:
            async for _ in followed.listen(answers=True):
                self._changed()
        finally:
            del self._runs[followed.run]
            self._changed()

    async def look(self, runs: Collection[str]) -> None:
        """Find out once what runs have asked; nobody waits for an answer because of that."""
        there = [run for run in runs if has_sockets() and is_there(socket_path(self._folder, run))]
        self._runs = {run: FollowedSocket(self._folder, run) for run in there}
        await asyncio.gather(*(self._look_at(followed) for followed in self._runs.values()))

    async def _look_at(self, followed: FollowedSocket) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                async for message in followed.listen(answers=False):
                    if message.get("type") == STATE:
                        return  # it follows what is open

    @property
    def requests(self) -> tuple[OpenRequest, ...]:
        """What is open, the oldest of each run first."""
        open_ = ((run, each) for run, followed in sorted(self._runs.items()) for each in followed.requests.values())
        return tuple(OpenRequest(run, message) for run, message in open_)

    def state_of(self, run: str) -> str:
        """What goes on in a run; empty where that is not known."""
        followed = self._runs.get(run)
        return "" if followed is None else followed.state

    async def answer(self, request: OpenRequest, type: str, **fields: Any) -> None:
        """Answer a request. Raises KoiError where it is not open any more."""
        followed = self._runs.get(request.run)
        if followed is None:
            raise KoiError(f"the run `{request.run}` does not work any more")
        await followed.send(type, request=request.id, **fields)


class FollowedSocket:
    """The socket of a run at work.

    Attributes:
        requests: what it has asked and nobody has answered, by their ids.
        state: what goes on, as a service would say it; empty before it is known.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder, self.run = folder, run
        self.requests: dict[str, Mapping[str, Any]] = {}
        self.state = ""
        self._writer: asyncio.StreamWriter | None = None
        self._sent = 0
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}

    async def listen(self, *, answers: bool) -> AsyncIterator[Mapping[str, Any]]:
        """Its messages that change what is known, until it ends or cannot be followed.

        Args:
            answers: whether what it asks may wait for an answer from here.
        """
        try:
            connection = await asyncio.to_thread(connect, socket_path(self._folder, self.run))
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MAX_LINE_BYTES)
        except OSError:
            return
        self._writer = writer
        try:
            self._write("follow", since=SINCE, answers=answers)
            while line := await reader.readline():
                message = json.loads(line)
                if self._take(message):
                    yield message
        except (OSError, ValueError):  # it is gone, or speaks another language
            return
        finally:
            self._writer = None
            self.requests, self.state = ({}, "") if answers else (self.requests, self.state)
            for waiting in self._waiting.values():
                waiting.set_exception(KoiError(f"the run `{self.run}` has ended"))
            self._waiting.clear()
            writer.close()

    def _take(self, message: Mapping[str, Any]) -> bool:
        """Keep what a message tells; gives whether that is news."""
        match message.get("type"):
            case "question" | "approval_request":
                self.requests[str(message.get("id"))] = message
            case "request_closed":
                self.requests.pop(str(message.get("id")), None)
            case "state":
                self.state = str(message.get("state"))
            case "response":
                waiting = self._waiting.pop(message.get("id", 0), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
                return False
            case _:
                return False
        return True

    async def send(self, type: str, **fields: Any) -> None:
        """Send a command. Raises KoiError where it is refused, or the run has ended."""
        if self._writer is None:
            raise KoiError(f"the run `{self.run}` does not work any more")
        number = self._write(type, **fields)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await waiting
        except TimeoutError:
            raise KoiError(f"the run `{self.run}` does not respond") from None
        finally:
            self._waiting.pop(number, None)
        if not response.get("success"):
            raise KoiError(str(response.get("error", "it was refused")))

    def _write(self, type: str, **fields: Any) -> int:
        assert self._writer is not None, "it is connected"
        self._sent += 1
        self._writer.write(json.dumps({"type": type, "id": self._sent, **fields}).encode() + b"\n")
        return self._sent
