"""The actions that run commands, after the person has allowed it, and that look after those in the background."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.errors import reason
from koi_lang.runtime.actions.command_output import Output, output_fields
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.command_process import LAST_OUTPUT_S, start_command
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards.commands import WEB_ACCESS, Command, permit_command, place_of, require_open_arguments
from koi_lang.runtime.host import visible

if TYPE_CHECKING:
    from koi_lang.runtime.background_commands import CommandRun
    from koi_lang.runtime.ports import RunPort

PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")
# A command that leaves others behind: `&` that is neither `&&` nor part of a redirection, and programs for that.
LEAVES_OTHERS = re.compile(r"(?<![&<>|])&(?![&>])|\b(?:nohup|setsid|disown)\b")

Result = dict[str, Any]
# What shells end with where there is no such program.
NOT_FOUND = 127
HIDDEN_HOME = "the sandbox hides programs of the home folder, unless `[shell] home` in `koi.toml` lists where they are"
SHELL = "shell"
LIST_COMMANDS, STOP_COMMAND = "list_commands", "stop_command"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long an action waits for its command.

    Attributes:
        background: whether not at all.
        until: a regular expression for a line that is enough; empty for none.
    """

    timeout_ms: int
    background: bool = False
    until: str = ""


@action("execute", aliases={"timeout": "timeout_ms"}, tool="execute", code={"command"})
async def shell(
    context: ActionContext,
    command: str,
    description: str,
    cwd: str | None = None,
    background: bool = False,
    timeout_ms: int = 120_000,
    until: str = "",
) -> Any:
    """Run a command; `description` tells the person why. Gives `exitCode`, `stdout`, `stderr`.

    One that goes on, in the background or after a line that fits the regular expression `until`, gives `command`.
    """
    if PLACEHOLDER.search(command):
        raise ActionError("the command holds a placeholder; find out the value or ask for it first")
    if timeout_ms <= 0:
        raise ActionError(f"`timeout_ms` must be more than 0, not {timeout_ms}")
    agent = context.agent
    place, network = place_of(cwd, context.run.folder), agent.role.allows(WEB_ACCESS)
    asked = Command(command, place, description, agent.name, network=network)
    if context.execution is not None:
        require_open_arguments(command, place)
    allowed = await permit_command(context.run, asked)
    waiting = Waiting(timeout_ms, background, until)
    if background or until or (_may_leave_others(context.run, command) and sys.platform != "win32"):
        result, disabled = await _run_beside(context, allowed, waiting)
    else:
        async with context.run.changes.watch(timeout_ms / 1000, agent.name, confined=allowed.sandbox is not None):
            result, disabled = await _run_to_end(context.run, allowed, timeout_ms / 1000)
    if allowed.sandbox is not None and result.get("exitCode") == NOT_FOUND:
        result["error"] += f"; {HIDDEN_HOME}"
    return {**result, "disabled": disabled} if disabled else result


def _may_leave_others(run: RunPort, command: str) -> bool:
    """Whether a command is started where others can meet it: it may leave some, or some are there."""
    return bool(LEAVES_OTHERS.search(command)) or (run.has_commands and run.commands.are_open())


@contextmanager
def _starting(command: Command) -> Iterator[None]:
    """Raise ActionError where a command cannot be started."""
    try:
        yield
    except OSError as error:
        where = visible(str(command.place.folder))
        raise ActionError(f"the command cannot be started in `{where}`: {reason(error)}") from error
    except ValueError as error:
        raise ActionError(f"the command cannot be started: {error}") from error


async def _run_to_end(run: RunPort, command: Command, timeout_s: float) -> tuple[Result, list[str]]:
    """The result of a command and a line for everything that was disabled after it.

    One that takes too long, or whose run is cancelled, is ended with all it started.
    """
    outputs = {"stdout": Output.of_run(run), "stderr": Output.of_run(run)}
    with _starting(command):
        started = await start_command(command)
        code = await started.read_to_end(tuple(outputs.values()), timeout_s)
    return await _ended_result(run, outputs, code, timeout_s), started.disabled


async def _ended_result(run: RunPort, outputs: Mapping[str, Output], code: int | None, timeout_s: float) -> Result:
    """The result of a command; None as its exit code says that it took too long."""
    if code is None:
        error = f"the command took longer than {timeout_s:g} s and was ended"
        return {"success": False, "exitCode": None, **await output_fields(run, dict(outputs)), "error": error}
    result = {"success": code == 0, "exitCode": code, **await output_fields(run, dict(outputs))}
    return result if code == 0 else {**result, "error": f"the command ended with exit code {code}"}


# ---------------------------------------------------------------- beside


async def _run_beside(context: ActionContext, command: Command, waiting: Waiting) -> tuple[Result, list[str]]:
    """The result of a command that others may meet, and a line for everything that was disabled after it."""
    if sys.platform == "win32":
        raise ActionError("commands in the background need Linux or macOS")
    run, is_merged = context.run, waiting.background or bool(waiting.until)
    with _starting(command):
        started = await run.commands.start(command, is_merged=is_merged, until=waiting.until)
    async with AsyncExitStack() as undoing:
        undoing.push_async_callback(started.held.end)
        if not waiting.background or waiting.until:
            await _wait_beside(context, started, waiting, confined=command.sandbox is not None)
        undoing.pop_all()
    return await _result_beside(context, command, started, waiting), started.held.disabled


async def _wait_beside(context: ActionContext, started: CommandRun, waiting: Waiting, *, confined: bool) -> None:
    """Wait until a command is gone, a line fits, or all that it leaves is there; at most as long as it may take."""

    async def left_others() -> None:
        if started.watch is not None:
            await started.watch.is_over.wait()
        else:
            await started.held.has_ended.wait()
            await asyncio.sleep(LAST_OUTPUT_S)

    timeout_s = waiting.timeout_ms / 1000
    watching = context.run.changes.watch(timeout_s, context.agent.name, confined=confined)
    async with watching, together() as group:
        enough = group.create_task(left_others())
        await asyncio.wait((started.reading, enough), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        enough.cancel()


async def _result_beside(context: ActionContext, command: Command, started: CommandRun, waiting: Waiting) -> Result:
    held, timeout_s = started.held, waiting.timeout_ms / 1000
    run = context.run
    names = ("stdout", "stderr")[: len(started.outputs)]
    outputs = dict(zip(names, started.outputs, strict=True))
    must_end = not waiting.background and not waiting.until and not held.has_ended.is_set()
    if must_end:
        await held.end()
    if must_end or (started.reading.done() and not waiting.background):
        await started.reading
        result = await _ended_result(run, outputs, None if must_end else held.code, timeout_s)
        if held.is_lost:
            result["error"] = "the command has ended the process that held its sandbox; the next one gets another"
        return result | _line_of(started, timeout_s)
    ended = {"exitCode": held.code} if held.code is not None else {}
    texts = {} if waiting.background and not waiting.until else {name: each.text() for name, each in outputs.items()}
    tells = context.execution is not None
    number = run.commands.add(started, command, tells=tells)
    state = "running" if not started.reading.done() else "ended"
    return {"success": True, "command": number, "state": state, **ended, **texts, **_line_of(started, timeout_s)}


def _line_of(started: CommandRun, timeout_s: float) -> Result:
    """What came of waiting for a line."""
    watch = started.watch
    if watch is None:
        return {}
    if watch.error is not None:
        return {"note": f"no line is waited for any more: {watch.error.message}"}
    if watch.line is not None:
        return {"line": watch.line}
    within = "" if started.held.is_gone.is_set() else f" within {timeout_s:g} s"
    return {"note": f"no line has fitted `until`{within}"}


@action("execute", name=STOP_COMMAND, aliases={"id": "command"}, tool="execute", is_occasional=True)
async def stop_command(context: ActionContext, command: int) -> Any:
    """End a command in the background, with all that it has started, by its number."""
    return {"success": True, **await context.run.commands.stop(context.agent.name, command)}


@action("execute", name=LIST_COMMANDS, safe=True, only_looks=True, is_occasional=True)
async def list_commands(context: ActionContext) -> Any:
    """List your commands in the background; gives `command`, `state` and `exitCode` of each."""
    return {"commands": [each.as_data() for each in context.run.commands.of_agent(context.agent.name)]}
