"""The sandbox of commands in a project: what is in force, and why."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import PermissionDeniedError, SettingsError
from koi_lang.health.findings import Finding
from koi_lang.runtime.command_sandbox import Sandbox, find_sandbox
from koi_lang.settings import ProjectSettings

INSTALL = "install the package `bubblewrap`"


def check_sandbox(project_settings: ProjectSettings) -> Iterator[Finding]:
    """Whether commands are confined, and which programs of the person they do not find then."""
    try:
        state = asyncio.run(find_sandbox(project_settings.folder, project_settings))
    except SettingsError:
        return  # told with the settings
    except PermissionDeniedError as error:
        yield Finding("sandbox", "error", error.message, error.help or "")
        return
    if state.sandbox is not None:
        tools = state.sandbox.name_tools()
        programs = f", {tools}" if tools else ""
        message = f"commands run in {state.sandbox.program} and may change the project only{programs}"
        yield Finding("sandbox", "ok", message)
        yield from _hidden_programs(state.sandbox)
    elif state.is_meant or not sys.platform.startswith("linux"):
        yield Finding("sandbox", "ok", f"commands run without one: {state.why}")
    else:
        fix = INSTALL if state.is_missing else ""
        yield Finding("sandbox", "warning", f"commands may do what you may: {state.why}", fix)


def _hidden_programs(sandbox: Sandbox) -> Iterator[Finding]:
    """Folders of PATH that commands do not see."""
    for folder in dict.fromkeys(settings.environment().get("PATH", "").split(os.pathsep)):
        path = Path(folder)
        if path.is_absolute() and path.is_dir() and sandbox.hides(path):
            home = path.is_relative_to(sandbox.home)
            part = f"~/{path.relative_to(sandbox.home).parts[0]}" if home and path != sandbox.home else ""
            fix = f'edit koi.toml: `[shell] home = ["{part}"]`' if part else ""
            yield Finding("sandbox", "warning", f"commands do not find what is in {path}, which is on PATH", fix)
