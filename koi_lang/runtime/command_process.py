"""Commands as processes: the person's leave for one, its start, and the end of all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process, SubprocessStreamProtocol
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.redaction.redactor import is_secret
from koi_lang.runtime.actions.command_output import READ_SIZE, Output
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards.commands import Command
from koi_lang.settings import environment
from koi_lang.system.bubblewrap import confined_words
from koi_lang.system.process_groups import end_group

if TYPE_CHECKING:
    from koi_lang.runtime import process_guard
    from koi_lang.runtime.guards.repositories import RepositoryWatch
else:
    process_guard = lazy_module("koi_lang.runtime.process_guard")

# How long the output of a command that has ended is waited for, where somebody else holds it open.
LAST_OUTPUT_S = 0.5


class CommandProtocol(SubprocessStreamProtocol):
    """The streams of a command; they report its end even while its children hold them open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=READ_SIZE, loop=loop)
        self.has_ended = asyncio.Event()

    def process_exited(self) -> None:
        """Note that the process has ended; asyncio calls this."""
        super().process_exited()
        self.has_ended.set()


@dataclass(frozen=True, slots=True)
class CommandProcess:
    """A command that runs, in a process group of its own.

    Attributes:
        has_ended: set when it has, whatever it has started.
        repositories: what is disabled in them once it has ended; None without a sandbox.
        note: receives a line for the person about each of that.
        disabled: these lines.
    """

    process: Process
    transport: asyncio.SubprocessTransport
    has_ended: asyncio.Event
    repositories: RepositoryWatch | None = None
    note: Callable[[str], None] = lambda line: None
    disabled: list[str] = field(default_factory=list)

    async def end(self) -> None:
        """End it and its whole process group, even with unread or inherited output."""
        end_group(self.process.pid)
        for pipe in map(self.transport.get_pipe_transport, (1, 2)):
            if pipe is not None:
                pipe.close()  # the end of the process is not told while a pipe is open
        await self.process.wait()
        await self._check_repositories()

    async def _check_repositories(self) -> None:
        if self.repositories is not None:
            for line in await asyncio.to_thread(self.repositories.end):
                self.disabled.append(line)
                self.note(line)

    async def read_to_end(self, outputs: Sequence[Output], timeout_s: float) -> int | None:
        """Read its output until it has ended, and every process that holds the output open.

        Should this process be killed meanwhile, its group is ended.

        Args:
            outputs: for stdout and, where that is apart, stderr.

        Returns:
            Its exit code; None where it took too long. Then, and when this is cancelled, its group has been ended.

        Raises:
            OSError: nothing can be started that would end its group; it has not begun.
        """
        streams = [stream for stream in (self.process.stdout, self.process.stderr) if stream is not None]
        # A sandbox ends with its parent.
        guarding = contextlib.nullcontext() if self.repositories else process_guard.guard_group(self.process.pid)
        try:
            async with guarding, asyncio.timeout(timeout_s):
                if self.process.stdin is not None:
                    self.process.stdin.write(b"\n")
                    self.process.stdin.close()
                reading = map(Output.read, outputs, streams)
                await asyncio.gather(*reading, self.process.wait())
        except TimeoutError:
            return None
        finally:
            if self.process.returncode is None or not all(stream.at_eof() for stream in streams):
                await self.end()
            await self._check_repositories()
        return self.process.returncode

    async def read_and_end(self, outputs: Sequence[Output], timeout_s: float) -> int | None:
        """Like `read_to_end`, for a command that leaves nothing behind: the rest of its group ends soon after it."""

        async def end_rest() -> None:
            await self.has_ended.wait()
            await asyncio.sleep(LAST_OUTPUT_S)
            await self.end()

        try:
            async with together() as group:
                ending = group.create_task(end_rest())
                try:
                    return await self.read_to_end(outputs, timeout_s)
                finally:
                    ending.cancel()
        finally:
            await self.end()


async def start_command(command: Command, *, silent: bool = False, is_merged: bool = False) -> CommandProcess:
    """A command that has been allowed, without keys in its environment.

    Without a sandbox, which ends with this process, it begins only when it is read, once its end is provided for.

    Args:
        silent: whether nobody reads what it writes.
        is_merged: whether stderr is written to stdout.

    Raises:
        OSError: there is no such program or folder.
        ValueError: the command or a variable holds a character that none may hold, or a sandbox hides what it needs.
    """
    loop, sandbox = asyncio.get_running_loop(), command.sandbox
    variables = {name: value for name, value in environment().items() if not is_secret(name, value)}
    confined, own = None, command.words
    if sandbox is not None:
        inner, work = command.words or ("/bin/sh", "-c", command.text), command.place.folder
        confined = await sandbox.prepare_aside(inner, work, changeable=command.changeable, network=command.network)
        own = confined_words(sandbox.program, confined.confinement, inner)
    held = process_guard.hold_command(own or ("sh", "-c", command.text)) if sandbox is None else None
    words = held or own
    spawn: Callable[..., Coroutine[Any, Any, tuple[Any, Any]]] = (
        loop.subprocess_exec if words else partial(loop.subprocess_shell, cmd=command.text)
    )

    async def start() -> CommandProcess:
        transport, protocol = await spawn(
            lambda: CommandProtocol(loop),
            *words,
            cwd=command.place.folder,
            env={**variables, **command.variables},
            stdin=DEVNULL if held is None else PIPE,
            stdout=DEVNULL if silent else PIPE,
            stderr=DEVNULL if silent else STDOUT if is_merged else PIPE,
            start_new_session=True,
        )
        process = Process(transport, protocol, loop)
        if confined is None or sandbox is None:
            return CommandProcess(process, transport, protocol.has_ended)
        return CommandProcess(process, transport, protocol.has_ended, confined.repositories, sandbox.note)

    try:
        return await _finish_start(start())
    except (OSError, ValueError):
        if confined is not None:
            await asyncio.to_thread(confined.repositories.end)
        raise


async def _finish_start(starting: Coroutine[Any, Any, CommandProcess]) -> CommandProcess:
    """A command that is being started. Cancelled meanwhile, it is first started to the end, so that it can be ended."""
    command: asyncio.Future[CommandProcess] = asyncio.get_running_loop().create_future()

    async def start() -> None:
        try:
            command.set_result(await starting)
        except (OSError, ValueError) as error:
            command.set_exception(error)

    try:
        await asyncio.shield(start())
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await (await command).end()
        raise
    return command.result()
