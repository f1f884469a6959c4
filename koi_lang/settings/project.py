"""The settings of a project: `koi.toml`, with one schema, and the MCP servers of `.mcp.json`.

A section is a record whose fields say what they may hold; what is wrong with a file is found and told in one place.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.errors import SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.settings import ProjectSettings, fill_variables
from koi_lang.settings.checks import (
    AMOUNT,
    COUNT,
    SectionT,
    check_one_of,
    check_switch,
    check_texts,
    check_topics,
    read_table,
    suggest_key,
)
from koi_lang.settings.efforts import EFFORTS, effort_help

if TYPE_CHECKING:
    from koi_lang.settings import service
    from koi_lang.settings.service import ServiceSettings
else:
    service = lazy_module("koi_lang.settings.service")


def _check_home(value: Any, name: str) -> tuple[str, str | None] | None:
    """The check of a list of parts of the home folder; the whole of it is none."""
    if problem := check_texts("~/.cargo")["check"](value, name):
        return cast("tuple[str, str | None]", problem)
    for each in value:
        begins, _, rest = each.partition("/")
        if begins != "~" or not rest.strip("/.") or ".." in rest.split("/") or "\0" in rest:
            return f"holds {each!r}, which is no part of the home folder", f'Write `{name} = ["~/.cargo"]`.'
    return None


def _check_model(value: Any, name: str) -> tuple[str, str | None] | None:
    model = value.get("model", "auto") if isinstance(value, dict) and value else value
    if not isinstance(model, str) or not model.strip() or (model.endswith("/") and "://" not in model):
        return "names no model", f'Write `{name} = "provider/model"`.'
    if isinstance(value, str):
        return None
    if unknown := next((option for option in value if option not in MODEL_OPTIONS), ""):
        return f"has no `{unknown}`", suggest_key(unknown, MODEL_OPTIONS)
    score = value.get("min_score", 0.0)
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return f"has a `min_score` {score!r}", "Write a number from 0 to 1, such as `min_score = 0.2`."
    if prefix := next((each for each in PREFIXES if not isinstance(value.get(each, ""), str)), ""):
        return f"has a `{prefix}` that is no text", f'Write `{prefix} = "{PREFIXES[prefix]}"`.'
    effort = value.get("effort", EFFORTS[0])
    return None if effort in EFFORTS else (f"has an `effort` {effort!r}", effort_help(effort))


def _check_address(value: Any, name: str) -> tuple[str, str | None] | None:
    """The check of an address of the web."""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if is_address and parts.username is None and not (parts.query or parts.fragment) and value.isprintable():
        return None
    return f"must be an address of the web, not {value!r}", f'Write `{name} = "http://localhost:8888"`.'


MODEL: Mapping[str, Any] = {"check": _check_model}


def _check_tokens(value: Any, name: str) -> tuple[str, str] | None:
    """The check of a table of texts."""
    is_table = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    return (
        None if is_table else ("is no table of texts", 'Write `[a2a.tokens]` and `"localhost:8080" = "${DESK_TOKEN}"`.')
    )


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """`[shell]`: commands that need no question, and the visible parts of the machine.

    Attributes:
        sandbox: whether they are confined by bubblewrap: where that works, always, or never.
        home: the parts of the home folder that confined commands see, for reading.
    """

    allow: Sequence[str] = field(default=(), metadata=check_texts("git status"))
    sandbox: str = field(default="auto", metadata=check_one_of("auto", "bwrap", "none"))
    home: Sequence[str] = field(default=(), metadata={"check": _check_home})


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """`[permissions]`: rules for files, commands and pages; the first match of `deny`, `allow`, `ask` counts."""

    allow: Sequence[str] = field(default=(), metadata=check_texts("write:src/**"))
    ask: Sequence[str] = field(default=(), metadata=check_texts("write:**"))
    deny: Sequence[str] = field(default=(), metadata=check_texts("*:migrations/**"))


@dataclass(frozen=True, slots=True)
class A2aSettings:
    """`[a2a]`: bearer tokens for agents of other programs, by host."""

    tokens: Mapping[str, str] = field(default_factory=dict, metadata={"check": _check_tokens})


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """`[http]`: hosts and networks of one's own that may be asked."""

    allow: Sequence[str] = field(default=(), metadata=check_texts("localhost:8080"))


@dataclass(frozen=True, slots=True)
class McpSettings:
    """`[mcp.NAME]`, beside the options of a server: tools used without a question, with one, or by nobody."""

    allow: Sequence[str] = field(default=(), metadata=check_texts("write_*"))
    ask: Sequence[str] = field(default=(), metadata=check_texts("write_*"))
    deny: Sequence[str] = field(default=(), metadata=check_texts("write_*"))


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """`[limits]`: the budget of a run (`time` in seconds), and its timeouts."""

    turns: int | None = field(default=None, metadata=COUNT)
    tokens: int | None = field(default=None, metadata=COUNT)
    requests: int | None = field(default=None, metadata=COUNT)
    concurrency: int | None = field(default=None, metadata=COUNT)
    repeats: int | None = field(default=None, metadata=COUNT)
    alternations: int | None = field(default=None, metadata=COUNT)
    failures: int | None = field(default=None, metadata=COUNT)
    pivots: int | None = field(default=None, metadata=COUNT)
    usd: float | None = field(default=None, metadata=AMOUNT)
    time: float | None = field(default=None, metadata=AMOUNT)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`[models]`: the models of agents without one of their own, by role."""

    default: str | dict[str, Any] | None = field(default=None, metadata=MODEL)
    small: str | dict[str, Any] | None = field(default=None, metadata=MODEL)
    judge: str | dict[str, Any] | None = field(default=None, metadata=MODEL)
    embedding: str | dict[str, Any] | None = field(default=None, metadata=MODEL)


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """`[snapshots]`: how much `std/workspace` keeps of a project, in megabytes."""

    megabytes: int = field(default=500, metadata=COUNT)


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """`[memory]`: what becomes of lessons where nobody is at a terminal: nothing, or proposals for `koi learn`."""

    keep: str = field(default="ask", metadata=check_one_of("ask", "propose"))


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """`[check]`: which warnings are shown; `prose`: those about the sentences of playbooks."""

    prose: bool = field(default=True, metadata={"check": check_switch})


@dataclass(frozen=True, slots=True)
class WebSettings:
    """`[web]`: the address of a SearXNG that searches the web."""

    search: str | None = field(default=None, metadata={"check": _check_address})


@dataclass(frozen=True, slots=True)
class TrustSettings:
    """`[trust]`: how far agents are trusted, by topics, which anybody may name."""


SECTIONS: Mapping[str, type] = {
    "a2a": A2aSettings,
    "check": CheckSettings,
    "http": HttpSettings,
    "limits": LimitSettings,
    "mcp": McpSettings,
    "memory": MemorySettings,
    "models": ModelSettings,
    "permissions": PermissionSettings,
    "shell": ShellSettings,
    "snapshots": SnapshotSettings,
    "trust": TrustSettings,
    "web": WebSettings,
}
# Of `serve`, which has tables of its own, is told in `settings.service`; it is read by few commands.
SECTION_NAMES = (*SECTIONS, "serve")

ROLES, LIMITS = (tuple(each.name for each in fields(section)) for section in (ModelSettings, LimitSettings))
WHOLE = tuple(each.name for each in fields(LimitSettings) if each.metadata["kind"] == "whole number")
# What an `llm` block and a role of `[models]` may hold, and their `compact`.
MODEL_OPTIONS = (
    "provider", "model", "temperature", "max_tokens", "effort", "top_p", "seed", "extra_body", "context_tokens",
    "compact", "base_url", "fallback", "cache", "transport", "interface", "min_score", "query_prefix", "passage_prefix",
)  # fmt: skip
# What models for embeddings such as E5 want before a text that is looked for, and before those it is looked for among.
PREFIXES: Mapping[str, str] = {"query_prefix": "query: ", "passage_prefix": "passage: "}
COMPACT_OPTIONS = ("enabled", "reserve_tokens", "keep_tokens", "threshold_tokens")


def read_toml(settings: ProjectSettings) -> Mapping[str, Any]:
    """The content of `koi.toml`, with all sections checked; empty without the file.

    Raises:
        SettingsError: the file is no TOML, or has a misspelt section; others may belong to somebody else.
    """
    loaded: Mapping[str, Any] = settings.parse("koi.toml", tomllib.loads, "It holds TOML, such as `[shell]`.")
    for name, value in loaded.items():
        own = {} if isinstance(value, dict) else SECTIONS
        if sections := [section for section, type in own.items() if name in (each.name for each in fields(type))]:
            why = f"`{name}` of `koi.toml` stands in no section"
            raise SettingsError(why, help=f"Write it below `[{'` or `['.join(sections)}]`.")
        near = None if name in SECTION_NAMES else nearest(name, SECTION_NAMES, alike=SLIP_IN_FOUR)
        if near is not None:
            raise SettingsError(f"`koi.toml` has a section `{name}` that means nothing", help=f"Did you mean `{near}`?")
        if name == "trust":
            check_topics(value)
        elif name == "mcp":
            _allowed_tools(value)
        elif name == "serve":
            service.read_service(value)
        elif name in SECTIONS:
            read_table(SECTIONS[name], value, name)
    return loaded


def allowed_commands(settings: ProjectSettings) -> list[str]:
    """The commands that `[shell] allow = ["git status", "ls *"]` in `koi.toml` allows. Raises SettingsError."""
    return list(_read_section(settings, ShellSettings).allow)


def permissions(settings: ProjectSettings) -> PermissionSettings:
    """The table `[permissions]` of `koi.toml`. Raises SettingsError, where it is no lists of texts."""
    return _read_section(settings, PermissionSettings)


def trust(settings: ProjectSettings) -> Mapping[str, str]:
    """The table `[trust]` of `koi.toml`: topics with their levels.

    Raises:
        SettingsError: a level is not known, or a topic is nearly a kind of rules.
    """
    given: Mapping[str, str] = read_toml(settings).get("trust", {})
    return given


def shell_settings(settings: ProjectSettings) -> ShellSettings:
    """The table `[shell]` of `koi.toml`. Raises SettingsError."""
    return _read_section(settings, ShellSettings)


def allowed_hosts(settings: ProjectSettings) -> list[str]:
    """The hosts of `[http] allow = ["127.0.0.1:8080", "10.1.0.0/16"]` in `koi.toml`. Raises SettingsError."""
    return list(_read_section(settings, HttpSettings).allow)


def agent_token(settings: ProjectSettings, place: str) -> str | None:
    """The token for agents at a host, with its port: `[a2a.tokens] "localhost:8080" = "${DESK_TOKEN}"`.

    Raises:
        SettingsError: a variable is not set, or the table holds something else.
    """
    token = _read_section(settings, A2aSettings).tokens.get(place)
    return None if token is None else fill_variables(token, settings)


def search_address(settings: ProjectSettings) -> str | None:
    """The SearXNG of `search = "http://localhost:8888"` in `[web]` of `koi.toml`. Raises SettingsError."""
    return _read_section(settings, WebSettings).search


def service_settings(settings: ProjectSettings) -> ServiceSettings:
    """The table `[serve]` of `koi.toml`, with those inside it. Raises SettingsError."""
    return service.read_service(read_toml(settings).get("serve", {}))


def prose_is_checked(settings: ProjectSettings) -> bool:
    """Whether warnings about the sentences of playbooks are shown, by `prose` in `[check]`. Raises SettingsError."""
    return _read_section(settings, CheckSettings).prose


def proposes_lessons(settings: ProjectSettings) -> bool:
    """Whether lessons of unattended work are worded for `koi learn`, by `keep` in `[memory]`. Raises SettingsError."""
    return _read_section(settings, MemorySettings).keep == "propose"


def most_of_snapshots(settings: ProjectSettings) -> int:
    """How many bytes snapshots may take, by `megabytes` in `[snapshots]` of `koi.toml`. Raises SettingsError."""
    return _read_section(settings, SnapshotSettings).megabytes * 1_000_000


def allowed_tools(settings: ProjectSettings) -> list[str]:
    """The rules of `allow = ["write_*", "model"]` in `[mcp.NAME]` of `koi.toml`, as `mcp:NAME:write_*`.

    Raises:
        SettingsError: one is no list of texts, or a file is broken.
    """
    return _allowed_tools(read_toml(settings).get("mcp", {}))


def _allowed_tools(own: Any) -> list[str]:
    if not isinstance(own, dict):
        raise SettingsError(
            "`mcp` in `koi.toml` describes no MCP server", help="Write `[mcp.NAME]` on a line of its own."
        )
    rules: list[str] = []
    for name, about in own.items():
        if unknown := next((key for key in about if key not in MCP_OPTIONS), "") if isinstance(about, dict) else "":
            why = f"the MCP server `{name}` in `{TOML_FILE}` has no option `{unknown}`"
            raise SettingsError(why, help=suggest_key(unknown, MCP_OPTIONS))
        given = {key: about[key] for key in SERVER_RULES if key in about} if isinstance(about, dict) else about
        spellings = dict.fromkeys((name, re.sub(r"\W", "_", name)))  # names of programs have no hyphens
        allow = read_table(McpSettings, given, f"mcp.{name}").allow
        rules += [f"mcp:{spelling}:{pattern}" for spelling in spellings for pattern in allow]
    return rules


def limits(settings: ProjectSettings) -> Mapping[str, Any]:
    """The table `[limits]` of `koi.toml`: budgets and timeouts of runs.

    Raises:
        SettingsError: a limit is not known, or no number above 0.
    """
    return _written_fields(_read_section(settings, LimitSettings))


def models(settings: ProjectSettings) -> dict[str, dict[str, Any]]:
    """The table `[models]` of `koi.toml` as options of models by role; `"provider/model"` stands for `{ model = … }`.

    Raises:
        SettingsError: a role is not known, or its value is neither a text nor a table of known options.
    """
    given = _written_fields(_read_section(settings, ModelSettings))
    return {role: {"model": value} if isinstance(value, str) else dict(value) for role, value in given.items()}


def _read_section(settings: ProjectSettings, kind: type[SectionT]) -> SectionT:
    name = next(name for name, section in SECTIONS.items() if section is kind)
    return read_table(kind, read_toml(settings).get(name, {}), name)


def _written_fields(section: Any) -> dict[str, Any]:
    """The fields of a section in a file, in the order of the schema."""
    found = {each.name: getattr(section, each.name) for each in fields(section)}
    return {name: value for name, value in found.items() if value is not None}


# ---------------------------------------------------------------- MCP servers


TOML_FILE, MCP_FILE = "koi.toml", ".mcp.json"
EDITOR = "the editor"
# What is said of a server that is no part of its description.
SERVER_RULES = ("allow", "ask", "deny")
# What a program may declare of a server, and a table `[mcp.NAME]`.
DECLARED_OPTIONS = (
    "command", "args", "env", "cwd", "type", "url", "headers", "oauth", "ask", "deny", "timeout_s",
    "start_timeout_s", "max_bytes",
)  # fmt: skip
MCP_OPTIONS = (*DECLARED_OPTIONS, "allow")


def mcp_servers(settings: ProjectSettings) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The MCP servers that `koi.toml` and `.mcp.json` describe, by name: the file and the options.

    A server that both describe is that of `koi.toml`, as `[mcp.NAME]`; where that has neither `command` nor `url`, but
    rules, for example, its options are laid over those of `.mcp.json`. One that the person names goes before both, with
    the rules of `koi.toml`.

    Raises:
        SettingsError: a file is broken, or a server in it is not described by options.
    """
    found = {name: (MCP_FILE, about) for name, about in _mcp_file(settings).items()}
    own = read_toml(settings).get("mcp", {})
    for name, about in (own if isinstance(own, dict) else {"": own}).items():
        found[name] = _laid_over(found.get(name), about)
    for name, (file, about) in found.items():
        if not isinstance(about, dict):
            help = '`koi.toml` has `[mcp.NAME]`, `.mcp.json` has { "mcpServers": { "NAME": { "command": … } } }.'
            raise SettingsError(f"`{name or 'mcp'}` in `{file}` describes no MCP server", help=help)
    for name, about in settings.servers.items():
        _, in_files = found.get(name, ("", {}))
        found[name] = (EDITOR, {**{rule: in_files[rule] for rule in SERVER_RULES if rule in in_files}, **about})
    return found


def _laid_over(described: tuple[str, Any] | None, about: Any) -> tuple[str, Any]:
    if described is None or not isinstance(described[1], dict) or not isinstance(about, dict):
        return TOML_FILE, about
    return (TOML_FILE, about) if about.keys() & {"command", "url"} else (MCP_FILE, {**described[1], **about})


def _mcp_file(settings: ProjectSettings) -> dict[str, Any]:
    loaded = settings.parse(MCP_FILE, json.loads, "It holds one JSON object.")
    servers = loaded.get("mcpServers", {}) if isinstance(loaded, dict) else None
    if not isinstance(servers, dict):
        help = 'Write { "mcpServers": { "NAME": { "command": … } } }.'
        raise SettingsError(f"`{MCP_FILE}` holds no object `mcpServers`", help=help)
    return servers
