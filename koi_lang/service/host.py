"""The sessions of a service: begun, found again, listed and deleted, each by those who may."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.runtime.journal import store as journals
from koi_lang.runtime.journal.summary import summarise
from koi_lang.service.accounts import Accounts
from koi_lang.service.errors import ServiceError
from koi_lang.service.hosted import HostedSession, session_folder
from koi_lang.service.limits import HostLimits
from koi_lang.service.programs import Programs
from koi_lang.service.slots import SessionSlots
from koi_lang.service.spending import SpendingTable
from koi_lang.service.store import Database, SessionRow, SessionTable
from koi_lang.service.users import User
from koi_lang.sessions.client_host import Message
from koi_lang.settings.service import ServiceSettings

Note = Callable[[str], None]
# Characters of a title.
LONGEST_TITLE = 80


def ignore_line(text: str) -> None:
    """Take a line that nobody wants."""


class SessionHost:
    """All sessions of a process.

    Args:
        folder: of the project, where journals and settings are.

    Attributes:
        settings: `[serve]` of `koi.toml`.
        accounts: who pays for what.
    """

    def __init__(
        self,
        programs: Programs,
        folder: Path,
        database: Database,
        group: asyncio.TaskGroup,
        settings: ServiceSettings,
        accounts: Accounts,
    ) -> None:
        self.programs, self.folder, self.database = programs, folder, database
        self.settings, self.accounts = settings, accounts
        self._limits = HostLimits(accounts, SessionSlots(settings.limits, settings.users))
        self._group, self._table = group, SessionTable(database)
        self._hosted: dict[str, HostedSession] = {}

    # ------------------------------------------------------------ beginning

    async def start(
        self,
        user: User,
        program: str = "",
        begun_by: Mapping[str, Any] | None = None,
        title: str = "",
        *,
        run: str = "",
    ) -> tuple[HostedSession, Message]:
        """Begin a session, and give the response to the command that it is begun by.

        Args:
            program: its name; empty where there is only one.
            begun_by: a command of `koi rpc`, such as `run_playbook`; None where the session waits for one.
            run: its id, which no other has; empty for a new one.

        Raises:
            KoiError: it cannot be begun; nothing of it is left.
        """
        served = self.programs.find(program)
        served.require_ready()
        row = SessionRow(run or os.urandom(6).hex(), user.name, served.name, title[:LONGEST_TITLE], time.time())
        self._table.add(row)
        session = self._hosted[row.run] = HostedSession(row, served, self._group, self._limits)
        response: Message = {"success": True}
        try:
            await session.begin()
            if begun_by is not None:
                response = await session.handle(begun_by)
        except BaseException:
            await self._discard(session)
            raise
        if not response["success"]:
            await self._discard(session)
        return session, response

    async def _discard(self, session: HostedSession) -> None:
        """End a session and remove all that is kept of it."""
        await session.sleep()
        del self._hosted[session.id]
        self._table.remove(session.id)
        with suppress(JournalError):
            journals.delete(session.feed.journal)
        await asyncio.to_thread(shutil.rmtree, session_folder(self.folder, session.id), ignore_errors=True)

    # ------------------------------------------------------------ finding

    def find(self, run: str, user: User) -> HostedSession:
        """The session of a run that a user may see. Raises ServiceError, in the same way where there is none."""
        row = self._table.find(run)
        if row is None or not (user.is_admin or row.owner == user.name):
            raise ServiceError("unknown_run", f"there is no run `{run}`")
        if run not in self._hosted:
            self._hosted[run] = HostedSession(row, self.programs.find(row.program), self._group, self._limits)
        return self._hosted[run]

    def all(self, user: User) -> list[HostedSession]:
        """The sessions that a user may see, newest first."""
        rows = self._table.all(None if user.is_admin else user.name)
        known = {program.name for program in self.programs}
        return [self.find(row.run, user) for row in rows if row.program in known]

    async def delete(self, run: str, user: User) -> None:
        """Remove a session that does nothing. Raises ServiceError."""
        session = self.find(run, user)
        session.require_quiet()
        await self._discard(session)

    def describe(self, session: HostedSession) -> dict[str, Any]:
        """A session as it is listed."""
        row = session.row
        told = {"id": row.run, "program": row.program, "owner": row.owner, "state": session.state, "title": row.title}
        usage: dict[str, Any] = {"updated": row.created, "requests": 0, "tokens": 0, "usd": None}
        with suppress(JournalError):
            summary = summarise(session.feed.journal)
            totals = summary.totals
            usage = {
                "updated": summary.header.started + summary.seconds,
                "requests": totals.requests,
                "tokens": totals.tokens,
                "usd": totals.usd,
            }
        return {**told, "started": row.created, **usage, "parent": row.parent or None, "hosted": True}

    async def close(self) -> None:
        """Put all sessions to sleep."""
        awake = [session for session in self._hosted.values() if session.state != "asleep"]
        await asyncio.gather(*(session.sleep() for session in awake))


@asynccontextmanager
async def hosting(
    programs: Programs, folder: Path, settings: ServiceSettings | None = None, note: Note = ignore_line
) -> AsyncIterator[SessionHost]:
    """A context in which sessions can be begun; leaving it puts all to sleep. Raises SettingsError.

    Args:
        settings: `[serve]` of `koi.toml`; None for what counts without it.
        note: takes lines about what goes wrong.
    """
    about = settings or ServiceSettings()
    database, table = Database.connect(folder), SpendingTable(folder)
    try:
        async with asyncio.TaskGroup() as group:
            accounts = Accounts(table, about, note=note)
            host = SessionHost(programs, folder, database, group, about, accounts)
            try:
                yield host
            finally:
                await host.close()
    finally:
        table.close()
        database.close()
