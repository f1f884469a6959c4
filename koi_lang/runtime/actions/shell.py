"""The action that runs a command, after the person has allowed it."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import os
import re
import signal
from typing import Any

from koi_lang.errors import PermissionDenied
from koi_lang.runtime.actions.table import ActionContext, ActionError, action
from koi_lang.settings import environment

MOST_OUTPUT = 30_000
PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")
# Anything that lets a command be more than it looks like; such commands match no pattern.
COMPOUND = re.compile(r"[;&|<>`$\n\\(){}]")
SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH)", re.IGNORECASE)


@action("execute")
async def shell(
    context: ActionContext,
    command: str,
    description: str,
    cwd: str | None = None,
    background: bool = False,
    timeout: int = 120_000,
) -> Any:
    """Run a command; `description` tells the person why. Gives `exitCode`, `stdout`, `stderr`. `timeout` in ms."""
    if PLACEHOLDER.search(command):
        raise ActionError("the command holds a placeholder; find out the value or ask for it first")
    await _permit(context, command, description)
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=cwd,
        env={name: value for name, value in environment().items() if not SECRET.search(name)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    if background:
        context.run.keep_until_end(lambda: _end(process))
        return {"success": True, "pid": process.pid, "background": True}
    return await _finished(process, timeout / 1000)


async def _permit(context: ActionContext, command: str, description: str) -> None:
    """Raise PermissionDenied unless a rule or the person allows the command."""
    if is_allowed(command, context.run.allowed):
        return
    answer = await context.run.host.approve(f"run `{command}`", description)
    if answer == "always":
        context.run.allowed.add(f"shell:{command}")
    elif answer != "yes":
        raise PermissionDenied(f"the person did not allow `{command}`")


def is_allowed(command: str, rules: set[str]) -> bool:
    """Whether rules such as `shell`, `shell:git status` or `shell:ls *` cover a command.

    A pattern covers simple commands only; what joins or redirects commands must be allowed to the letter.
    """
    if "shell" in rules or f"shell:{command}" in rules:
        return True
    patterns = [rule.removeprefix("shell:") for rule in rules if rule.startswith("shell:")]
    return not COMPOUND.search(command) and any(fnmatch.fnmatchcase(command, pattern) for pattern in patterns)


async def _finished(process: asyncio.subprocess.Process, timeout_s: float) -> Any:
    """Wait for the end; a command that takes too long, or whose run is cancelled, is ended with all it started."""
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError:
        await _end(process)
        return {"success": False, "error": f"the command took longer than {timeout_s:g} s and was ended"}
    except asyncio.CancelledError:
        await _end(process)
        raise
    code = process.returncode
    result = {"success": code == 0, "exitCode": code, "stdout": _shown(out), "stderr": _shown(err)}
    return result if code == 0 else {**result, "error": f"the command ended with exit code {code}"}


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _shown(output: bytes) -> str:
    """Output as text; of a long one the beginning and the end."""
    text = output.decode("utf-8", "replace")
    if len(text) <= MOST_OUTPUT:
        return text
    half = MOST_OUTPUT // 2
    return f"{text[:half]}\n… ({len(text) - MOST_OUTPUT} characters left out) …\n{text[-half:]}"
