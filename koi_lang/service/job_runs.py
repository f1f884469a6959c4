"""Runs of jobs: sessions of the service that nobody talks to, begun under ids that are known before."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.events import CallEnded, CallStarted
from koi_lang.runtime.journal.reader import lines
from koi_lang.service.errors import ServiceError, ServiceErrorCode
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import EVERYBODY
from koi_lang.sessions.calls import begin_named

# Why no session can be begun now, but later.
NO_ROOM: tuple[ServiceErrorCode, ...] = ("limit_reached", "overloaded")
# Seconds between two looks at a run that sleeps.
LOOK_S = 5.0
CUT = "it was ended from outside"


class JobRuns:
    """Begins the runs of jobs in a host and waits for their ends. They belong to the operator of the service."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host

    async def start(self, run: str, program: str, handler: str, payload: Any) -> bool:
        """Begin a run of that id, unless it has begun; whether there was room for it. Raises KoiError."""
        session = self._find(run)
        if session is not None:
            if await asyncio.to_thread(_has_begun, session.feed.journal):
                return True
            # A kill came between the run and its call.
            await self._host.delete(run, EVERYBODY)
        try:
            begin = partial(begin_named, name=handler, payload=payload)
            await self._host.start(EVERYBODY, program, begin, handler, run=run)
        except ServiceError as error:
            if error.code in NO_ROOM:
                return False
            raise
        return True

    async def wait_for_end(self, run: str) -> str:
        """Wait for the end of its call, which goes on where a kill has ended it; empty when it ended well, else why.

        A run that sleeps, since it waits for a person, is woken by nobody else than that person.
        """
        session = self._host.find(run, EVERYBODY)
        failure = await asyncio.to_thread(_failure, session.feed.journal)
        may_wake = True
        while failure is None:
            may_wake = not await self._has_stopped(session, may_wake=may_wake) and may_wake
            failure = await asyncio.to_thread(_failure, session.feed.journal)
        return failure

    async def _has_stopped(self, session: HostedSession, *, may_wake: bool) -> bool:
        """Wait until the call of a session goes on no more, or some seconds where it sleeps or there is no room."""
        if session.state == "asleep" and not may_wake:
            await asyncio.sleep(LOOK_S)
            return False
        try:
            call = (await session.wake()).session.current_call
        except ServiceError as error:
            if error.code not in NO_ROOM:
                raise
            await asyncio.sleep(LOOK_S)
            return False
        if call is not None:
            await asyncio.wait([call.task])
        await session.sleep()
        return True

    def _find(self, run: str) -> HostedSession | None:
        try:
            return self._host.find(run, EVERYBODY)
        except ServiceError as error:
            if error.code == "unknown_run":
                return None
            raise


def _has_begun(journal: Path) -> bool:
    """Whether a run has recorded that a call began."""
    try:
        return any(line.entry is not None and line.entry.kind == CallStarted.type for line in lines(journal))
    except JournalError:
        return False


def _failure(journal: Path) -> str | None:
    """Why the first call of a run failed, empty where it did not; None where its end is not recorded."""
    for line in lines(journal):
        if line.entry is not None and line.entry.kind == CallEnded.type:
            ended = line.entry.data
            return "" if ended.get("ok") else str(ended.get("error") or CUT)
    return None
