"""`koi serve jobs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import click

from koi_lang import settings
from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import age_s, inspecting_command, settings_here
from koi_lang.cli.ui.text import count_text, width
from koi_lang.errors import UsageError
from koi_lang.program import declarations, loader
from koi_lang.service.served_jobs import ServedJob, clashes, due_starts, job_data, serve_jobs, zone_of
from koi_lang.settings.project import service_settings
from koi_lang.system.date_and_place import local_zone
from koi_lang.system.text_width import clean

MOST_SHOWN = 10_000
EVENT_COLUMN = "-"
HEADING = ("job", "starts", "next")


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete_program)
@click.option("--dry-run", "span", metavar="TIME", help="Print when each would be started within a time, such as 7d.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@inspecting_command
def jobs(files: Sequence[str], span: str | None, as_json: bool) -> None:
    """List the jobs of each FILE, which `koi serve http` starts, and when they are due; nothing is started.

    Without FILE those of the `programs` in `[serve]` of koi.toml.
    """
    files = files or service_settings(settings_here()).programs
    if not files:
        raise UsageError("no program is named", help="Write koi serve jobs FILE.")
    served = [job for file in files for job in _jobs_of(file)]
    now = datetime.now(UTC)
    for job, owner in clashes(served):
        click.echo(clean(f"warning: `{job.id}` and `{owner.id}` listen to `{job.hook}`"), err=True)
    if span is not None:
        _print_starts(served, now, _end(now, span), as_json)
    elif as_json:
        listed = [job_data(job, job.schedule.next_after(now) if job.schedule else None) for job in served]
        click.echo(json.dumps({"jobs": listed}, indent=2))
    elif not served:
        click.echo("there are no jobs", err=True)
    else:
        for line in job_lines(served, now):
            click.echo(clean(line))


def _jobs_of(file: str) -> list[ServedJob]:
    loader.load_compiled(file)
    module = loader.load(str(Path(file).resolve()))
    return serve_jobs(Path(file).stem, declarations.jobs_of(module), local_zone(settings.variable("TZ")))


def _end(now: datetime, span: str) -> datetime:
    try:
        return now + timedelta(seconds=age_s("--dry-run", span))
    except OverflowError as error:
        raise UsageError(f"`--dry-run {span}` is too long", help="Write a time such as 7d.") from error


def _print_starts(served: Sequence[ServedJob], now: datetime, end: datetime, as_json: bool) -> None:
    starts = list(islice(due_starts(served, now, end), MOST_SHOWN + 1))
    shown = starts[:MOST_SHOWN]
    if as_json:
        listed = [{"due": _when(due, job).isoformat(), "job": job.id, "handler": job.handler} for due, job in shown]
        click.echo(json.dumps({"starts": listed}, indent=2))
    else:
        for due, job in shown:
            click.echo(clean(f"{time_text(due, job)}  {job.id}"))
    if len(starts) > MOST_SHOWN:
        click.echo(f"only the first {count_text(MOST_SHOWN, 'start')} are shown", err=True)
    elif not shown and not as_json:
        click.echo("nothing is due in that time", err=True)


def job_lines(served: Sequence[ServedJob], now: datetime) -> list[str]:
    """A table for people: a heading, and a line for each job."""
    rows = [HEADING, *(_row(job, now) for job in served)]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text + " " * (wide - width(text)) for text, wide in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _row(job: ServedJob, now: datetime) -> tuple[str, ...]:
    due = job.schedule.next_after(now) if job.schedule else None
    return job.id, f"{job.job.trigger} {job.job.words}", EVENT_COLUMN if due is None else time_text(due, job)


def time_text(due: datetime, job: ServedJob) -> str:
    """`Fri 2026-11-27 09:00:00 +0100 Europe/Berlin`, by the clocks that the job is due by."""
    return f"{_when(due, job):%a %Y-%m-%d %H:%M:%S %z} {zone_of(job)}"


def _when(due: datetime, job: ServedJob) -> datetime:
    return due.astimezone(zone_of(job))
