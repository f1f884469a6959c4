"""The stored state of jobs: the time of their last look, and their starts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from koi_lang.service.store import Database

StartState: TypeAlias = Literal["waiting", "starting", "started", "ended", "failed", "skipped"]
# States in which a start still has something to come.
OPEN: tuple[StartState, ...] = ("waiting", "starting", "started")
# Of the starts that are over, so many are kept of each job.
MAX_KEPT = 1000


@dataclass(frozen=True, slots=True)
class JobStart:
    """One start of a job.

    Attributes:
        run: id of its run, known before it begins.
        job: program and name of the job, `desk/Reporter.daily`.
        key: what it must not be started for twice.
        due: seconds since the epoch at which it was due.
        begins: seconds since the epoch before which it does not begin.
        reason: why it failed or was skipped, for people.
    """

    run: str
    job: str
    key: str
    due: float
    begins: float
    payload: Any
    state: StartState = "waiting"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is.

    Attributes:
        handled: up to when its due times were seen to, in seconds since the epoch.
        era: how often its clock was set back so far that times are due once more.
    """

    handled: float
    era: int = 0


COLUMNS = ", ".join(field.name for field in fields(JobStart))


class JobTable:
    """Jobs and their starts. Times are seconds since the epoch."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "create table if not exists jobs (job text primary key, words text not null, handled real not null,"
            " era integer not null)"
        )
        database.execute(
            "create table if not exists job_starts (number integer primary key, run text not null, job text not null,"
            " key text not null unique, due real not null, begins real not null, payload text not null,"
            " state text not null, reason text not null)"
        )
        database.execute("create index if not exists job_starts_by_job on job_starts (job, state)")

    # ------------------------------------------------------------ jobs

    def progress(self, job: str, words: str) -> JobProgress | None:
        """How far a job is; None for a new job, or one with other words."""
        rows = self._database.execute("select handled, era from jobs where job = ? and words = ?", (job, words))
        return JobProgress(*rows[0]) if rows else None

    def set_progress(self, job: str, words: str, progress: JobProgress) -> None:
        """Note how far a job is."""
        values = (job, words, progress.handled, progress.era)
        self._database.execute("insert or replace into jobs values (?, ?, ?, ?)", values)

    # ------------------------------------------------------------ starts

    def add(self, start: JobStart) -> bool:
        """Keep a start; whether there was none of its key."""
        payload = json.dumps(start.payload, ensure_ascii=False, allow_nan=False)
        values = (start.run, start.job, start.key, start.due, start.begins, payload, start.state)
        added = self._database.execute(
            f"insert or ignore into job_starts ({COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?) returning number",
            (*values, start.reason),
        )
        return bool(added)

    def set_state(self, run: str, state: StartState, reason: str = "") -> None:
        """Set the state of a start; the payload of an ended one is forgotten."""
        kept = "payload" if state in OPEN else "'null'"
        statement = f"update job_starts set state = ?, reason = ?, payload = {kept} where run = ?"
        self._database.execute(statement, (state, reason, run))

    def put_off(self, run: str, until: float) -> None:
        """Have a start wait once more."""
        self._database.execute("update job_starts set state = 'waiting', begins = ? where run = ?", (until, run))

    def find(self, key: str) -> JobStart | None:
        """The start of a key."""
        return next(iter(self._select("where key = ?", (key,))), None)

    def of_state(self, job: str, *states: StartState, most: int = -1) -> list[JobStart]:
        """The starts of a job in some states, in the order in which they were added, all or so many at most."""
        places = ", ".join("?" for _ in states)
        return self._select(f"where job = ? and state in ({places}) order by number limit ?", (job, *states, most))

    def count(self, job: str, *states: StartState) -> int:
        """How many starts of a job are in some states."""
        places = ", ".join("?" for _ in states)
        statement = f"select count(*) from job_starts where job = ? and state in ({places})"
        return int(self._database.execute(statement, (job, *states))[0][0])

    def last(self, job: str) -> JobStart | None:
        """The start of a job that was added last."""
        return next(iter(self._select("where job = ? order by number desc limit 1", (job,))), None)

    def forget_old(self, job: str) -> None:
        """Remove ended starts of a job, except the newest."""
        self._database.execute(
            "delete from job_starts where job = :job and state not in ('waiting', 'starting', 'started') and number <="
            " (select number from job_starts where job = :job order by number desc limit 1 offset :most)",
            {"job": job, "most": MAX_KEPT},
        )

    def _select(self, rest: str, values: Iterable[Any]) -> list[JobStart]:
        rows = self._database.execute(f"select {COLUMNS} from job_starts {rest}", tuple(values))
        return [_start_of(row) for row in rows]


def _start_of(row: tuple[Any, ...]) -> JobStart:
    values = dict(zip((field.name for field in fields(JobStart)), row, strict=True))
    return JobStart(**{**values, "payload": json.loads(values["payload"])})
