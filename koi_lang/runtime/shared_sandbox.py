"""Sandboxes that several commands of a run share: started with the first one, and ended with the last one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import undone_by
from koi_lang.redaction.redactor import is_secret
from koi_lang.runtime.actions.command_output import READ_SIZE
from koi_lang.settings import environment
from koi_lang.system import command_holder
from koi_lang.system.bubblewrap import Confinement, confined_words
from koi_lang.system.process_groups import end_group

if TYPE_CHECKING:
    from koi_lang.runtime.command_sandbox import PreparedSandbox, Sandbox
    from koi_lang.runtime.guards.commands import Command

# How long the holder may take to answer, and a command to end when it is asked to.
ANSWER_LIMIT_S = 10.0
END_LIMIT_S = 2.0
MAX_FAULT_BYTES = 2000
# Of one report; the longest tells what is mounted.
MAX_REPORT_BYTES = 1 << 22


class HolderError(ValueError):
    """A sandbox for several commands does not work, as a clause."""


@dataclass(slots=True, eq=False)
class HeldCommand:
    """A command that a holder has started.

    Attributes:
        streams: its output and, where that is apart, its errors.
        code: its exit code, once it has ended by itself.
        has_ended: set when it has, whatever it has started.
        is_gone: set when nothing is left of what it has started.
        is_lost: whether the sandbox has ended around it.
        disabled: a line for everything that was disabled in repositories after it.
    """

    id: int
    prepared: PreparedSandbox | None
    note: Callable[[str], None]
    holder: CommandHolder | None = None
    streams: Sequence[asyncio.StreamReader] = ()
    code: int | None = None
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_gone: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False
    disabled: list[str] = field(default_factory=list)

    async def end(self, *, gently: bool = False) -> None:
        """End it with everything that it has started.

        Args:
            gently: whether it is asked to before.
        """
        numbers = (signal.SIGTERM, signal.SIGKILL) if gently else (signal.SIGKILL,)
        for number in numbers:
            if self.is_gone.is_set():
                break
            assert self.holder is not None, "it has been started"
            with suppress(HolderError):
                await self.holder.request({"id": self.id, "signal": int(number)})
            with suppress(TimeoutError):
                await asyncio.wait_for(self.is_gone.wait(), END_LIMIT_S)
        if not self.is_gone.is_set() and self.holder is not None:
            await self.holder.end()  # a command has stopped the holder, so nothing in there can be ended singly
        await self.check_repositories()

    async def check_repositories(self) -> None:
        """Disable new content that git would obey outside of the sandbox, once it is gone."""
        if self.prepared is not None:
            prepared, self.prepared = self.prepared, None
            for line in await asyncio.to_thread(prepared.repositories.end):
                self.disabled.append(line)
                self.note(line)


class CommandHolder:
    """The process that holds the commands of one sandbox, or of none.

    Args:
        confinement: what its commands are confined to; None for nothing.
    """

    def __init__(self, confinement: Confinement | None) -> None:
        self.confinement = confinement
        self.commands: dict[int, HeldCommand] = {}
        self.is_open = True
        self._requests, self._answering = socket.socketpair()
        self._requests.settimeout(ANSWER_LIMIT_S)
        self._asking = asyncio.Lock()
        self._mounts: asyncio.Future[list[str]] | None = None
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._has_begun = asyncio.Event()

    async def begin(self, program: str, background: asyncio.TaskGroup) -> None:
        """Start the process. Raises HolderError.

        Args:
            program: bubblewrap, where there is a confinement.
            background: what reads its reports.
        """
        number = self._answering.fileno()
        own = (*holder_words(), str(number))
        words = own if self.confinement is None else confined_words(program, self.confinement, own)
        variables = {name: value for name, value in environment().items() if not is_secret(name, value)}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                limit=MAX_REPORT_BYTES,
                env=variables,
                pass_fds=[number],
                start_new_session=True,
            )
        except OSError as error:
            raise HolderError(f"the process that holds it cannot be started: {error.strerror}") from error
        finally:
            self._answering.close()
        self._reading = background.create_task(self._read_reports())
        await self._has_begun.wait()
        if not self.is_open:
            fault = b"" if self._process.stderr is None else await self._process.stderr.read(MAX_FAULT_BYTES)
            raise HolderError(f"the sandbox ended at once: {fault.decode('utf-8', 'replace').strip()[-300:]}")

    # ------------------------------------------------------------ requests

    async def start(self, command: HeldCommand, words: Sequence[str], work: Path, *, is_merged: bool) -> None:
        """Start a command. Raises HolderError or OSError.

        Args:
            work: the folder that it begins in.
            is_merged: whether both of its streams are one.
        """
        await asyncio.to_thread(os.listdir, work)
        pipes = [os.pipe() for _ in range(1 if is_merged else 2)]
        with ExitStack() as closing, undone_by(self.commands.pop, command.id, None):
            for _, written in pipes:
                closing.callback(os.close, written)
            command.streams = [await open_reader(read) for read, _ in pipes]
            self.commands[command.id], command.holder = command, self
            request = {"id": command.id, "words": list(words), "cwd": str(work)}
            is_sent = asyncio.Event()

            async def send() -> None:
                try:
                    await self.request(request, [written for _, written in pipes])
                finally:
                    is_sent.set()

            try:
                await asyncio.shield(send())
            except asyncio.CancelledError:  # it may have begun, and then nobody else would end it
                await is_sent.wait()
                await command.end()
                raise

    async def request(self, request: dict[str, Any], files: Sequence[int] = ()) -> None:
        """Send a request. Raises HolderError where nobody takes it."""
        data = json.dumps(request).encode()
        frame = len(data).to_bytes(command_holder.HEADER_BYTES, "big") + data

        def send() -> None:
            sent = socket.send_fds(self._requests, [frame], list(files))
            self._requests.sendall(frame[sent:])

        async with self._asking:
            if not self.is_open:
                raise HolderError("its sandbox has ended")
            try:
                await asyncio.to_thread(send)
            except OSError as error:
                raise HolderError(f"the sandbox does not answer: {error}") from error

    async def mount_points(self) -> list[str]:
        """Where something is mounted in the sandbox now. Raises HolderError."""
        self._mounts = asyncio.get_running_loop().create_future()
        await self.request({"mounts": True})
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                return await self._mounts
        except TimeoutError:
            raise HolderError("the sandbox does not answer") from None

    async def end(self) -> None:
        """End the process, and so everything in its sandbox."""
        self._requests.close()
        if self._process is not None and self._process.returncode is None:
            if self.confinement is None:  # nobody else ends what it has started
                with suppress(TimeoutError):
                    async with asyncio.timeout(END_LIMIT_S):
                        await self._process.wait()
            end_group(self._process.pid)
        if self._reading is not None:
            await asyncio.wait([self._reading])

    # ------------------------------------------------------------ reports

    async def _read_reports(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        # Nothing but the holder is believed: a command that has found the way to this stream ends its sandbox.
        with suppress(ValueError, TypeError, AttributeError):
            while line := await process.stdout.readline():
                self._take(json.loads(line))
        self.is_open = False
        self._requests.close()
        end_group(process.pid)
        await process.wait()
        for command in [*self.commands.values()]:
            command.is_lost = True
            self._note_end(command)
        if self._mounts is not None and not self._mounts.done():
            self._mounts.set_exception(HolderError("its sandbox has ended"))
        self._has_begun.set()

    def _take(self, report: dict[str, Any]) -> None:
        command = self.commands.get(report.get("id", 0))
        if report.get("ready"):
            self._has_begun.set()
        elif "mounts" in report and self._mounts is not None and not self._mounts.done():
            self._mounts.set_result([str(each) for each in report["mounts"]])
        elif command is not None and report.get("gone"):
            self._note_end(command)
        elif command is not None and isinstance(report.get("code"), int):
            command.code = report["code"]
            command.has_ended.set()

    def _note_end(self, command: HeldCommand) -> None:
        self.commands.pop(command.id, None)
        command.has_ended.set()
        command.is_gone.set()
        if not self.commands:
            self._requests.close()  # the holder ends when nobody can ask it any more

    # ------------------------------------------------------------ who fits

    async def fits(self, wanted: Confinement | None) -> bool:
        """Whether a command may join: it sees and changes no more here than it would in a sandbox of its own."""
        own = self.confinement
        if not self.is_open or not self.commands or own is None or wanted is None:
            return self.is_open and bool(self.commands) and own is wanted
        if (own.network, own.bounds, visible_parts(own)) != (wanted.network, wanted.bounds, visible_parts(wanted)):
            return False
        needed = dict(list_mounts(wanted))
        if not needed.items() <= dict(list_mounts(own)).items():
            return False
        try:
            # Replacing a file outside of the sandbox takes away what was mounted on it.
            points = {*await self.mount_points()}
        except HolderError:
            return False
        return points.issuperset(needed)


def visible_parts(confinement: Confinement) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The project, and the folders beside it that look empty or are shown after all."""
    return confinement.project, tuple(confinement.empty), tuple(confinement.shown)


def list_mounts(confinement: Confinement) -> Iterator[tuple[str, str]]:
    """The paths of the project on which something is mounted, with how; later mounts lie over earlier ones."""
    yield from ((path, "changeable") for path in confinement.changeable)
    yield from ((path, "fixed") for path in confinement.fixed if os.path.lexists(path))
    yield from ((path, "hidden folder") for path in confinement.hidden_folders)
    yield from ((path, "hidden file") for path in confinement.hidden_files)
    yield from ((path, f"in its place {own}") for own, path in confinement.stand_ins)


@cache
def holder_words() -> tuple[str, ...]:
    """The words with which the holder is started, but for its socket."""
    text = Path(command_holder.__file__).read_text(encoding="utf-8")
    return os.path.realpath(sys.executable), "-I", "-S", "-c", text


async def open_reader(file: int) -> asyncio.StreamReader:
    """A stream that reads a pipe."""
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader(limit=READ_SIZE, loop=loop)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream, loop=loop), os.fdopen(file, "rb", 0))
    return stream


class SharedSandboxes:
    """The holders of a run's commands; one takes a command as long as others are at work in it."""

    def __init__(self, background: asyncio.TaskGroup) -> None:
        self._background = background
        self._holders: list[CommandHolder] = []
        self._choosing = asyncio.Lock()
        self._last_id = 0

    def are_open(self) -> bool:
        """Whether commands are at work in any."""
        return any(holder.is_open and holder.commands for holder in self._holders)

    async def start(self, command: Command, *, is_merged: bool) -> HeldCommand:
        """Start a command where others are that it may meet, else in a new sandbox.

        Raises:
            OSError: there is no such folder.
            ValueError: the command holds a character that none may hold, or the sandbox hides what it needs.
        """
        words, sandbox = tuple(command.words) or ("/bin/sh", "-c", command.text), command.sandbox
        if any("\0" in word for word in words):
            raise ValueError("embedded null byte")
        prepared = None
        if sandbox is not None:
            prepared = await sandbox.prepare_aside(words, command.place.folder, network=command.network)
        self._last_id += 1
        held = HeldCommand(self._last_id, prepared, (lambda line: None) if sandbox is None else sandbox.note)
        async with AsyncExitStack() as undoing:
            undoing.push_async_callback(held.check_repositories)
            async with self._choosing:
                await self._start_in_one(held, command, words, is_merged=is_merged)
            undoing.pop_all()
        return held

    async def _start_in_one(
        self, held: HeldCommand, command: Command, words: Sequence[str], *, is_merged: bool
    ) -> None:
        work, sandbox = command.place.folder, command.sandbox
        wanted = None
        if sandbox is not None and held.prepared is not None:
            wanted = with_python(sandbox, held.prepared.confinement)
        self._holders = [holder for holder in self._holders if holder.is_open and holder.commands]
        for holder in self._holders:
            if await holder.fits(wanted):
                with suppress(HolderError):  # the last command in there has ended just now
                    await holder.start(held, words, work, is_merged=is_merged)
                    return
        holder = CommandHolder(wanted)
        async with AsyncExitStack() as undoing:
            undoing.push_async_callback(holder.end)
            await holder.begin("" if sandbox is None else sandbox.program, self._background)
            self._holders.append(holder)
            await holder.start(held, words, work, is_merged=is_merged)
            undoing.pop_all()

    async def end(self) -> None:
        """End all of them."""
        for holder in self._holders:
            await holder.end()


def with_python(sandbox: Sandbox, confinement: Confinement) -> Confinement:
    """A confinement that shows the Python which holds the commands, and begins in the project."""
    python = Path(sys.base_prefix).resolve()
    shown = [*confinement.shown, str(python)] if sandbox.hides(python) else confinement.shown
    return replace(confinement, work=str(sandbox.project), shown=shown)
