"""The action that runs a command, after the person has allowed it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from koi_lang.errors import reason
from koi_lang.runtime.actions.command_output import Output, output_fields
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.command_process import Command, CommandProcess, permit_command, start_command
from koi_lang.runtime.guards.commands import WEB_ACCESS, place_of, require_open_arguments
from koi_lang.runtime.host import visible

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")

# What shells end with where there is no such program.
NOT_FOUND = 127
HIDDEN_HOME = "the sandbox hides programs of the home folder, unless `[shell] home` in `koi.toml` lists where they are"


@action("execute", aliases={"timeout": "timeout_ms"}, tool="execute")
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
    agent = context.agent
    place, network = place_of(cwd, context.run.folder), agent.role.allows(WEB_ACCESS)
    asked = Command(command, place, description, agent.name, network=network)
    if context.execution is not None:
        require_open_arguments(command, place)
    allowed = await permit_command(context.run, asked)
    if background:
        started = await _start(allowed, silent=True)
        context.run.keep_until_end(started.end)
        return {"success": True, "pid": started.process.pid, "background": True}
    async with context.run.changes.watch(timeout_ms / 1000, context.agent.name):
        started = await _start(allowed, silent=False)
        result = await _wait_for_end(context.run, started, timeout_ms / 1000)
    if allowed.sandbox is not None and result["exitCode"] == NOT_FOUND:
        result["error"] += f"; {HIDDEN_HOME}"
    return {**result, "disabled": started.disabled} if started.disabled else result


async def _start(command: Command, *, silent: bool) -> CommandProcess:
    try:
        return await start_command(command, silent=silent)
    except OSError as error:
        folder = visible(str(command.place.folder))
        raise ActionError(f"the command cannot be started in `{folder}`: {reason(error)}") from error
    except ValueError as error:
        raise ActionError(f"the command cannot be started: {error}") from error


async def _wait_for_end(run: RunPort, started: CommandProcess, timeout_s: float) -> Any:
    """Wait for the end; a command that takes too long, or whose run is cancelled, is ended with all it started."""
    out, err = Output.of_run(run), Output.of_run(run)
    outputs = {"stdout": out, "stderr": err}
    code = await started.read_to_end((out, err), timeout_s)
    if code is None:
        error = f"the command took longer than {timeout_s:g} s and was ended"
        return {"success": False, "exitCode": None, **await output_fields(run, outputs), "error": error}
    result = {"success": code == 0, "exitCode": code, **await output_fields(run, outputs)}
    return result if code == 0 else {**result, "error": f"the command ended with exit code {code}"}
