"""The jobs of a service from its start to its end: times, files and messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from operator import is_not
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError, KoiError
from koi_lang.events import CallEnded, CallStarted
from koi_lang.program import declarations
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.schema import problems
from koi_lang.service.errors import ServiceError, ServiceErrorCode
from koi_lang.service.file_events import FileEvents
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.job_table import JobTable
from koi_lang.service.programs import Programs
from koi_lang.service.scheduler import JobScheduler
from koi_lang.service.served_jobs import ServedJob, clashes, job_data, serve_jobs
from koi_lang.service.users import EVERYBODY
from koi_lang.sessions.calls import begin_named
from koi_lang.sessions.prepared import Prepared

Log = Callable[[str], None]
# Seconds between two looks at the programs.
LOOK_S = 1.0
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


class JobService:
    """The jobs of all programs.

    Args:
        secrets: what messages are signed with, by the paths that they are sent to.
        zone: the time zone of schedules that name none.
        log: takes lines for whoever started the service.
    """

    def __init__(
        self, programs: Programs, scheduler: JobScheduler, secrets: Mapping[str, str], zone: str, log: Log
    ) -> None:
        self._loaded: list[Prepared | None] = []
        self._programs = programs
        self.scheduler = scheduler
        self._secrets = secrets
        self._zone, self._log = zone, log

    def reload(self) -> None:
        """Start the jobs of the reloaded programs; running ones go on."""
        self._loaded = [program.ready for program in self._programs]
        jobs = jobs_of(self._programs, self._zone, self._log)
        for job in jobs:
            if job.hook and self.secret_of(job) is None:
                self._log(f"warning: nobody can start `{job.id}`: `[serve.hook_secrets]` has no `{job.hook}`")
        if jobs:
            self._log(f"{len(jobs)} {'job is' if len(jobs) == 1 else 'jobs are'} started by times and events")
        self.scheduler.serve(jobs)

    async def follow_programs(self) -> None:
        """Reload whenever a program was loaded anew, until this is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.reload_if_changed()

    def reload_if_changed(self) -> None:
        """Reload where a program is another one than it was."""
        now = [program.ready for program in self._programs]
        if len(now) != len(self._loaded) or any(map(is_not, now, self._loaded)):
            self.reload()

    def find_hook(self, path: str) -> ServedJob | None:
        """The job that messages to a path start."""
        return next((job for job in self.scheduler.jobs if job.hook == path), None)

    def secret_of(self, job: ServedJob) -> str | None:
        """The secret of messages for a job; None where nobody may send any."""
        return self._secrets.get(job.hook) or None

    def payload_problems(self, job: ServedJob, payload: Any) -> list[str]:
        """Why the handler of a job does not take a payload; empty where it does. Raises ServiceError."""
        agents = {agent.about.name: agent.about for agent in self._programs.find(job.program).agents()}
        schema = agents[job.job.agent].handlers[job.job.handler].schema
        return list(problems(payload, schema)) if schema else []

    def list_jobs(self) -> list[dict[str, Any]]:
        """All jobs as JSON, with their next and last starts."""
        return [self._data(job) for job in self.scheduler.jobs]

    def _data(self, job: ServedJob) -> dict[str, Any]:
        due, last = self.scheduler.next_start(job), self.scheduler.last_start(job)
        return job_data(job, None if due is None else datetime.fromtimestamp(due, UTC), last)


def jobs_of(programs: Programs, zone: str, log: Log) -> list[ServedJob]:
    """The jobs of all served programs; invalid ones are reported.

    Args:
        zone: the time zone of schedules that name none.
    """
    found: list[ServedJob] = []
    for program in programs:
        if program.ready is not None:
            try:
                found += serve_jobs(program.name, declarations.jobs_of(program.ready.module), zone)
            except KoiError as error:
                log(f"error: the jobs of `{program.file}` are not started: {error.message}")
    for job, owner in clashes(found):
        log(f"error: `{job.id}` gets no messages: those to `{job.hook}` are for `{owner.id}`")
        found.remove(job)
    return found


@asynccontextmanager
async def serving_jobs(host: SessionHost, secrets: Mapping[str, str], zone: str, log: Log) -> AsyncIterator[JobService]:
    """A context in which the jobs of the programs are started; runs that work at its end go on with the next one.

    Args:
        secrets: as `JobService` takes them.
        zone: the time zone of schedules that name none.
    """
    async with asyncio.TaskGroup() as group:
        scheduler = JobScheduler(JobTable(host.database), JobRuns(host), group, log)
        service = JobService(host.programs, scheduler, secrets, zone, log)
        service.reload()
        files = FileEvents(host.database, host.folder, scheduler, log)
        work = [group.create_task(each) for each in (scheduler.run(), files.run(), service.follow_programs())]
        try:
            yield service
        finally:
            scheduler.stop()
            for task in work:
                task.cancel()
