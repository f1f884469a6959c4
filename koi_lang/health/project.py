"""The project in a folder: its settings, and the MCP servers that its programs declare."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from httpx2 import AsyncClient, HTTPError, InvalidURL

from koi_lang.compiler import nodes as n
from koi_lang.errors import KoiError
from koi_lang.health.findings import Finding
from koi_lang.program import build, loader
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.mcp.configured import options_of, require_tables
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.settings import FILLED, ProjectSettings, dotenv, koi_config, project, trust_in_folder

MAX_FILES = 50
LIMIT_S = 3.0
SECTION_READERS: tuple[Callable[[ProjectSettings], Any], ...] = (
    *(project.limits, project.shell_settings, project.permissions, project.trust, project.allowed_hosts),
    *(project.allowed_tools, project.models, project.service_settings, project.search_address),
    *(
        project.most_of_snapshots,
        project.prose_is_checked,
        project.proposes_lessons,
        lambda settings: project.agent_token(settings, ""),
    ),
)


def _check_rules(settings: ProjectSettings) -> None:
    """Raise SettingsError where `[permissions]` has a rule that is none."""
    given = project.permissions(settings)
    for name, rules in (("allow", given.allow), ("ask", given.ask), ("deny", given.deny)):
        for rule in rules:
            parse_rule(rule, f"[permissions] {name}")


READERS: tuple[tuple[str, Callable[[ProjectSettings], Any]], ...] = (
    *(("koi.toml", read) for read in (*SECTION_READERS, _check_rules, require_tables)),
    (".koi-config.json", koi_config),
    (".env", dotenv),
    (".mcp.json or koi.toml", project.mcp_servers),
)


def settings_files(settings: ProjectSettings) -> Iterator[Finding]:
    """Whether the settings files of a project can be read; each fault is reported once."""
    if settings.files and not settings.is_trusted:
        yield Finding("project", "warning", trust_in_folder(settings).note, "koi trust")
    for name, error in setting_faults(settings):
        yield Finding("project", "error", error.message, f"edit {name}: {error.help}" if error.help else "")


def setting_faults(settings: ProjectSettings) -> Iterator[tuple[str, KoiError]]:
    """What is wrong with the settings files of a project, trusted or not, each with the file."""
    reported: set[str] = set()
    whole = replace(settings, is_trusted=True)
    for name, read in READERS:
        try:
            read(whole)
        except KoiError as error:
            if error.message not in reported:
                reported.add(error.message)
                yield name, error


def servers(settings: ProjectSettings, *, offline: bool) -> Iterator[Finding]:
    """Whether the MCP servers that programs and settings of a project describe can be found; none is started."""
    declared = _declared_servers(settings.folder)
    for name, options in declared.items():
        yield from _check_server(name, options, offline=offline)
    for name in _described_servers(settings):
        if name not in declared:
            try:
                yield from _check_server(
                    name, options_of(name, settings), offline=offline or _is_filled(name, settings)
                )
            except KoiError as error:
                yield Finding("mcp", "error", error.message)


def _is_filled(name: str, settings: ProjectSettings) -> bool:
    """Whether variables stand in the address of a server: these may be keys, and nobody has said to send them."""
    _, about = project.mcp_servers(settings)[name]
    return FILLED.search(str(about.get("url", ""))) is not None


def _check_server(name: str, options: Mapping[str, Any], *, offline: bool) -> Iterator[Finding]:
    if "command" in options:
        yield _check_command(name, str(options["command"]))
    elif not offline and options.get("url"):
        yield asyncio.run(_answering(name, str(options["url"])))


def started_servers(settings: ProjectSettings) -> Iterator[Finding]:
    """The tools of MCP servers that the programs of a project declare; no Python of programs is executed."""
    for path in _programs(settings.folder):
        try:
            with loader.inspecting():
                declared = [value for value in vars(loader.load(str(path))).values() if isinstance(value, Mcp)]
        except KoiError as error:
            message = f"{path.name} cannot be loaded: {error.message.splitlines()[0]}"
            yield Finding("mcp", "error", message, f"koi check {path.name}")
        else:
            for server in declared:
                yield asyncio.run(_check_start(server, settings))


def _programs(folder: Path) -> list[Path]:
    """The programs that may declare a server."""
    files = [path for path in sorted(folder.glob("*.koi")) if path.is_file() and os.access(path, os.R_OK)]
    return [path for path in files[:MAX_FILES] if b"mcp" in path.read_bytes()]


def _declared_servers(folder: Path) -> dict[str, dict[str, Any]]:
    """The servers by name, with those of their options that are plain values."""
    found: dict[str, dict[str, Any]] = {}
    for path in _programs(folder):
        with suppress(KoiError):
            files = build.check(str(path)).files
            nodes = (node for file in files for node, _ in file.index.of(n.Mcp))
            found |= {node.name.name: _plain(node.options) for node in nodes}
    return found


def _described_servers(settings: ProjectSettings) -> list[str]:
    """The names of the servers in the settings of a project; none where these are broken, which is told elsewhere."""
    with suppress(KoiError):
        return list(project.mcp_servers(settings))
    return []


def _plain(expression: n.Expression) -> Any:
    """The value of an expression that says it plainly; None for all that is computed."""
    match expression:
        case n.Object(properties=properties):
            pairs = [(each.key, _plain(each.value)) for each in properties if isinstance(each, n.Property)]
            return {key: value for key, value in pairs if isinstance(key, str) and value is not None}
        case n.Array(items=items):
            return [_plain(item) for item in items]
        case n.Text(value=value) | n.Literal(value=value):
            return value
    return None


def _check_command(name: str, command: str) -> Finding:
    place = shutil.which(command)
    if place is None:
        return Finding("mcp", "error", f"the command `{command}` of `{name}` is not installed", f"which {command}")
    return Finding("mcp", "ok", f"{name}: {place}")


async def _check_start(server: Mcp, settings: ProjectSettings) -> Finding:
    async with together() as group:
        servers = Servers(group, settings)
        try:
            connection = await servers.connect(server)
            return Finding("mcp", "ok", f"{server.name}: {len(connection.tools)} tools")
        except KoiError as error:
            return Finding("mcp", "error", error.message.splitlines()[0])
        finally:
            servers.stop()


async def _answering(name: str, url: str) -> Finding:
    try:
        async with AsyncClient(timeout=LIMIT_S) as client, client.stream("GET", url) as response:
            return Finding("mcp", "ok", f"{name}: answers with status {response.status_code}")
    except (HTTPError, InvalidURL) as error:
        return Finding("mcp", "error", f"`{name}` does not answer at {redactor()(url)}: {type(error).__name__}")
