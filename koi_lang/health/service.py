"""The service in `[serve]` of a project: its programs, its access, and its webhooks."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from koi_lang.errors import KoiError
from koi_lang.health.findings import Finding
from koi_lang.runtime.guards.hosts import Allowed, reachable, require_public
from koi_lang.settings import FILLED, ProjectSettings, fill_variables, project
from koi_lang.settings.service import ADDRESS, OUTGOING, ServiceSettings
from koi_lang.system.capacity import file_limits
from koi_lang.system.loopback import is_loopback

ABOUT = "service"
OTHERS = 0o077
MIN_SECRET_CHARS = 16
# A service of some hundred people needs more files.
FEW_FILES = 4096
PORTS = {"http": 80, "https": 443}
EDIT = "edit koi.toml: "


def check_service(settings: ProjectSettings, *, offline: bool) -> Iterator[Finding]:
    """The reasons why the service of a project is unreachable, or too open; none without `[serve]`.

    Args:
        offline: whether no name of a host is looked up.
    """
    try:
        if "serve" not in project.read_toml(settings):
            return
        about = project.service_settings(settings)
        allowed = Allowed.of(project.allowed_hosts(settings))
    except KoiError:
        return  # told by whoever reads the file
    found = [
        *_places(about, settings.folder),
        *_reach(about),
        *_secrets(about, settings),
        *_hooks(about, allowed, offline=offline),
    ]
    yield from found
    if not found:
        users = "1 user" if len(about.users) == 1 else f"{len(about.users)} users"
        yield Finding(ABOUT, "ok", f"{users} and whoever has the token of the start")


def _places(about: ServiceSettings, folder: Path) -> Iterator[Finding]:
    for name in about.programs:
        if not name.startswith("std/") and not (folder / name).is_file():
            yield Finding(ABOUT, "error", f"there is no program `{name}`", f"{EDIT}`programs` in `[serve]`")
    if about.record_dir is not None and not (folder / about.record_dir).is_dir():
        yield Finding(ABOUT, "error", f"there is no folder `{about.record_dir}`", f"mkdir -p {about.record_dir}")


def _reach(about: ServiceSettings) -> Iterator[Finding]:
    found = ADDRESS.fullmatch(about.http or "")
    if found is not None and not is_loopback(found["host"] or found["six"] or ""):
        if not about.users:
            text = f"`{about.http}` is reached from other machines, and everybody there is the admin"
            yield Finding(ABOUT, "warning", text, "koi service token NAME")
        if not about.names and not about.public_url:
            text = f"`{about.http}` answers to no name but its number"
            yield Finding(ABOUT, "warning", text, f'{EDIT}`names = ["koi.example.org"]` in `[serve]`')
    limits = about.limits
    has_limit = any((limits.tokens_per_user, limits.usd_per_user, limits.tokens_per_day, limits.usd_per_day))
    free = [name for name, user in about.users.items() if user.tokens_per_day is None and user.usd_per_day is None]
    if free and not has_limit:
        text = f"no limit of a day holds for {', '.join(f'`{name}`' for name in free)}"
        yield Finding(ABOUT, "warning", text, f"{EDIT}`usd_per_user = 5` in `[serve.limits]`")
    files = file_limits()
    if files is not None and files[1] < FEW_FILES:
        text = f"a process may open {files[1]} files: {files[1] // 8} sessions awake and {files[1] // 2} connections"
        yield Finding(ABOUT, "warning", text, "ulimit -n 65536, or `LimitNOFILE=65536` in the unit")


def _secrets(about: ServiceSettings, settings: ProjectSettings) -> Iterator[Finding]:
    plain = [name for name, value in about.hook_secrets.items() if not FILLED.search(value)]
    if plain and (settings.folder / "koi.toml").stat().st_mode & OTHERS:
        text = f"others can read koi.toml, in which the secret of `{plain[0]}` stands"
        yield Finding(ABOUT, "error", text, "chmod 600 koi.toml")
    for name, value in about.hook_secrets.items():
        try:
            secret = fill_variables(value, settings)
        except KoiError as error:
            yield Finding(ABOUT, "error", f"the secret of `{name}` is not there: {error.message}", error.help or "")
            continue
        if len(secret) < MIN_SECRET_CHARS:
            text = f"the secret of `{name}` has fewer than {MIN_SECRET_CHARS} characters"
            yield Finding(ABOUT, "warning", text, "python -c 'import secrets; print(secrets.token_urlsafe(32))'")


def _hooks(about: ServiceSettings, allowed: Allowed, *, offline: bool) -> Iterator[Finding]:
    for address in dict.fromkeys(address for addresses in about.hooks.values() for address in addresses):
        parts = urlsplit(address)
        host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
        try:
            is_private = _require_reach(host, port, allowed, offline=offline)
        except KoiError as error:
            # Not with the whole address, which may hold a secret.
            yield Finding(ABOUT, "error", f"a hook cannot be told: {error.message}", error.help or "")
        else:
            if parts.scheme == "http" and not is_private:
                yield Finding(
                    ABOUT, "warning", f"a hook is told over `http`, which everybody on the way to `{host}` reads"
                )
    if about.hooks and OUTGOING not in about.hook_secrets:
        text = "hooks are signed with a secret of this folder; `koi service hooks --secret` shows it"
        yield Finding(ABOUT, "ok", text)


def _require_reach(host: str, port: int, allowed: Allowed, *, offline: bool) -> bool:
    """Whether a host was allowed by name; raises KoiError where it may not be reached."""
    try:
        numbers = [ipaddress.ip_address(host)]
    except ValueError:
        numbers = [ipaddress.ip_address("127.0.0.1")] if host == "localhost" else []
    if numbers:
        require_public(host, port, numbers, allowed)
    elif not offline:
        numbers = [ipaddress.ip_address(text) for text in asyncio.run(reachable(host, port, allowed))]
    return bool(numbers) and all(allowed.covers(host, port, number) for number in numbers)
