"""Jobs for those who want to know: when each is due, and what was started last."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import repeat
from typing import Any
from zoneinfo import ZoneInfo

from koi_lang.schedules.schedule import CronSchedule, due_between
from koi_lang.service.job_table import JobStart
from koi_lang.service.served_jobs import ServedJob


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
