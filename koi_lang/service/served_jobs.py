"""The jobs of the programs that a service serves, with their words read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from koi_lang.errors import SettingsError
from koi_lang.schedules.errors import ScheduleError
from koi_lang.schedules.job import Job
from koi_lang.schedules.schedule import Schedule
from koi_lang.schedules.triggers import FileTrigger, HookTrigger, parse_trigger
from koi_lang.schedules.words import parse_schedule


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
        """What it is called among the jobs of all programs."""
        return f"{self.program}/{self.job.name}"

    @property
    def handler(self) -> str:
        """What is called."""
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
