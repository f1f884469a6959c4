"""The action that runs a command, after the person has allowed it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import PermissionDeniedError, reason
from koi_lang.redaction.names import is_secret_variable
from koi_lang.runtime.actions.command_output import READ_SIZE, Output, output_fields
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.guards.approval import ApprovalRequest, request_approval
from koi_lang.runtime.guards.commands import CommandPermission, Place, place_of
from koi_lang.runtime.host import NobodyAllowsError, visible
from koi_lang.runtime.mcp.safe_text import clip_text
from koi_lang.settings import environment
from koi_lang.system.process_groups import end_group

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

MOST_DESCRIBED = 300
PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")


@action("execute", aliases={"timeout": "timeout_ms"})
async def shell(
    context: ActionContext,
    command: str,
    description: str,
    cwd: str | None = None,
    background: bool = False,
    timeout_ms: int = 120_000,
) -> Any:
    """Run a command; `description` tells the person why. Gives `exitCode`, `stdout`, `stderr`."""
    if PLACEHOLDER.search(command):
        raise ActionError("the command holds a placeholder; find out the value or ask for it first")
    if timeout_ms <= 0:
        raise ActionError(f"`timeout_ms` must be more than 0, not {timeout_ms}")
    place = place_of(cwd, context.run.folder)
    await _permit(context, command, place, description)
    started = await _start_command(command, place.folder, silent=background)
    if background:
        context.run.keep_until_end(started.end)
        return {"success": True, "pid": started.process.pid, "background": True}
    return await _wait_for_end(context.run, started, timeout_ms / 1000)


async def _permit(context: ActionContext, command: str, place: Place, description: str) -> None:
    """Raise PermissionDeniedError unless a rule or the person allows the command."""
    where = f" in `{place.name}`" if place.name else ""
    detail = clip_text(description, MOST_DESCRIBED)
    permission = CommandPermission(command, place)
    request = ApprovalRequest(f"run `{command}`{where}", detail, context.agent.name, permission)
    verdict = await request_approval(context.run.host, context.run.permissions, request)
    if verdict == "unanswered":
        told = f"nobody can be asked to allow `{visible(command)}`{visible(where)}, so it was not run"
        raise NobodyAllowsError(told, help="`--allow shell` allows commands beforehand.")
    if verdict == "refused":
        raise PermissionDeniedError(f"the person did not allow `{command}`")


# ---------------------------------------------------------------- processes


@dataclass(frozen=True, slots=True)
class Command:
    """A command that runs, in a process group of its own."""

    process: Process
    transport: asyncio.SubprocessTransport

    async def end(self) -> None:
        """End it and everything in its group, whoever holds its output open, and however much of that is unread."""
        end_group(self.process.pid)
        for pipe in map(self.transport.get_pipe_transport, (1, 2)):
            if pipe is not None:
                pipe.close()  # the end of the process is not told while a pipe is open
        await self.process.wait()


async def _start_command(command: str, folder: Path, *, silent: bool) -> Command:
    """The command without keys in its environment. Raises ActionError."""
    loop, output = asyncio.get_running_loop(), DEVNULL if silent else PIPE

    async def start() -> Command:
        transport, protocol = await loop.subprocess_shell(
            lambda: SubprocessStreamProtocol(limit=READ_SIZE, loop=loop),
            command,
            cwd=folder,
            env={name: value for name, value in environment().items() if not is_secret_variable(name)},
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        return Command(Process(transport, protocol, loop), transport)

    try:
        return await _to_the_end(start())
    except OSError as error:
        raise ActionError(f"the command cannot be started in `{visible(str(folder))}`: {reason(error)}") from error
    except ValueError as error:
        raise ActionError(f"the command cannot be started: {error}") from error


async def _to_the_end(starting: Coroutine[Any, Any, Command]) -> Command:
    """A command that is being started. Cancelled meanwhile, it is first started to the end, so that it can be ended."""
    command: asyncio.Future[Command] = asyncio.get_running_loop().create_future()

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


async def _wait_for_end(run: RunPort, command: Command, timeout_s: float) -> Any:
    """Wait for the end; a command that takes too long, or whose run is cancelled, is ended with all it started."""
    process = command.process
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = Output(), Output()
    outputs = {"stdout": out, "stderr": err}
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(out.read(process.stdout), err.read(process.stderr), process.wait())
    except TimeoutError:
        error = f"the command took longer than {timeout_s:g} s and was ended"
        return {"success": False, "exitCode": None, **await output_fields(run, outputs), "error": error}
    finally:
        if process.returncode is None or not (process.stdout.at_eof() and process.stderr.at_eof()):
            await command.end()
    code = process.returncode
    result = {"success": code == 0, "exitCode": code, **await output_fields(run, outputs)}
    return result if code == 0 else {**result, "error": f"the command ended with exit code {code}"}
