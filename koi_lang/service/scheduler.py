"""Jobs to runs: each due time and each event begins one run, once, over kills and changes of the clock.

A start is kept before it begins, under a key that tells what it is for, and with the id of its run. After a kill the
same run is begun, or found to have begun. The time up to which a job was seen to is kept behind its starts, so that a
kill between the two finds the key again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any, Protocol

from koi_lang.errors import SettingsError, capture, error_of
from koi_lang.program.error_report import message as message_of
from koi_lang.runtime.concurrency.cancellation import start_detached
from koi_lang.schedules.schedule import Schedule, last_due
from koi_lang.service.job_table import OPEN, JobProgress, JobStart, JobTable, StartState
from koi_lang.service.served_jobs import ServedJob

# How late something may be noticed that is still on time.
GRACE_S = 60.0
# Clocks that are set back by more are believed: what was due since then is due once more.
MAX_SET_BACK_S = 3 * 3600.0
# A clock that is set forward is noticed within that.
MAX_PAUSE_S = 30.0
MAX_CONCURRENT = 20
# Messages that wait for one job.
MAX_WAITING = 1000
RETRY_S = 30.0
BUSY = "the start before it still works"
MISSED = "it fell due while nothing ran"


class Starter(Protocol):
    """Begins runs for jobs."""

    async def start(self, run: str, program: str, handler: str, payload: Any) -> bool:
        """Begin a run of that id, unless it has begun; whether there was room for it. Raises KoiError."""

    async def wait_for_end(self, run: str) -> str:
        """Wait for the end of its call, which goes on where a kill has ended it; empty when it ended well, else why."""


class Clock(Protocol):
    """The time of day, which may be set forward and back."""

    def now(self) -> float:
        """Seconds since the epoch."""


class WallClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class JobScheduler:
    """Starts jobs when they are due.

    Args:
        group: has the runs that are begun.
        log: takes lines for whoever started the service.
    """

    def __init__(
        self,
        table: JobTable,
        starter: Starter,
        group: asyncio.TaskGroup,
        log: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self._table = table
        self._starter = starter
        self._group = group
        self._log = log
        self._clock = clock or WallClock()
        self._jobs: dict[str, ServedJob] = {}
        self._progress: dict[str, JobProgress] = {}
        self._due: dict[str, float | None] = {}
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trouble = ""

    @property
    def jobs(self) -> list[ServedJob]:
        """The scheduled jobs, in the order of the programs."""
        return list(self._jobs.values())

    def serve(self, jobs: Iterable[ServedJob]) -> None:
        """Schedule these jobs from now on, and continue their begun runs."""
        known, self._jobs = self._jobs, {job.id: job for job in jobs}
        for job in self.jobs:
            if job.schedule is not None:
                known_progress = self._table.progress(job.id, job.job.words)
                self._set_progress(job, job.schedule, known_progress or JobProgress(self._clock.now()))
            if job.id not in known:
                self._resume(job)
        self._news.set()

    def _resume(self, job: ServedJob) -> None:
        for start in self._table.of_state(job.id, "starting", "started"):
            work = self._carry_out(job, start) if start.state == "starting" else self._follow(job, start)
            self._begin(work)

    async def run(self) -> None:
        """Start jobs until this is cancelled."""
        while True:
            self._news.clear()
            pause = self.try_to_look()
            try:
                async with asyncio.timeout(pause):
                    await self._news.wait()
            except TimeoutError:
                continue

    def try_to_look(self) -> float:
        """The same as `look`, which is tried again where nothing can be written down."""
        try:
            pause, self._trouble = self.look(), ""
        except SettingsError as error:
            self._tell_trouble(error)
            return MAX_PAUSE_S
        return pause

    def _tell_trouble(self, error: Exception) -> None:
        """Tell once that nothing can be written down, so that nothing is started."""
        if self._trouble != str(error):
            self._trouble = str(error)
            self._log(f"error: jobs wait, since nothing can be written down: {error}")

    # ------------------------------------------------------------ times

    def look(self) -> float:
        """Begin all that is due; gives the seconds until something is due, or should be looked at again."""
        now, pause = self._clock.now(), MAX_PAUSE_S
        for job in self.jobs:
            if job.schedule is not None:
                self._note_due(job, job.schedule, now)
                due = self._due[job.id]
                pause = pause if due is None else min(pause, due - now)
            pause = min(pause, self._begin_waiting(job, now))
        return max(pause, 0.0)

    def _note_due(self, job: ServedJob, schedule: Schedule, now: float) -> None:
        """Have the last due time begin a run; those before it that nothing saw to are made up for by it."""
        progress = self._progress[job.id]
        if progress.handled - now > MAX_SET_BACK_S:
            self._log(f"the clock was set back; `{job.id}` goes by it")
            progress = JobProgress(now, progress.era + 1)
            self._set_progress(job, schedule, progress)
        next_due = self._due[job.id]
        if next_due is None or next_due > now:
            return
        due = last_due(schedule, _instant(next_due), _instant(now)).timestamp()
        key = f"{job.id}@{_instant(due).isoformat()}" + (f"~{progress.era}" if progress.era else "")
        is_late = now - due > GRACE_S
        skipped = MISSED if is_late and job.job.missed == "never" else self._reason_to_skip(job)
        self._add(job, key, due, job.job.payload, skipped)
        self._set_progress(job, schedule, JobProgress(due, progress.era))

    def _set_progress(self, job: ServedJob, schedule: Schedule, progress: JobProgress) -> None:
        self._table.set_progress(job.id, job.job.words, progress)
        self._progress[job.id] = progress
        due = schedule.next_after(_instant(progress.handled))
        self._due[job.id] = None if due is None else due.timestamp()

    def _reason_to_skip(self, job: ServedJob) -> str:
        """Why a due time begins nothing; empty where it does."""
        match job.job.when_busy:
            case "skip" if self.is_busy(job):
                return BUSY
            case "wait" if self._table.count(job.id, "waiting"):
                return "another start already waits"
        return ""

    # ------------------------------------------------------------ events

    def is_busy(self, job: ServedJob) -> bool:
        """Whether a start of a job waits or works."""
        return self._table.count(job.id, *OPEN) > 0

    def take_event(self, job: ServedJob, payload: Any, id: str | None) -> JobStart | None:
        """Begin a run for an event, or skip it where the job does so while busy; returns the stored start.

        Args:
            id: tells it from other events of the job; None for one that is never the same as another.

        Returns:
            What was kept of an event of that id, now or before; None where too many wait.
        """
        key = f"{job.id}#{token_hex(16) if id is None else id}"
        known = self._table.find(key)
        if known is not None:
            return known
        reason = BUSY if job.job.when_busy == "skip" and self.is_busy(job) else ""
        if not reason and self._table.count(job.id, "waiting") >= MAX_WAITING:
            return None
        self._add(job, key, self._clock.now(), payload, reason)
        self._news.set()
        return self._table.find(key)

    # ------------------------------------------------------------ starts

    def _add(self, job: ServedJob, key: str, due: float, payload: Any, skipped: str = "") -> None:
        digest = sha256(key.encode())
        delay = job.job.jitter_s * int.from_bytes(digest.digest()[-4:]) / 2**32
        state: StartState = "skipped" if skipped else "waiting"
        kept = None if skipped else payload
        start = JobStart(digest.hexdigest()[:12], job.id, key, due, due + delay, kept, state, skipped)
        self._table.add(start)

    def _begin_waiting(self, job: ServedJob, now: float) -> float:
        """Begin waiting starts that may begin; returns the seconds until the next one."""
        room = MAX_CONCURRENT if job.job.when_busy == "together" else 1
        room -= self._table.count(job.id, "starting", "started")
        pause = MAX_PAUSE_S
        for start in self._table.of_state(job.id, "waiting", most=max(room, 0)):
            rest = start.begins - now
            # A delay that is longer than any was given before the clock was set back.
            if 0 < rest <= max(job.job.jitter_s, RETRY_S):
                pause = min(pause, rest)
                continue
            self._table.set_state(start.run, "starting")
            self._begin(self._carry_out(job, start))
        return pause

    async def _carry_out(self, job: ServedJob, start: JobStart) -> None:
        begun = await capture(self._starter.start(start.run, job.program, job.handler, start.payload))
        if begun.error is not None:
            message = message_of(begun.error)
            self._log(f"error: `{job.id}` was not started: {message}")
            await self._end(job, start, message)
        elif not begun.value:
            await self._write(self._table.put_off, start.run, self._clock.now() + RETRY_S)
        else:
            await self._write(self._table.set_state, start.run, "started")
            await self._follow(job, start)

    async def _follow(self, job: ServedJob, start: JobStart) -> None:
        ended = await capture(self._starter.wait_for_end(start.run))
        await self._end(job, start, (ended.value or "") if ended.error is None else message_of(ended.error))

    async def _end(self, job: ServedJob, start: JobStart, failure: str) -> None:
        await self._write(self._table.set_state, start.run, "failed" if failure else "ended", failure)
        await self._write(self._table.forget_old, job.id)
        self._news.set()

    async def _write(self, write: Callable[..., None], *values: Any) -> None:
        """Write something down, as soon as that is possible."""
        while (error := error_of(write, *values)) is not None:
            if not isinstance(error, SettingsError):
                raise error
            self._tell_trouble(error)
            await asyncio.sleep(RETRY_S)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = start_detached(self._group, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Stop waiting for runs; running ones are known to the next service."""
        for task in self._tasks:
            task.cancel()

    # ------------------------------------------------------------ listing

    def next_start(self, job: ServedJob) -> float | None:
        """When a job is due next, in seconds since the epoch; None where an event starts it."""
        return self._due.get(job.id)

    def last_start(self, job: ServedJob) -> JobStart | None:
        """The last start of a job, skipped ones included."""
        return self._table.last(job.id)


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
