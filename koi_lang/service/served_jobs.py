"""The jobs of the programs that a service serves, with their words read."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import repeat
from typing import Any
from zoneinfo import ZoneInfo

from koi_lang.errors import SettingsError
from koi_lang.schedules.job import Job, ScheduleError
from koi_lang.schedules.schedule import CronSchedule, Schedule, due_between
from koi_lang.schedules.triggers import FileTrigger, HookTrigger, parse_trigger
from koi_lang.schedules.words import parse_schedule
from koi_lang.service.job_table import JobStart


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A job of a program.

    Attributes:
        program: the name that the program is served by.
        cause: what starts it.
    """

    program: str
    job: Job
    cause: Schedule | FileTrigger | HookTrigger

    @property
    def id(self) -> str:
        """Its id among the jobs of all programs."""
        return f"{self.program}/{self.job.name}"

    @property
    def handler(self) -> str:
        """The called handler."""
        return f"{self.job.agent}.{self.job.handler}"

    @property
    def schedule(self) -> Schedule | None:
        """When it is due; None where an event starts it."""
        return None if isinstance(self.cause, FileTrigger | HookTrigger) else self.cause

    @property
    def hook(self) -> str:
        """The path at which messages start it; empty for other jobs."""
        return self.cause.path if isinstance(self.cause, HookTrigger) else ""


def serve_jobs(program: str, jobs: Iterable[Job], zone: str) -> list[ServedJob]:
    """The jobs of a program that has been compiled.

    Args:
        zone: the time zone of schedules that name none.

    Raises:
        SettingsError: a time zone is not known on this machine, as it was where the program was compiled.
    """
    try:
        return [ServedJob(program, job, _cause(job, zone)) for job in jobs]
    except ScheduleError as error:
        raise SettingsError(str(error), help=error.help) from error


def _cause(job: Job, zone: str) -> Schedule | FileTrigger | HookTrigger:
    return parse_schedule(job.words, zone) if job.trigger == "every" else parse_trigger(job.words)


def clashes(jobs: Sequence[ServedJob]) -> list[tuple[ServedJob, ServedJob]]:
    """Jobs of different programs that listen to one path, each with the one that gets its messages."""
    first: dict[str, ServedJob] = {}
    pairs = ((job, first.setdefault(job.hook, job)) for job in jobs if job.hook)
    return [(job, owner) for job, owner in pairs if owner is not job]


def due_starts(jobs: Sequence[ServedJob], after: datetime, until: datetime) -> Iterator[tuple[datetime, ServedJob]]:
    """When jobs are due within a span, in order; delays by `jitter` are not added."""
    each = (
        zip(due_between(job.schedule, after, until), repeat(number))
        for number, job in enumerate(jobs)
        if job.schedule is not None
    )
    return ((due, jobs[number]) for due, number in heapq.merge(*each))


def zone_of(job: ServedJob) -> tzinfo:
    """By whose clocks a job is due."""
    return ZoneInfo(job.schedule.zone) if isinstance(job.schedule, CronSchedule) else UTC


def job_data(job: ServedJob, due: datetime | None, last: JobStart | None = None) -> dict[str, Any]:
    """A job as JSON: times are ISO 8601 with an offset, `next` is null where an event starts it.

    Args:
        due: when it is due next.
        last: what was started of it last; None where nothing is known of that.
    """
    about, zone = job.job, zone_of(job)
    fields: dict[str, Any] = {"id": job.id, "program": job.program, "name": about.name, "handler": job.handler}
    fields |= {"payload": about.payload, "trigger": about.trigger, "words": about.words, "line": about.line}
    fields |= {"missed": about.missed, "overlap": about.when_busy, "jitter": about.jitter_s}
    fields |= {"zone": str(zone) if job.schedule else None, "next": None if due is None else _iso(due, zone)}
    if last is not None:
        when = datetime.fromtimestamp(last.due, UTC)
        fields["last"] = {"run": last.run, "due": _iso(when, zone), "state": last.state, "reason": last.reason}
    return fields


def _iso(time: datetime, zone: tzinfo) -> str:
    return time.astimezone(zone).isoformat(timespec="seconds")
