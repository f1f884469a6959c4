"""The sessions of a service: begun, found, listed and deleted, each by permitted users."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from koi_lang.errors import JournalError, KoiError, ProgramChangedError, UntrustedJournalError
from koi_lang.events import RunEnded
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.journal import store as journals
from koi_lang.runtime.journal.history import RESUMED
from koi_lang.runtime.journal.reader import read, read_header
from koi_lang.service.accounts import Accounts
from koi_lang.service.attached import AttachedRun, AttachedRuns, RunHandle
from koi_lang.service.errors import ServiceError
from koi_lang.service.hosted import (
    FILES,
    MAX_TITLE_CHARS,
    BeginCall,
    HostedSession,
    HostLimits,
    Opening,
    misfit_error,
    session_folder,
)
from koi_lang.service.idempotency import IdempotencyTable
from koi_lang.service.live.addresses import has_sockets, sweep
from koi_lang.service.program_edits import edited_file
from koi_lang.service.programs import Programs
from koi_lang.service.run_hooks import RunHooks
from koi_lang.service.session_files import FileSpace, SpaceLimits, measure_files, without_parts
from koi_lang.service.slots import SessionSlots
from koi_lang.service.spending import SpendingTable
from koi_lang.service.store import Database, SessionRow, SessionTable
from koi_lang.service.unfinished import find_unfinished, has_call, is_unfinished
from koi_lang.service.users import User
from koi_lang.service.watchdog import Watchdog
from koi_lang.service.webhooks import Webhooks, webhooks_of
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.earlier_session import BranchPoint, read_recorded
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.messages import FailureMessage
from koi_lang.sessions.prepared import Prepared, ignore_line
from koi_lang.settings.service import ServiceSettings

Note = Callable[[str], None]
# After how long without use sessions sleep, and how often that is looked at.
IDLE_S, LOOK_S = 900.0, 10.0
# The same where the service is crowded.
EARLY_S = 5.0


class SessionHost:
    """All sessions of a process.

    Args:
        folder: of the project, where journals and settings are.

    Attributes:
        settings: `[serve]` of `koi.toml`.
        accounts: who pays for what.
        webhooks: what tells others.
        space: room for the files of sessions.
        watchdog: measures the event loop; None where nobody does.
    """

    watchdog: Watchdog | None = None

    def __init__(
        self,
        programs: Programs,
        folder: Path,
        database: Database,
        group: asyncio.TaskGroup,
        settings: ServiceSettings,
        limits: HostLimits,
        webhooks: Webhooks,
    ) -> None:
        self.programs = programs
        self.folder = folder
        self.database = database
        self.settings, self._limits = settings, limits
        self.accounts, self.webhooks = limits.accounts, webhooks
        self._group, self._table = group, limits.sessions
        self.attached = AttachedRuns(folder, group)
        self.space = FileSpace(
            lambda run: session_folder(folder, run) / FILES,
            lambda: {row.run: row.owner for row in self._table.all()},
            SpaceLimits.of(settings.limits),
        )
        self._hosted: dict[str, HostedSession] = {}
        self._has_gone_on = False
        self._sleepers = SleeperTable(database)
        self._waiting = self._sleepers.all()
        self.keyed, self._locks = IdempotencyTable(database), WeakValueDictionary[tuple[str, str], asyncio.Lock]()

    # ------------------------------------------------------------ beginning

    async def start(
        self,
        user: User,
        program: str = "",
        begin: BeginCall | None = None,
        title: str = "",
        *,
        run: str = "",
    ) -> tuple[HostedSession, HeldCall | None]:
        """Begin a session, and a call in it.

        Args:
            program: its name; empty where there is only one.
            begin: begins the call; None where the session waits for one.
            run: its id, which no other has; empty for a new one.

        Raises:
            KoiError: it cannot be begun; nothing of it is left.
        """
        served = self.programs.find(program)
        served.require_ready()
        row = SessionRow(run or new_run(), user.name, served.name, title[:MAX_TITLE_CHARS], time.time())
        return await self._begin(row, lambda ready: NEW_RUN, begin)

    async def branch(
        self,
        session: HostedSession,
        user: User,
        back: BranchPoint | None,
        begin: BeginCall | None,
        *,
        run: str = "",
        edited: Path | None = None,
    ) -> tuple[HostedSession, HeldCall | None]:
        """Begin a session that goes on from an entry of another one, with a copy of its files.

        Args:
            back: None for the last entry, or the last one that fits the program as it is now.
            begin: as of `start`.
            edited: the file of an edited version of the program; None for that of the other session.

        Raises:
            KoiError: there is no such entry, or no answer that could be another one.
        """
        row = replace(session.row, run=run or new_run(), owner=user.name, created=time.time(), parent=session.id)
        last = BranchPoint(await asyncio.to_thread(last_entry, session.feed.journal))
        edited = edited or edited_file(self.folder, read_header(session.feed.journal))
        fitting = None if session.misfit is None else BranchPoint(session.misfit.entry)
        try:
            return await self._branch(session, row, back or fitting or last, begin, edited)
        except ProgramChangedError as error:
            if back is not None:
                raise misfit_error(session.id, error) from error
            return await self._branch(session, row, BranchPoint(error.entry), begin, edited)

    async def _branch(
        self,
        session: HostedSession,
        row: SessionRow,
        point: BranchPoint,
        begin: BeginCall | None,
        edited: Path | None,
    ) -> tuple[HostedSession, HeldCall | None]:
        target = session_folder(self.folder, row.run) / FILES
        copied = partial(shutil.copytree, session.files, target, symlinks=True, ignore=without_parts)
        if session.files.is_dir():
            size = await asyncio.to_thread(measure_files, session.files)
            async with self.space.reserve(row.run, size, row.owner):
                await asyncio.to_thread(copied)

        def go_on(ready: Prepared) -> Continuation:
            return read_recorded(ready, session.id, point)

        return await self._begin(row, go_on, begin, edited)

    async def _begin(
        self, row: SessionRow, opening: Opening, begin: BeginCall | None, edited: Path | None = None
    ) -> tuple[HostedSession, HeldCall | None]:
        self._table.add(row, is_synced=False)
        session = self._hosted[row.run] = self._make_session(row)
        try:
            return session, await session.begin(opening, begin, edited)
        except BaseException:
            await self.discard(session)
            raise

    async def discard(self, session: HostedSession) -> None:
        """End a session and remove all that is kept of it."""
        await session.sleep()
        del self._hosted[session.id]
        self._table.remove(session.id)
        self._note_awake(session.id)
        with suppress(JournalError):
            journals.delete(session.feed.journal)
        await asyncio.to_thread(shutil.rmtree, session_folder(self.folder, session.id), ignore_errors=True)

    # ------------------------------------------------------------ finding

    def find(self, run: str, user: User) -> HostedSession:
        """The session of a run that a user may see. Raises ServiceError, in the same way where there is none."""
        row = self._find_row(run)
        if row is None or not (user.is_admin or row.owner == user.name):
            raise ServiceError("unknown_run", f"there is no run `{run}`")
        if run not in self._hosted:
            self._hosted[run] = self._make_session(row)
            self._hosted[run].feed.restore(self._waiting.get(run, ()))
            if not self._has_gone_on and run not in self._waiting:
                self._hosted[run].is_continuing = is_unfinished(self._hosted[run].feed.journal)
        return self._hosted[run]

    def _find_row(self, run: str) -> SessionRow | None:
        """What is kept of a session, which nobody but this process changes."""
        return self._hosted[run].row if run in self._hosted else self._table.find(run)

    def all_here(self) -> Iterable[HostedSession]:
        """Those that this process has come to know, awake or asleep."""
        return self._hosted.values()

    def _make_session(self, row: SessionRow) -> HostedSession:
        return HostedSession(row, self.programs.find(row.program), self._group, self._limits, self._note_awake)

    def may_see(self, run: str, user: User) -> bool:
        """Whether there is such a session, and it is one of the user's."""
        row = self._find_row(run)
        return row is not None and (user.is_admin or row.owner == user.name)

    def owners(self, user: User) -> dict[str, str]:
        """Whose the runs are that a user may see, by their ids."""
        return {row.run: row.owner for row in self._table.all(None if user.is_admin else user.name)}

    def one_at_a_time(self, key: tuple[str, str]) -> asyncio.Lock:
        """The lock of requests with one key."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def find_begun(self, run: str, user: User) -> HostedSession | None:
        """A session of which something was done before its process ended; nothing is left of one that did nothing."""
        if not self.may_see(run, user):
            return None
        session = self.find(run, user)
        with suppress(JournalError):
            if session.is_awake or await asyncio.to_thread(has_call, session.feed.journal):
                return session
        await self.discard(session)
        return None

    def find_run(self, run: str, user: User) -> RunHandle:
        """The session of a run, or a run that another process works on, which admins may see. Raises ServiceError."""
        attached = self.attached.find(run) if user.is_admin and self._find_row(run) is None else None
        return attached or self.find(run, user)

    def all(self, user: User) -> list[HostedSession]:
        """The sessions that a user may see, newest first."""
        rows = self._table.all(None if user.is_admin else user.name)
        known = {program.name for program in self.programs}
        return [self.find(row.run, user) for row in rows if row.program in known]

    async def delete(self, run: str, user: User) -> None:
        """Remove a session that does nothing. Raises ServiceError."""
        session = self.find(run, user)
        session.require_quiet()
        await self.discard(session)

    def attached_to(self, user: User) -> list[AttachedRun]:
        """The runs that other processes work on, which admins may see."""
        if not user.is_admin:
            return []
        own = self.owners(user)
        return [run for run in self.attached.working() if run.id not in own]

    # ------------------------------------------------------------ sleeping and waking

    def _note_awake(self, run: str) -> None:
        if self._waiting.pop(run, None) is not None:
            self._sleepers.remove(run)

    def _note_asleep(self, session: HostedSession) -> None:
        """Store the open requests of a session, so that they are known without waking it."""
        requests = [dict(request) for request in session.feed.requests]
        self._waiting[session.id] = requests
        self._sleepers.put(session.id, requests)

    async def put_to_sleep(self, idle_s: float) -> int:
        """Have all sessions sleep that nobody has used for some seconds; gives how many do now."""
        count = 0
        for session in [session for session in self._hosted.values() if session.is_awake]:
            is_waiting = session.state == "waiting"
            if await session.sleep_if_unused(idle_s):
                count += 1
                if is_waiting:
                    self._note_asleep(session)
        return count

    async def go_on(self) -> list[str]:
        """Wake the sessions that were at work when their process ended; gives their runs.

        Those of another process that goes on are left to it.
        """
        known = {program.name for program in self.programs if program.ready is not None}
        rows = {row.run: row for row in self._table.all(None) if row.program in known and row.run not in self._waiting}
        found = await asyncio.to_thread(find_unfinished, self.folder, list(rows))
        for run in found:
            self._hosted.setdefault(run, self._make_session(rows[run])).is_continuing = True
        errors = {run: await self._wake(self._hosted[run]) for run in found if run in self._hosted}
        self._has_gone_on = True
        for session in self._hosted.values():  # also those whose programs are not served any more
            if session.is_continuing:
                session.end_continuing()
        if foreign := [run for run, error in errors.items() if isinstance(error, UntrustedJournalError)]:
            text = f"interrupted sessions do not go on, such as `{foreign[0]}`: this service has not"
            help = "`koi runs` lists them. If you trust this folder, agree with `koi trust` and start again."
            self._limits.note(f"warning: {text} written their journals\n  = help: {help}")
        return [run for run, error in errors.items() if error is None]

    async def _wake(self, session: HostedSession) -> KoiError | None:
        try:
            await session.wake()
        except KoiError as error:
            failure = FailureMessage(type="session_failed", error=error.message, report=error.message)
            if isinstance(error, ServiceError):
                failure["code"] = error.code
            session.feed.tell(failure)
            return error
        finally:
            session.end_continuing()
        return None

    async def close(self) -> None:
        """Put all sessions to sleep; their open work continues when the service starts again."""
        awake = [session for session in self._hosted.values() if session.is_awake]
        for session in awake:
            if session.state == "paused":  # nobody but a person has it go on
                self._note_asleep(session)
        await asyncio.gather(*(session.sleep() for session in awake))


def new_run() -> str:
    """An id that no run has."""
    return os.urandom(6).hex()


def last_entry(journal: Path) -> int:
    """The number of the last entry of a journal that can be gone back to. Raises JournalError."""
    return max((entry.n for entry in read(journal).entries if entry.kind not in (RunEnded.type, RESUMED)), default=0)


async def _look_after(host: SessionHost, slots: SessionSlots, idle_s: float) -> None:
    """Have sessions go on that were at work, and put those to sleep that nobody uses, until this is cancelled."""
    await host.go_on()
    while True:
        await asyncio.sleep(min(idle_s, LOOK_S))
        await host.put_to_sleep(min(idle_s, EARLY_S) if slots.is_crowded else idle_s)


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
    with ExitStack() as open_parts:
        database = open_parts.enter_context(closing(Database.connect(folder)))
        table = open_parts.enter_context(closing(SpendingTable(folder)))
        webhooks = webhooks_of(database, about, programs.options, note)
        hooks = RunHooks(webhooks, database, folder)
        accounts = Accounts(table, about, tell=hooks.hear_budget, note=note)
        slots, listening = SessionSlots(about.limits, about.users), hooks if webhooks.has_hooks else None
        limits = HostLimits(accounts, slots, listening, SessionTable(database), note)
        hooks.catch_up()
        if has_sockets():
            await asyncio.to_thread(sweep, folder, None)
        async with webhooks.sending(), together() as group:
            host = SessionHost(programs, folder, database, group, about, limits, webhooks)
            watch = group.create_task(_look_after(host, slots, about.limits.idle or IDLE_S))
            try:
                host.watchdog = Watchdog(host.all_here, note)
                async with host.watchdog.watching():
                    yield host
            finally:
                watch.cancel()
                await host.close()


class SleeperTable:
    """The open requests of sleeping sessions; awake ones have no row."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute("create table if not exists sleepers (run text primary key, requests text not null)")

    def put(self, run: str, requests: list[Any]) -> None:
        """Keep the questions and approvals of a session that goes to sleep."""
        self._database.execute("insert or replace into sleepers values (?, ?)", (run, json.dumps(requests)))

    def all(self) -> dict[str, list[dict[str, Any]]]:
        """The requests of all of them, by run."""
        return {run: json.loads(requests) for run, requests in self._database.execute("select * from sleepers")}

    def remove(self, run: str) -> None:
        """Forget one that wakes."""
        self._database.execute("delete from sleepers where run = ?", (run,))
