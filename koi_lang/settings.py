"""The only reader of environment variables and configuration files."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.errors import SettingsError, reason
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import platformdirs
    from dotenv import parser as dotenv_parser
else:
    platformdirs, dotenv_parser = lazy_module("platformdirs"), lazy_module("dotenv.parser")


def environment() -> Mapping[str, str]:
    """The environment of the process as a read-only view."""
    return dict(os.environ)


def variable(name: str) -> str | None:
    """One environment variable; None when it is unset or empty."""
    return os.environ.get(name) or None


def cache_folder() -> Path:
    """Where compiled programs are kept: KOI_CACHE_DIR, else the user's cache folder."""
    return _folder_of_person("CACHE")


def config_folder() -> Path:
    """Where koi keeps what belongs to the person, such as keys: KOI_CONFIG_DIR, else the user's configuration."""
    return _folder_of_person("CONFIG")


def _folder_of_person(kind: Literal["CACHE", "CONFIG"]) -> Path:
    """The folder that a variable names, else one such as `~/.config/koi`; macOS and Windows have others for new files.

    Elsewhere the library, which takes a while to load, says the same and is not asked.
    """
    if chosen := variable(f"KOI_{kind}_DIR"):
        return Path(chosen)
    if base := variable(f"XDG_{kind}_HOME"):
        return Path(base) / "koi"
    folder = Path.home() / f".{kind.lower()}" / "koi"
    if sys.platform not in ("darwin", "win32") or folder.is_dir():
        return folder
    of_system = platformdirs.user_cache_dir if kind == "CACHE" else platformdirs.user_config_dir
    return Path(of_system("koi", appauthor=False))


def dotenv(folder: Path) -> dict[str, str]:
    """The variables of `.env` in a folder: `NAME=value` lines, quotes, comments, `export`; others are left out."""
    try:
        return _variables((folder / ".env").read_text("utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"`.env` cannot be read: {error}", help="It holds lines like `NAME=value`, in UTF-8."
        ) from error


def variables_in(path: str) -> dict[str, str]:
    """The variables of a file like `.env`. Raises SettingsError when it cannot be read."""
    try:
        return _variables(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        help = "It holds lines like `OPENAI_API_KEY=…`."
        raise SettingsError(f"`{path}` cannot be read: {why}", help=help) from error


def _variables(text: str) -> dict[str, str]:
    """Variables by name. `${X}` in a value stays as it is: nothing of the environment is put anywhere unasked."""
    lines = dotenv_parser.parse_stream(StringIO(text))
    return {line.key: line.value for line in lines if line.key is not None and line.value is not None}


def koi_config(folder: Path) -> Mapping[str, Any]:
    """The content of `.koi-config.json` in a folder, empty without the file.

    Raises:
        SettingsError: the file is not a JSON object.
    """
    path = folder / ".koi-config.json"
    try:
        loaded = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"`.koi-config.json` cannot be read: {error}", help="It holds one JSON object.") from error
    if not isinstance(loaded, dict):
        raise SettingsError("`.koi-config.json` holds no JSON object", help='Write `{ "registry": { … } }`.')
    return loaded


SECTIONS = ("http", "limits", "mcp", "models", "shell")


def project(folder: Path) -> Mapping[str, Any]:
    """The content of `koi.toml` in a folder, empty without the file.

    Raises:
        SettingsError: the file is no TOML, or has a misspelt section; others may belong to somebody else.
    """
    try:
        loaded = tomllib.loads((folder / "koi.toml").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"`koi.toml` cannot be read: {error}", help="It holds TOML, such as `[shell]`.") from error
    for name in loaded:
        # What is less like one of ours, such as `[help]`, may belong to somebody else.
        near = None if name in SECTIONS else nearest(name, SECTIONS, alike=SLIP_IN_FOUR)
        if near is not None:
            raise SettingsError(f"`koi.toml` has a section `{name}` that means nothing", help=f"Did you mean `{near}`?")
    return loaded


def allowed_commands(folder: Path) -> list[str]:
    """The commands that `[shell] allow = ["git status", "ls *"]` in `koi.toml` allows. Raises SettingsError."""
    shell = project(folder).get("shell", {})
    allow = shell.get("allow", []) if isinstance(shell, dict) else None
    if not isinstance(allow, list) or not all(isinstance(command, str) for command in allow):
        raise SettingsError("`[shell] allow` in `koi.toml` is no list of texts", help='Write `allow = ["git status"]`.')
    return allow


def allowed_hosts(folder: Path) -> list[str]:
    """What `[http] allow = ["127.0.0.1:8080", "10.1.0.0/16"]` in `koi.toml` allows. Raises SettingsError."""
    http = project(folder).get("http", {})
    allow = http.get("allow", []) if isinstance(http, dict) else None
    if not isinstance(allow, list) or not all(isinstance(host, str) for host in allow):
        help = 'Write `allow = ["localhost:8080"]`.'
        raise SettingsError("`[http] allow` in `koi.toml` is no list of texts", help=help)
    return allow


def allowed_tools(folder: Path) -> list[str]:
    """What `allow = ["write_*", "model"]` in `[mcp.NAME]` of `koi.toml` allows, as rules `mcp:NAME:write_*`.

    Raises:
        SettingsError: one is no list of texts, or a file is broken.
    """
    rules: list[str] = []
    own = project(folder).get("mcp", {})
    for name, about in own.items() if isinstance(own, dict) else ():
        allow = about.get("allow", []) if isinstance(about, dict) else []
        if not isinstance(allow, list) or not all(isinstance(pattern, str) for pattern in allow):
            help = 'Write `allow = ["write_*"]`.'
            raise SettingsError(f"`allow` in `[mcp.{name}]` of `koi.toml` is no list of texts", help=help)
        spellings = dict.fromkeys((name, re.sub(r"\W", "_", name)))  # names of programs have no hyphens
        rules += [f"mcp:{spelling}:{pattern}" for spelling in spellings for pattern in allow]
    return rules


WHOLE = ("turns", "tokens", "requests", "concurrency", "repeats", "alternations", "failures", "pivots")
LIMITS = (*WHOLE, "usd", "time")


def limits(folder: Path) -> Mapping[str, Any]:
    """The table `[limits]` of `koi.toml`: what runs in a folder may spend, and how patient they are.

    Raises:
        SettingsError: a limit is not known, or no number above 0.
    """
    given = project(folder).get("limits", {})
    if not isinstance(given, dict):
        raise SettingsError("`limits` in `koi.toml` is no table", help="Write `[limits]` on a line of its own.")
    for name, value in given.items():
        if name not in LIMITS:
            known = ", ".join(f"`{limit}`" for limit in LIMITS)
            raise SettingsError(f"`[limits]` in `koi.toml` has no `{name}`", help=f"It may hold {known}.")
        kinds = (int,) if name in WHOLE else (int, float)
        if type(value) not in kinds or value <= 0:
            kind = "whole number" if name in WHOLE else "number"
            raise SettingsError(f"`{name}` in `[limits]` of `koi.toml` must be a {kind} above 0, not {value!r}")
    return given


ROLES = ("default", "small", "judge", "embedding")
# What an `llm` block and `[models]` may hold, and their `compact`.
MODEL_OPTIONS = (
    "provider",
    "model",
    "temperature",
    "max_tokens",
    "context_tokens",
    "compact",
    "base_url",
    "fallback",
    "cache",
)
COMPACT_OPTIONS = ("enabled", "reserve_tokens", "keep_tokens", "threshold_tokens")


def models(folder: Path) -> dict[str, dict[str, Any]]:
    """The table `[models]` of `koi.toml` as options of models by role; `"provider/model"` stands for `{ model = … }`.

    Raises:
        SettingsError: a role is not known, or its value is neither a text nor a table.
    """
    given = project(folder).get("models", {})
    if not isinstance(given, dict):
        raise SettingsError("`models` in `koi.toml` is no table", help="Write `[models]` on a line of its own.")
    for role, value in given.items():
        if role not in ROLES:
            known = ", ".join(f"`{each}`" for each in ROLES)
            raise SettingsError(f"`[models]` in `koi.toml` has no `{role}`", help=f"It may hold {known}.")
        if not isinstance(value, (str, dict)) or not value:
            help = f'Write `{role} = "provider/model"`.'
            raise SettingsError(f"`{role}` in `[models]` of `koi.toml` names no model", help=help)
        for option in value if isinstance(value, dict) else ():
            if option not in MODEL_OPTIONS:
                known = ", ".join(f"`{each}`" for each in MODEL_OPTIONS)
                message = f"`{role}` in `[models]` of `koi.toml` has no `{option}`"
                raise SettingsError(message, help=f"It may hold {known}.")
    return {role: {"model": value} if isinstance(value, str) else dict(value) for role, value in given.items()}


MCP_FILE = ".mcp.json"
FILLED = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def mcp_servers(folder: Path) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The MCP servers that `koi.toml` and `.mcp.json` describe, by name: the file and the options.

    A server that both describe is that of `koi.toml`, as `[mcp.NAME]`; where that has neither `command` nor `url`, but
    rules, for example, its options are laid over those of `.mcp.json`.

    Raises:
        SettingsError: a file is broken, or a server in it is not described by options.
    """
    found = {name: (MCP_FILE, about) for name, about in _mcp_file(folder).items()}
    own = project(folder).get("mcp", {})
    for name, about in (own if isinstance(own, dict) else {"": own}).items():
        found[name] = _laid_over(found.get(name), about)
    for name, (file, about) in found.items():
        if not isinstance(about, dict):
            help = '`koi.toml` has `[mcp.NAME]`, `.mcp.json` has { "mcpServers": { "NAME": { "command": … } } }.'
            raise SettingsError(f"`{name or 'mcp'}` in `{file}` describes no MCP server", help=help)
    return found


def _laid_over(described: tuple[str, Any] | None, about: Any) -> tuple[str, Any]:
    if described is None or not isinstance(described[1], dict) or not isinstance(about, dict):
        return "koi.toml", about
    return ("koi.toml", about) if about.keys() & {"command", "url"} else (MCP_FILE, {**described[1], **about})


def _mcp_file(folder: Path) -> dict[str, Any]:
    try:
        loaded = json.loads((folder / MCP_FILE).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"`{MCP_FILE}` cannot be read: {error}", help="It holds one JSON object.") from error
    servers = loaded.get("mcpServers", {}) if isinstance(loaded, dict) else None
    if not isinstance(servers, dict):
        help = 'Write { "mcpServers": { "NAME": { "command": … } } }.'
        raise SettingsError(f"`{MCP_FILE}` holds no object `mcpServers`", help=help)
    return servers


def fill_variables(text: str, folder: Path) -> str:
    """A text with `${NAME}` and `${NAME:-default}` replaced by variables of the environment, else of `.env`.

    Raises:
        SettingsError: a variable is not set and has no default.
    """

    def value_of(found: re.Match[str]) -> str:
        value = variable(found[1]) or dotenv(folder).get(found[1]) or found[2]
        if value is None:
            raise SettingsError(f"the variable `{found[1]}` is not set", help=f"Set it, or write ${{{found[1]}:-…}}.")
        return value

    return FILLED.sub(value_of, text)
