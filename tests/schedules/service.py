"""A service of jobs with a clock that tests set, and runs that they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.schedules.job import Job
from koi_lang.service.job_table import JobTable
from koi_lang.service.scheduler import JobScheduler
from koi_lang.service.served_jobs import ServedJob, serve_jobs
from koi_lang.service.store import Database


class SetClock:
    """A clock that shows what it is set to, in UTC."""

    def __init__(self, time: str) -> None:
        self.set(time)

    def set(self, time: str) -> None:
        """Show `2026-11-26 09:00`."""
        self._seconds = datetime.fromisoformat(f"{time}+00:00").timestamp()

    def move(self, minutes: int) -> None:
        """Show a time before or behind this one."""
        self._seconds += minutes * 60

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._seconds


class Runs:
    """Runs that end when a test says so; begun once for each id, as those of a service."""

    def __init__(self) -> None:
        self.begun: dict[str, tuple[str, Any]] = {}
        self.asked: list[str] = []
        self.failure: dict[str, str] = {}
        self.is_full, self.refusal = False, ""
        self._ended = asyncio.Event()

    async def start(self, run: str, program: str, handler: str, payload: Any) -> bool:
        """Begin a run."""
        self.asked.append(run)
        if self.refusal:
            raise AgentError(self.refusal)
        if not self.is_full:
            self.begun.setdefault(run, (handler, payload))
        return not self.is_full

    async def wait_for_end(self, run: str) -> str:
        """Wait until a test ends it."""
        while run not in self.failure:
            self._ended.clear()
            await self._ended.wait()
        return self.failure[run]

    async def end(self, failure: str = "") -> None:
        """End all that has begun."""
        self.failure |= {run: failure for run in self.begun if run not in self.failure}
        self._ended.set()
        await settle()


class Service:
    """A scheduler with what is around it; a kill leaves the database only."""

    def __init__(self, folder: Path, clock: SetClock, runs: Runs, group: asyncio.TaskGroup) -> None:
        self.clock, self.runs, self.lines = clock, runs, list[str]()
        self.database = Database.connect(folder)
        self.database.execute("pragma synchronous = off")  # the disk is not what is tested
        self.table = JobTable(self.database)
        self.scheduler = JobScheduler(self.table, runs, group, self.lines.append, clock)

    async def at(self, time: str) -> int:
        """Look at a time; gives how many runs have been begun by then."""
        self.clock.set(time)
        self.scheduler.look()
        await settle()
        return len(self.runs.begun)

    def states(self, job: ServedJob) -> list[str]:
        """What became of the starts of a job."""
        everything = ("waiting", "starting", "started", "ended", "failed", "skipped")
        return [start.state for start in self.table.of_state(job.id, *everything)]


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


class KillableGroup(asyncio.TaskGroup):
    """Tasks that can be ended at any point, as those of a process that is killed."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []

    def create_task(self, *given: Any, **named: Any) -> asyncio.Task[Any]:
        """Begin one."""
        self.tasks.append(super().create_task(*given, **named))
        return self.tasks[-1]

    def kill(self) -> None:
        """End all."""
        for task in self.tasks:
            task.cancel()


@asynccontextmanager
async def serving(folder: Path, clock: SetClock, runs: Runs, *jobs: ServedJob) -> AsyncIterator[Service]:
    """A service that is killed at the end."""
    async with KillableGroup() as group:
        service = Service(folder, clock, runs, group)
        service.scheduler.serve(jobs)
        await settle()
        yield service
        group.kill()
    service.database.close()


def job(words: str, **options: Any) -> ServedJob:
    """A job of a program, due at some times."""
    trigger = "when" if words.startswith(("hook", "file")) else "every"
    made = Job("Reporter", "daily", {"top": 3}, trigger, words, "report", **options)
    return serve_jobs("desk", [made], "UTC")[0]
