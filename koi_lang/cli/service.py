"""`koi service`: users, jobs and webhooks of a service, and the reload of its programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang import settings
from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import age_s, inspecting_command, settings_here
from koi_lang.cli.serve import TOKEN, served_settings
from koi_lang.cli.ui.text import count_text, width
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.program import declarations, loader
from koi_lang.service import deliveries, store, users, webhooks
from koi_lang.service.served_jobs import ServedJob, clashes, due_starts, job_data, serve_jobs, zone_of
from koi_lang.settings import service as service_settings
from koi_lang.system.date_and_place import local_zone
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = lazy_module("httpx2")

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
RELOAD_S = 120.0
MAX_STARTS = 10_000
EVENT_COLUMN = "-"
HEADING = ("job", "starts", "next")


@click.group()
def command() -> None:
    """Manage a service: tokens of its users, jobs and when they are due, webhooks, and the reload of programs."""


@command.command("hooks")
@click.option(
    "--record-dir", metavar="DIR", type=click.Path(path_type=Path), help="The folder of journals; by default this one."
)
@click.option("--all", "everything", is_flag=True, help="List what has arrived, too.")
@click.option("--secret", is_flag=True, help="Show the secret that signs messages.")
def hooks(record_dir: Path | None, everything: bool, secret: bool) -> None:
    """List what `[serve.hooks]` were to be told, and have not been, or not yet."""
    about = served_settings(settings_here())
    folder = Path(record_dir or about.record_dir or ".").resolve()
    with closing(store.Database.connect(folder)) as database:
        if secret:
            click.echo(about.hook_secrets.get(service_settings.OUTGOING) or webhooks.kept_secret(database))
            return
        found = deliveries.DeliveryTable(database).all(undelivered=not everything)
    for each in found:
        about_try = f"{each.tries} of {deliveries.TRIES} tries"
        row = "  ".join((each.state, each.event, each.run or "-", about_try, each.problem))
        click.echo(f"{each.id}  {row}".rstrip())
    if not found:
        click.echo("nothing is waiting, and nothing was given up", err=True)


@command.command("token")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Have the user see and steer the runs of everybody.")
def token(name: str, admin: bool) -> None:
    """Make a token for the user NAME of a service, and show it once; `koi.toml` keeps its hash alone."""
    service_settings.require_user_name(name)
    made = users.new_token()
    key = name if BARE_KEY.fullmatch(name) else f'"{name}"'
    value = f'"{users.hash_of(made)}"'
    click.echo(f"# the token of `{name}`, which is shown this once:\n# {made}\n\n[serve.users]")
    click.echo(f"{key} = {{ token = {value}, admin = true }}" if admin else f"{key} = {value}")
    if name in served_settings(settings.read_settings()).users:
        click.echo(f"`{name}` has a token in koi.toml; with this line in its place that one counts no more", err=True)


@command.command("reload")
@click.argument("url", default=f"http://{service_settings.DEFAULT_ADDRESS}")
def reload_service(url: str) -> None:
    """Have the service at URL serve its programs as their files are now; sessions stay with what they were begun with.

    The token is taken from KOI_SERVE_TOKEN.
    """
    headers = {"Authorization": f"Bearer {token}"} if (token := settings.variable(TOKEN)) else {}
    try:
        answer = httpx2.post(f"{url.rstrip('/')}/api/reload", headers=headers, timeout=RELOAD_S)
        reply = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise UsageError(
            f"there is no service at `{url}`", help="Name the address that it told at its start."
        ) from error
    if answer.status_code != 200:
        raise UsageError(str(reply.get("message", "the service refuses it")), help=reply.get("help"))
    for each in reply["programs"]:
        click.echo(f"{each['name']}: {each['error'] or ('loaded anew' if each['changed'] else 'as it was')}")
    sys.exit(int(any(each["error"] for each in reply["programs"])))


# ---------------------------------------------------------------- jobs


@command.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete_program)
@click.option("--within", "span", metavar="TIME", help="Print when each would be started within a time, such as 7d.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@inspecting_command
def jobs(files: Sequence[str], span: str | None, as_json: bool) -> None:
    """List the jobs of each FILE, which `koi serve http` starts, and when they are due; nothing is started.

    Without FILE those of the `programs` in `[serve]` of koi.toml.
    """
    files = files or served_settings(settings_here()).programs
    if not files:
        raise UsageError("no program is named", help="Write `koi service jobs FILE`.")
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
        return now + timedelta(seconds=age_s("--within", span))
    except OverflowError as error:
        raise UsageError(f"`--within {span}` is too long", help="Write a time such as 7d.") from error


def _print_starts(served: Sequence[ServedJob], now: datetime, end: datetime, as_json: bool) -> None:
    starts = list(islice(due_starts(served, now, end), MAX_STARTS + 1))
    shown = starts[:MAX_STARTS]
    if as_json:
        listed = [{"due": _when(due, job).isoformat(), "job": job.id, "handler": job.handler} for due, job in shown]
        click.echo(json.dumps({"starts": listed}, indent=2))
    else:
        for due, job in shown:
            click.echo(clean(f"{time_text(due, job)}  {job.id}"))
    if len(starts) > MAX_STARTS:
        click.echo(f"only the first {count_text(MAX_STARTS, 'start')} are shown", err=True)
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
