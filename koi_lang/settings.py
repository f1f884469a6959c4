"""The only reader of environment variables and configuration files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether the value of a variable of that name must not be shown, written or given to other programs."""
    return SECRET_NAME.search(name) is not None


def environment() -> Mapping[str, str]:
    """The environment of the process as a read-only view."""
    return dict(os.environ)


def variable(name: str) -> str | None:
    """One environment variable; None when it is unset or empty."""
    return os.environ.get(name) or None


def cache_folder() -> Path:
    """Where compiled programs are kept: KOI_CACHE_DIR, else the user's cache folder."""
    chosen = variable("KOI_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = variable("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "koi"


def dotenv(folder: Path) -> dict[str, str]:
    """The variables of `.env` in a folder: `NAME=value` lines, `#` comments, optional quotes and `export`."""
    try:
        text = (folder / ".env").read_text("utf-8")
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"`.env` cannot be read: {error}") from error
    pairs = (line.strip().removeprefix("export ").partition("=") for line in text.splitlines())
    return {name.strip(): _unquoted(value.strip()) for name, mark, value in pairs if mark and not name.startswith("#")}


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.split(" #", 1)[0].rstrip()


def key(name: str, folder: Path) -> str | None:
    """A provider's key by its variable name: from the environment, else from `.env` in the folder."""
    return variable(name) or dotenv(folder).get(name) or None


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


def project(folder: Path) -> Mapping[str, Any]:
    """The content of `koi.toml` in a folder, empty without the file.

    Raises:
        SettingsError: the file is no TOML.
    """
    import tomllib

    try:
        return tomllib.loads((folder / "koi.toml").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"`koi.toml` cannot be read: {error}", help="It holds TOML, such as `[shell]`.") from error


def allowed_commands(folder: Path) -> list[str]:
    """The commands that `[shell] allow = ["git status", "ls *"]` in `koi.toml` allows. Raises SettingsError."""
    shell = project(folder).get("shell", {})
    allow = shell.get("allow", []) if isinstance(shell, dict) else None
    if not isinstance(allow, list) or not all(isinstance(command, str) for command in allow):
        raise SettingsError("`[shell] allow` in `koi.toml` is no list of texts", help='Write `allow = ["git status"]`.')
    return allow


WHOLE = ("turns", "tokens", "repeats", "alternations", "failures", "pivots")
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
