"""`koi runs`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from koi_lang.cli.attaching.attach import attach, is_attachable
from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.options import age_s
from koi_lang.cli.tables.costs import costs
from koi_lang.cli.tables.export import export, view, warn_of_journal
from koi_lang.cli.ui import journal_tree
from koi_lang.cli.ui.text import cost_text, count_text
from koi_lang.errors import JournalError, UsageError
from koi_lang.events import RunEnded
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import LAST_CALL, TOTALS, Header, JournalEntry, entry_in
from koi_lang.runtime.journal.reader import read as read_journal
from koi_lang.runtime.journal.summary import UNFINISHED, RunSummary, summarise
from koi_lang.runtime.model_calls.images import replace_images
from koi_lang.runtime.snapshots.store import sweep_snapshots
from koi_lang.system.text_width import clean

COLUMNS = ("id", "started", "program", "state", "time", "requests", "tokens", "cost")
NARROWEST = 60
PAUSE_S = 0.1
MAX_NAMED = 20


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, view, follow, steer, export, repair or delete recorded runs, or tell what they cost.

    ID may be the beginning of an id, or `last`. Without ID, `show`, `tree` and `tail` take the last run.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


command.add_command(attach)
command.add_command(costs)
command.add_command(export)
command.add_command(view)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def list_(as_json: bool) -> None:
    """List the runs that were recorded in this folder, the latest last."""
    runs = sorted(_summaries(), key=lambda run: (run[1].header.started, run[0].name))
    if as_json:
        click.echo(json.dumps([_data(path, summary) for path, summary in runs], indent=2))
        return
    if not runs:
        click.echo("no run was recorded in this folder; `koi run FILE` records one", err=True)
        return
    rows = [COLUMNS, *(_row(path, summary) for path, summary in runs)]
    if any(summary.header.parent for _, summary in runs):
        origins = ["branch of", *(_origin(summary.header) for _, summary in runs)]
        rows = [(*row, origin) for row, origin in zip(rows, origins, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    followed = ", ".join(f"`{path.stem}`" for path, summary in runs if _can_be_followed(path, summary))
    if followed:
        click.echo(f"`koi runs attach ID` follows {followed}", err=True)


def _can_be_followed(path: Path, summary: RunSummary) -> bool:
    return summary.is_running and is_attachable(path)


def _data(path: Path, summary: RunSummary) -> Mapping[str, Any]:
    return {**summary.as_data(path.stem), "attachable": _can_be_followed(path, summary)}


def _summaries() -> Iterator[tuple[Path, RunSummary]]:
    """The journals of this folder with the summaries of their runs; unreadable ones are reported."""
    for path in store.journal_paths(Path.cwd()):
        try:
            yield path, summarise(path)
        except JournalError as error:
            click.echo(clean(f"warning: {error.message}"), err=True)


def _origin(header: Header) -> str:
    """What a branch goes on from; empty for other runs."""
    return f"{header.parent[0]} from entry {header.parent[1]}" if header.parent else ""


def _row(path: Path, summary: RunSummary) -> tuple[str, ...]:
    return (
        path.stem,
        _moment(summary.header.started),
        Path(summary.header.program).name,
        summary.state,
        _duration(summary.seconds),
        str(summary.totals.requests),
        f"{summary.totals.tokens:,}",
        cost_text(summary.totals),
    )


@command.command()
@click.argument("run", metavar="[ID]", default=store.LAST, shell_complete=complete_run)
@click.option("--full", is_flag=True, help="Do not shorten what was recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, whose `entries` are a list.")
def show(run: str, full: bool, as_json: bool) -> None:
    """Show what happened in a run, one line for each entry."""
    path = store.find(Path.cwd(), run)
    summary, journal = summarise(path), read_journal(path)
    if as_json:
        entries = [entry.as_data() for entry in journal.entries]
        click.echo(json.dumps({**_data(path, summary), "entries": entries}, indent=2))
        warn_of_journal(path, journal)
        return
    for name, text in _facts(path, summary).items():
        _say(f"{name:9} {text}")
    click.echo()
    for entry in journal.entries:
        _say(_line(entry, journal.header, full))
    warn_of_journal(path, journal)


def _facts(path: Path, summary: RunSummary) -> Mapping[str, str]:
    header = summary.header
    totals = summary.totals
    return {
        "run": path.stem,
        "started": _moment(header.started),
        **({"parent": _origin(header)} if header.parent else {}),
        "program": header.program,
        "command": " ".join(("koi", *header.words)),
        "version": header.version,
        "state": f"{summary.state} after {_duration(summary.seconds)}",
        "models": f"{count_text(totals.requests, 'request')}, {totals.tokens:,} tokens, {cost_text(totals)}",
    }


@command.command()
@click.argument("run", metavar="[ID]", default=store.LAST, shell_complete=complete_run)
def tree(run: str) -> None:
    """Show the entries that `koi resume --at` can go back to, with the branches of the run."""
    for line in journal_tree.tree(Path.cwd(), store.find(Path.cwd(), run)):
        _say(line)


@command.command()
@click.argument("run", metavar="[ID]", default=store.LAST, shell_complete=complete_run)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option(
    "-n", "--lines", "count", metavar="N", type=click.IntRange(0), default=10, show_default=True, help="How many."
)
def tail(run: str, follow: bool, count: int) -> None:
    """Show the last entries of a run."""
    path = store.find(Path.cwd(), run)
    journal = read_journal(path)
    seen = len(journal.entries)
    for entry in journal.entries[max(0, seen - count) :]:
        _say(_line(entry, journal.header, full=False))
    if follow and not (journal.entries and journal.entries[-1].kind == RunEnded.type):
        for entry in _following(path, journal.entries[-1].n if journal.entries else 0):
            _say(_line(entry, journal.header, full=False))


def _following(path: Path, after: int) -> Iterator[JournalEntry]:
    """The entries behind the n-th as they come, until the run ends or its process does."""
    for line in _growing(path):
        entry = entry_in(line)
        if entry is not None and entry.n > after:
            yield entry


def _growing(path: Path) -> Iterator[bytes]:
    """The whole lines of a journal, until nobody writes it any more."""
    with path.open("rb") as file:
        pending, is_running = b"", True
        while is_running:
            # Asked before reading: what was written before the end is then still seen.
            is_running = store.is_running(path)
            *lines, pending = (pending + file.read()).split(b"\n")
            yield from lines
            if is_running:
                # Python has no way to be told that a file has grown.
                time.sleep(PAUSE_S)


@command.command()
@click.argument("run", metavar="[ID]", required=False, shell_complete=complete_run)
@click.option("--older", metavar="TIME", help="Remove all journals that nothing was added to for so long, such as 30d.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(run: str | None, older: str | None, yes: bool) -> None:
    """Remove the journal of a run, or all old ones."""
    if (run is None) == (older is None):
        raise UsageError("name one run, or say how old journals must be", help="Write `koi runs delete --older 30d`.")
    if older is not None:
        _delete_older(age_s("--older", older), yes=yes)
    elif run is not None:
        path = store.find(Path.cwd(), run)
        if not yes:
            click.confirm(f"Remove the journal `{path.stem}`?", abort=True, err=True)
        store.delete(path)
        sweep_snapshots(Path.cwd())
        click.echo(f"removed {path.stem}")


def _delete_older(age_s: float, *, yes: bool) -> None:
    until = time.time() - age_s
    old = [(path, run) for path, run in _summaries() if run.header.started + run.seconds < until]
    runs = [(path, run) for path, run in old if not store.is_part(path)]  # cases go with their evaluation
    paths = [path for path, run in runs if not run.is_running]
    if not paths:
        click.echo("no journal of this folder is that old", err=True)
        return
    unfinished = sum(run.state in UNFINISHED for _, run in runs)
    could = f" {unfinished:,} of these runs could still go on." if unfinished else ""
    if not yes:
        click.confirm(f"Remove {count_text(len(paths), 'journal')}?{could}", abort=True, err=True)
    removed = list(filter(_is_removed, paths))
    sweep_snapshots(Path.cwd())
    names = [path.stem for path in removed[:MAX_NAMED]]
    more = f" and {len(removed) - MAX_NAMED:,} more" if len(removed) > MAX_NAMED else ""
    _say(f"removed {count_text(len(removed), 'journal')}{': ' if names else ''}{', '.join(names)}{more}")


def _is_removed(path: Path) -> bool:
    """Remove a journal; tells why where that cannot be, because its run goes on again, or somebody else was faster."""
    try:
        store.delete(path)
    except JournalError as error:
        click.echo(clean(f"warning: {error.message}"), err=True)
        return False
    return True


@command.command()
@click.argument("run", metavar="ID", shell_complete=complete_run)
def repair(run: str) -> None:
    """Keep the sound lines of a journal, in order; all others are kept beside it."""
    path = store.find(Path.cwd(), run)
    beside = path.with_suffix(store.TORN).name
    cut = store.repair(path)
    if cut:
        click.echo(f"{cut} bytes of a torn line were cut off and added to {beside}")
    removed = store.put_in_order(path)
    if removed:
        click.echo(f"{count_text(removed, 'line')} that cannot be relied on moved to {beside}")
    if removed is not None:
        click.echo("the other lines stand in the order in which they were written")
    elif not cut:
        click.echo("every line is sound")
    warn_of_journal(path, read_journal(path))


# ---------------------------------------------------------------- texts


def _say(text: str) -> None:
    """Write a line from a journal, which anybody may have written, without control characters."""
    click.echo(clean(text))


def _line(entry: JournalEntry, header: Header, full: bool) -> str:
    """An entry for people: seconds since the start, its kind, its place, and its fields."""
    fields = " ".join(
        f"{name}={json.dumps(replace_images(value), ensure_ascii=False)}"
        for name, value in entry.data.items()
        if name not in (TOTALS, LAST_CALL)
    )
    parts = (f"{max(0.0, entry.ts - header.started):9.3f}", f"{entry.kind:15}", " / ".join(entry.path), fields)
    text = "  ".join(filter(None, parts)).rstrip()
    width = max(NARROWEST, shutil.get_terminal_size((160, 24)).columns)
    return text if full or len(text) <= width else text[: width - 1] + "…"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02}m"
