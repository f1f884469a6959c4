"""The process of the debuggee, as the adapter holds it: requests with their answers, events, output, and its end."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from koi_lang.errors import KoiError

# Bytes of a line of the channel.
LONGEST = 64 << 20
# How long a debuggee that is to end may take, with the grace that it gives its run.
END_S = 4.0
OnEvent = Callable[[str, dict[str, Any]], None]


class DebuggeeError(KoiError):
    """The debuggee does not carry out a request, or is gone."""


class DebuggeeProcess:
    """A debuggee; `start` makes one.

    Attributes:
        ended: is set while no run goes on.
    """

    def __init__(self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.ended = asyncio.Event()
        self.ended.set()

    @staticmethod
    async def start() -> DebuggeeProcess:
        """Start one; it imports what it needs while the client says what is to be debugged."""
        here, there = socket.socketpair()
        with there:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "koi_lang", "debug", "--debuggee", f"{there.fileno()},{os.getpid()}",
                stdin=DEVNULL, stdout=PIPE, stderr=PIPE, pass_fds=(there.fileno(),), start_new_session=True,
            )  # fmt: skip
        reader, writer = await asyncio.open_unix_connection(sock=here, limit=LONGEST)
        return DebuggeeProcess(process, reader, writer)

    async def follow(self, on_event: OnEvent) -> None:
        """Hand over what it tells and prints, until it is gone."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(_follow_output(self._process.stdout, "stdout", on_event))
            group.create_task(_follow_output(self._process.stderr, "stderr", on_event))
            group.create_task(self._follow_channel(on_event))

    async def _follow_channel(self, on_event: OnEvent) -> None:
        with suppress(OSError):
            while line := await self._reader.readline():
                message = json.loads(line)
                if "event" in message:
                    self._note(message["event"])
                    on_event(message["event"], message["body"])
                else:
                    self._take(message)
        self._note("ended")
        on_event("gone", {})

    def _note(self, event: str) -> None:
        if event != "ended":
            return
        self.ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(DebuggeeError("the program has ended"))
        self._waiting.clear()

    def _take(self, message: Mapping[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(DebuggeeError(message["error"], help=message.get("help")))
        else:
            waiting.set_result(message["body"])

    async def request(self, command: str, **arguments: Any) -> Any:
        """What it answers to a request. Raises DebuggeeError."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "command": command, "arguments": arguments}
        self._writer.write(json.dumps(message).encode() + b"\n")
        return await answer

    async def end(self) -> None:
        """End it: its run as if interrupted, and the whole group of processes where that takes too long."""
        if not self.ended.is_set():
            with suppress(DebuggeeError, TimeoutError):
                async with asyncio.timeout(END_S):
                    await self.request("end")
                    await self.ended.wait()
        self._writer.close()
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End the group of its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


async def _follow_output(stream: asyncio.StreamReader, category: str, on_event: OnEvent) -> None:
    """Hand over what is written past the channel, such as by Python."""
    while piece := await stream.read(1 << 16):
        on_event("output", {"output": piece.decode("utf-8", "replace"), "category": category})
