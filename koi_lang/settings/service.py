"""`[serve]` of `koi.toml`: the programs of a service, its users with their limits, and its webhooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.errors import SettingsError
from koi_lang.settings.checks import (
    AMOUNT,
    COUNT,
    Problem,
    check_some_of,
    check_switch,
    check_texts,
    read_table,
    suggest_key,
)

# Whoever has the token of the start; nobody else is called so.
ADMIN = "admin"
USER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
DEFAULT_ADDRESS = "127.0.0.1:8421"
ADDRESS = re.compile(r"(?:(?P<host>[^\s:/\[\]]+)|\[(?P<six>[0-9a-fA-F:.]+)\])?:(?P<port>\d{1,5})")
# What can be told to others over HTTP.
HOOK_EVENTS = ("run.ended", "run.failed", "question.open", "approval.open", "budget.80", "budget.100")
# Commands for admins, and for users whose table names them: they choose what is paid, or act beside the agents.
GRANTED_COMMANDS = ("set_model", "extension_command")
# The first part of each path of the service: what a proxy takes off, or leaves, is told by it.
OWN_PATHS = ("api", "dev", "static", "mcp", "agui", "a2a", "hooks", ".well-known")
PUBLIC_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
# The secret with which messages that go out are signed; the others are those of addresses at which messages come in.
OUTGOING = "out"


def _check_text(value: Any, name: str) -> Problem:
    return None if isinstance(value, str) and value.strip() else (f"must be a text, not {value!r}", None)


def _check_listening(value: Any, name: str) -> Problem:
    found = ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is not None and int(found["port"]) <= 65535:
        return None
    return f"must be an address to listen at, not {value!r}", f'Write `{name} = "{DEFAULT_ADDRESS}"`.'


def _check_hash(value: Any, name: str) -> Problem:
    if isinstance(value, str) and TOKEN_HASH.fullmatch(value):
        return None
    # Not with its value, which may be a token.
    return (
        "must be the hash of a token, `sha256:` and 64 digits",
        "`koi service token NAME` makes a token with its hash.",
    )


def _check_zone(value: Any, name: str) -> Problem:
    try:
        ZoneInfo(value)
    except (OSError, ValueError, TypeError, KeyError):
        return f"is {value!r}, which is no time zone", f'Write `{name} = "Europe/Berlin"`.'
    return None


def _check_hook(value: Any, name: str) -> Problem:
    addresses = value if isinstance(value, list) else [value]
    if addresses and all(isinstance(each, str) and _is_hook(each) for each in addresses):
        return None
    return "must be an address of the web, or a list of them", f'Write `"{name}" = "https://example.org/koi"`.'


def _is_hook(address: str) -> bool:
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_address and parts.username is None and not parts.fragment and address.isprintable()


def _check_origins(value: Any, name: str) -> Problem:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return "is no list of texts", f'Write `{name} = ["https://app.example.org"]`.'
    for each in value:
        exact = _origin_of(each)
        if exact != each:
            help = f'Write each exactly: `{name} = ["{exact or "https://app.example.org"}"]`.'
            return f"has `{each}`, which is no origin", help
    return None


def check_public_url(value: Any, name: str) -> Problem:
    """The fault of a proxy's address."""
    origin = _origin_of(value) if isinstance(value, str) else None
    path = urlsplit(value).path.rstrip("/") if origin is not None else ""
    if origin is None or not PUBLIC_PATH.fullmatch(path):
        return f"must be an address of the web, not {value!r}", 'Write one such as "https://koi.example.org/desk".'
    if path.split("/")[1:2] and path.split("/")[1] in OWN_PATHS:
        return f"is {value!r}, and `/{path.split('/')[1]}` is a path of the service itself", "Choose another path."
    return None if value == origin + path else (f"is {value!r}", f'Write exactly "{origin}{path}".')


def _origin_of(address: str) -> str | None:
    """The origin of an address as browsers send it; None where it has none."""
    if not _is_hook(address) or not address.isascii():
        return None
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    is_usual = parts.port == {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if parts.port is None or is_usual else f":{parts.port}")


def _check_table(value: Any, name: str) -> Problem:
    is_table = isinstance(value, dict)
    return None if is_table else ("is no table", f"Write `[serve.{name}]` on a line of its own.")


TEXT: Mapping[str, Any] = {"check": _check_text}
TABLE: Mapping[str, Any] = {"check": _check_table}


@dataclass(frozen=True, slots=True)
class UserSettings:
    """`[serve.users]`: a name with the hash of a token, or with a table of these.

    Attributes:
        admin: whether this one sees and steers the runs of everybody.
        tokens_per_day: of all sessions of the user, in place of what `[serve.limits]` says; so `usd_per_day`.
        sessions: that are awake at a time, in place of what `[serve.limits]` says.
        commands: of admins that this one has, too, such as `set_model`.
    """

    token: str | None = field(default=None, metadata={"check": _check_hash})
    admin: bool = field(default=False, metadata={"check": check_switch})
    tokens_per_day: int | None = field(default=None, metadata=COUNT)
    usd_per_day: float | None = field(default=None, metadata=AMOUNT)
    sessions: int | None = field(default=None, metadata=COUNT)
    commands: Sequence[str] = field(default=(), metadata=check_some_of(*GRANTED_COMMANDS))


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """`[serve.limits]`: the limits of each session, each user a day, and all of them a day.

    Attributes:
        sessions: of everybody that are awake at a time.
        megabytes_per_user: of the files of all sessions of a user; so `megabytes`, of everybody.
        idle: seconds until a session with which nobody talks is put to sleep.
        zone: whose midnight begins a day.
    """

    tokens_per_session: int | None = field(default=None, metadata=COUNT)
    usd_per_session: float | None = field(default=None, metadata=AMOUNT)
    tokens_per_user: int | None = field(default=None, metadata=COUNT)
    usd_per_user: float | None = field(default=None, metadata=AMOUNT)
    sessions_per_user: int | None = field(default=None, metadata=COUNT)
    tokens_per_day: int | None = field(default=None, metadata=COUNT)
    usd_per_day: float | None = field(default=None, metadata=AMOUNT)
    sessions: int | None = field(default=None, metadata=COUNT)
    megabytes_per_user: int | None = field(default=None, metadata=COUNT)
    megabytes: int | None = field(default=None, metadata=COUNT)
    idle: float | None = field(default=None, metadata=AMOUNT)
    zone: str = field(default="UTC", metadata={"check": _check_zone})


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """`[serve]`: the served programs, the address, the users, and the webhooks.

    Attributes:
        http: where to listen, `HOST:PORT`.
        names: further names by which clients reach this machine.
        public_url: where clients reach the service through a proxy, with its path.
        origins: of pages of others that may call the service, with a token.
        record_dir: the folder of the project whose runs these are.
        shared: names of programs whose sessions work on the files of that folder.
        page_state: agents, `Main`, or fields of their state, `Main.recipe`, that pages may set.
        hooks: addresses by event.
        hook_secrets: by address of messages that come in, such as `/github`; `out` signs those that go out.
    """

    programs: Sequence[str] = field(default=(), metadata=check_texts("desk.koi"))
    http: str | None = field(default=None, metadata={"check": _check_listening})
    names: Sequence[str] = field(default=(), metadata=check_texts("koi.example.org"))
    public_url: str = field(default="", metadata={"check": check_public_url})
    origins: Sequence[str] = field(default=(), metadata={"check": _check_origins})
    record_dir: str | None = field(default=None, metadata=TEXT)
    shared: Sequence[str] = field(default=(), metadata=check_texts("desk"))
    page_state: Sequence[str] = field(default=(), metadata=check_texts("Main.recipe"))
    users: Mapping[str, UserSettings] = field(default_factory=dict, metadata=TABLE)
    limits: ServiceLimits = field(default_factory=ServiceLimits, metadata=TABLE)
    hooks: Mapping[str, Sequence[str]] = field(default_factory=dict, metadata=TABLE)
    hook_secrets: Mapping[str, str] = field(default_factory=dict, metadata=TABLE)


def read_service(given: Any) -> ServiceSettings:
    """The section `serve` as it stands in the file. Raises SettingsError."""
    plain = read_table(ServiceSettings, given, "serve")
    nested: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
        "users": _read_users,
        "limits": lambda table: read_table(ServiceLimits, table, "serve.limits"),
        "hooks": _read_hooks,
        "hook_secrets": _read_secrets,
    }
    values = {each.name: getattr(plain, each.name) for each in fields(ServiceSettings)}
    return ServiceSettings(**{**values, **{name: read(given[name]) for name, read in nested.items() if name in given}})


def require_user_name(name: str) -> None:
    """Raise SettingsError unless a user can be called so."""
    if name == ADMIN:
        help = "Give a user another name and `admin = true`."
        raise SettingsError(f"`{ADMIN}` is whoever has the token of the start, and no user", help=help)
    if not USER_NAME.fullmatch(name):
        help = "It has up to 64 letters, digits and `.`, `_`, `@`, `-`, and begins with a letter or a digit."
        raise SettingsError(f"`{name}` is no name of a user", help=help)


def _read_users(given: Mapping[str, Any]) -> dict[str, UserSettings]:
    users: dict[str, UserSettings] = {}
    names: dict[str, str] = {}
    for name, about in given.items():
        require_user_name(name)
        user = read_table(UserSettings, {"token": about} if isinstance(about, str) else about, f"serve.users.{name}")
        if user.token is None:
            help = f"`koi service token {name}` makes one."
            raise SettingsError(f"`{name}` in `[serve.users]` of `koi.toml` has no hash of a token", help=help)
        if user.token in names:
            message = f"`{names[user.token]}` and `{name}` in `[serve.users]` of `koi.toml` have the same token"
            raise SettingsError(message, help=f"`koi service token {name}` makes another one.")
        users[name], names[user.token] = user, name
    return users


def _read_hooks(given: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    for name, value in given.items():
        if isinstance(value, dict):
            inner = next(iter(value), "ended")
            message = f"`{name}` in `[serve.hooks]` of `koi.toml` is a table"
            raise SettingsError(message, help=f'Write the name in quotes: `"{name}.{inner}" = "https://…"`.')
        if name not in HOOK_EVENTS:
            raise SettingsError(f"`[serve.hooks]` in `koi.toml` has no `{name}`", help=suggest_key(name, HOOK_EVENTS))
        if problem := _check_hook(value, name):
            raise SettingsError(f"`{name}` in `[serve.hooks]` of `koi.toml` {problem[0]}", help=problem[1])
    return {name: value if isinstance(value, list) else [value] for name, value in given.items()}


def _read_secrets(given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if name != OUTGOING and not name.startswith("/"):
            near = nearest(name, (OUTGOING,), alike=SLIP_IN_FOUR) or f"/{name}"
            message = f"`{name}` in `[serve.hook_secrets]` of `koi.toml` is neither `{OUTGOING}` nor begins with `/`"
            raise SettingsError(message, help=f"Did you mean `{near}`?")
        if not isinstance(value, str) or not value:
            help = f'Write `"{name}" = "${{NAME}}"`, and set that variable in the environment or in `.env`.'
            raise SettingsError(f"`{name}` in `[serve.hook_secrets]` of `koi.toml` is no text", help=help)
    return dict(given)
