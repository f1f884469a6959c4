"""Serving programs over HTTP from the start to the end of the process."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import SettingsError, UsageError, reason
from koi_lang.http_server.address import Address
from koi_lang.http_server.listening import serve_app
from koi_lang.service.host import hosting
from koi_lang.service.hosted import session_folder
from koi_lang.service.job_service import serving_jobs
from koi_lang.service.programs import Programs
from koi_lang.service.users import Users
from koi_lang.sessions.options import RunOptions
from koi_lang.settings.service import ServiceSettings
from koi_lang.system.capacity import raise_file_limit
from koi_lang.system.date_and_place import local_zone
from koi_lang.system.file_locks import try_lock
from koi_lang.system.open_folders import STATE_FOLDER, make_state_file, make_state_folder
from koi_lang.web.app import make_app

# After how many new objects the collector looks at them, after how many such looks at those that were left over, and
# after how many of these at all. Python's 700 objects are made by every request of a service; all together are looked
# at as often as by default, so that what sleeping sessions leave does not pile up.
COLLECTION = (10_000, 5, 2)


async def serve(
    files: Sequence[str],
    options: RunOptions,
    address: Address,
    log: Callable[[str], None],
    about: ServiceSettings | None = None,
) -> None:
    """Serve until this is cancelled.

    Args:
        about: `[serve]` of `koi.toml`; None for what counts without it.
        log: takes lines for whoever started it.

    Raises:
        UsageError: the address cannot be used, or no program can be served.
    """
    raise_file_limit()
    programs = Programs(files, options, () if about is None else about.shared)
    for program in programs:
        if program.error is not None:
            log(f"error: `{program.file}` is not served: {program.error.message}")
    if all(program.ready is None for program in programs):
        raise UsageError("there is no program to serve", help="Mend what is told above; `koi check` shows all of it.")
    about, zone = about or ServiceSettings(), local_zone(settings.variable("TZ"))
    async with (
        sole_service(options.folder),
        hosting(programs, options.folder, about, log) as host,
        serving_jobs(host, about.hook_secrets, zone, log) as jobs,
    ):
        # What is loaded by now lasts as long as the service: no collection has to go through it while everybody waits.
        gc.freeze()
        gc.set_threshold(*COLLECTION)
        app = make_app(host, jobs, address, Users(address.token, about.users))
        await serve_app(app, address, lambda url: _announce(url, address, log))


def _announce(url: str, address: Address, log: Callable[[str], None]) -> None:
    """Tell where the pages are; the token stands where no request carries it."""
    shown = f"#token={address.token}" if address.is_new else ""
    log(f"serving at {url}/{shown}")
    if address.public_url:
        log(f"clients reach it at {address.public_url}/{shown}")
    if address.advice:
        log(address.advice.rstrip("\n"))


NAME = "service.lock"
# A command that a killed service had just started holds the lock until it is executed.
TRIES, PAUSE_S = 20, 0.1


@asynccontextmanager
async def sole_service(folder: Path) -> AsyncIterator[None]:
    """A context in which no other service works in a folder: two would wake the same sessions and keep two accounts.

    Raises UsageError where one does, and SettingsError.
    """
    path = folder / STATE_FOLDER / NAME
    try:
        make_state_folder(session_folder(folder, ""))
        make_state_file(path)
        held = os.open(path, os.O_RDWR)
    except OSError as error:
        raise SettingsError(f"`{path}` cannot be used: {reason(error)}") from error
    try:
        await _lock(held, folder)
        yield
    finally:
        os.close(held)


async def _lock(held: int, folder: Path) -> None:
    for _ in range(TRIES):
        if try_lock(held):
            return
        await asyncio.sleep(PAUSE_S)
    help = "End it, or name another folder with --record-dir."
    raise UsageError(f"another service works in `{folder}`", help=help)
