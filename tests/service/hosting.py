"""A host of sessions in the process of a test, which puts it to sleep, wakes it and looks inside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang.service.host import SessionHost, hosting
from koi_lang.service.hosted import HostedSession
from koi_lang.service.programs import Programs
from koi_lang.service.users import User
from koi_lang.sessions.calls import begin_named
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import ignore_line
from koi_lang.settings import read_settings
from koi_lang.settings.service import ServiceLimits, ServiceSettings
from tests.limits import LIMIT_S

ADMIN = User("admin", is_admin=True)
WORDS = ("serve", "http")
Scenario = Callable[[SessionHost], Awaitable[Any]]


async def hosted_in(
    folder: Path,
    scenario: Scenario,
    *files: str,
    limits: ServiceLimits | None = None,
    note: Callable[[str], None] = ignore_line,
    shared: Sequence[str] = (),
    **options: Any,
) -> Any:
    """What a scenario gives with a host in a folder; a further one with the same folder is a restart."""
    own = RunOptions(settings=read_settings(folder), record=True, words=WORDS, **options)
    programs = Programs([str(folder / file) for file in files], own, shared)
    settings = ServiceSettings(limits=limits or ServiceLimits())
    async with asyncio.timeout(LIMIT_S), hosting(programs, folder, settings, note) as host:
        return await scenario(host)


def play(folder: Path, scenario: Scenario, *files: str, **options: Any) -> Any:
    """The same from outside of a loop."""
    return asyncio.run(hosted_in(folder, scenario, *files, **options))


async def begin(host: SessionHost, handler: str = "", **payload: Any) -> HostedSession:
    """A session, with a call of a handler under way."""
    call = partial(begin_named, name=handler, payload=payload) if handler else None
    session, _ = await host.start(ADMIN, "", call)
    return session


async def data(session: HostedSession, type: str, **fields: Any) -> Any:
    """The data of the response to a command that must be carried out."""
    response = await session.handle({"type": type, **fields})
    assert response["success"], response
    return response.get("data")


async def until(session: HostedSession, *states: str) -> None:
    """Wait until a session is in one of some states."""
    await until_told(session, lambda message: session.state in states)


async def until_told(session: HostedSession, is_last: Callable[[bytes], bool]) -> None:
    """Wait until a session tells something, or has told it; now and then, where it tells nothing, it is empty."""
    reader = session.feed.subscribe(0)
    async for messages in reader.listen(0.05):
        if any(is_last(message) for _, message in messages or [(None, b"")]):
            break
    reader.close()


async def called(session: HostedSession, handler: str, **payload: Any) -> None:
    """Have a handler called to its end."""
    await data(session, "run_playbook", name=handler, args=payload)
    await until(session, "idle")
