"""Python, the packages, the keyring and the disk."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import PermissionDeniedError, SettingsError
from koi_lang.health.findings import Finding, Level
from koi_lang.runtime.command_sandbox import Sandbox, find_sandbox
from koi_lang.settings import ProjectSettings
from koi_lang.setup.keys import system
from koi_lang.system.installation import this_installation
from koi_lang.version import DISTRIBUTION

OLDEST = (3, 11)
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?P<bounds>[^;]*)(?P<when>;.*)?")
BOUND = re.compile(r"(?P<sign>>=|<)(?P<version>[\d.]+)")
LITTLE, ALMOST_NOTHING = 500 * 2**20, 20 * 2**20
KEYRING_LIMIT_S = 3.0


def python() -> Iterator[Finding]:
    """Which Python this is."""
    text = f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    if sys.version_info[:2] >= OLDEST:
        yield Finding("python", "ok", text)
    else:
        yield Finding("python", "error", f"{text} is too old", "install Python 3.11 or newer")


def packages() -> Iterator[Finding]:
    """Whether everything that koi needs is installed in a version that it works with."""
    try:
        needed = [requirement for requirement in requires(DISTRIBUTION) or () if "extra" not in requirement]
    except PackageNotFoundError:
        yield Finding(
            "packages", "warning", "koi is not installed but run from a folder", this_installation().install_command()
        )
        return
    wrong = [finding for requirement in needed for finding in _package(requirement)]
    yield from wrong
    if not wrong:
        yield Finding(
            "packages", "ok", f"{DISTRIBUTION} {version(DISTRIBUTION)} and the {len(needed)} packages it needs"
        )


def _package(requirement: str) -> Iterator[Finding]:
    match = REQUIREMENT.fullmatch(requirement)
    if match is None:
        return
    name, bounds = match["name"], match["bounds"].strip()
    fix = f'pip install "{name}{bounds}"'
    try:
        found = version(name)
    except PackageNotFoundError:
        yield Finding("packages", "error", f"`{name}` is not installed", fix)
        return
    if not all(_holds(found, bound["sign"], bound["version"]) for bound in BOUND.finditer(bounds)):
        yield Finding("packages", "error", f"`{name}` {found} is not {bounds}", fix)


def _holds(found: str, sign: str, bound: str) -> bool:
    have, want = _numbers(found), _numbers(bound)
    return have >= want if sign == ">=" else have < want


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])


def keyring() -> Iterator[Finding]:
    """Whether there is a keyring for keys."""
    try:
        name = system.backend(KEYRING_LIMIT_S)
    except system.KeyringError as error:
        yield Finding("keyring", "warning", f"{error.message}; keys are kept in a file that only you can read")
        return
    if name is None:
        yield Finding("keyring", "ok", "this system has none; keys are kept in a file that only you can read")
    else:
        yield Finding("keyring", "ok", name)


def disk(folder: Path) -> Iterator[Finding]:
    """How much room there is where koi writes."""
    places = (folder, _existing(settings.cache_folder()), _existing(settings.config_folder()))
    for place in {place.stat().st_dev: place for place in reversed(places)}.values():
        free = shutil.disk_usage(place).free
        text = f"{free / 2**30:.1f} GiB free at {place}"
        level: Level = "error" if free < ALMOST_NOTHING else "warning" if free < LITTLE else "ok"
        yield Finding("disk", level, text, "" if level == "ok" else "koi cache clear")


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


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
