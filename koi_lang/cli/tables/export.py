"""`koi runs export` and `koi runs view`: recorded runs as files, as tables, and in a browser."""

from __future__ import annotations

import csv
import json
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.tables.costs import costs_here, from_option, second_before, warn_of_unpriced
from koi_lang.cli.ui.interrupts import serve_until_ended
from koi_lang.cli.ui.output import writing
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import JournalError, UsageError
from koi_lang.http_server.address import Address
from koi_lang.lazy import lazy_module
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.cost_tables import list_costs
from koi_lang.runtime.journal.journal_folder import JournalFolder
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.reader import read as read_journal
from koi_lang.runtime.journal.summary import RunSummary, summarise
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.sessions import browser
    from koi_lang.web import page_file, view_server
else:
    browser = lazy_module("koi_lang.sessions.browser")
    view_server = lazy_module("koi_lang.web.view_server")
    page_file = lazy_module("koi_lang.web.page_file")

RUNS = ("run", "started", "program", "state", "seconds", "requests", "tokens", "usd", "parent", "entry")
COSTS = (
    *("day", "run", "program", "agent", "model"),
    *("requests", "tokens", "input", "output", "cached", "usd", "unpriced"),
)
LOOPBACK = "127.0.0.1"
TABLES = {"runs": RUNS, "costs": COSTS}
OUTPUT = click.Path(path_type=Path)
# With these a spreadsheet takes a text for a formula; some of them strip blanks before.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def _complete(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """The tables and the runs of this folder."""
    tables = [CompletionItem(name) for name in TABLES if name.startswith(word)]
    return [*tables, *complete_run(context, parameter, word)]


@click.command()
@click.argument("what", metavar="ID|runs|costs", shell_complete=_complete)
@click.option("--html", is_flag=True, help="Write a page that shows the run, as one file that needs nothing else.")
@click.option(
    "--format",
    "kind",
    metavar="FORMAT",
    type=click.Choice(("json", "csv")),
    help="Of a table: json, as without it, or csv.",
)
@from_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=OUTPUT,
    help="A file that does not exist yet; without it, a table goes to stdout.",
)
def export(what: str, html: bool, kind: Literal["json", "csv"] | None, since: str | None, output: Path | None) -> None:
    """Write one run, or a table of all `runs` of this folder or of their `costs`.

    Of a run these are the readable lines of its journal, in which the program is named as seen from the new file. With
    `--html` it is a page instead, `ID.html` where no other file is named. The table of runs has a record for each, that
    of costs one for each day, run, agent and model; with `--from`, of the runs that began within that time.
    """
    if what not in TABLES and (kind or since):
        option = "--format" if kind else "--from"
        raise UsageError(f"`{option}` is for tables", help="Write `koi runs export runs` or `koi runs export costs`.")
    path = None if what in TABLES else store.find(Path.cwd(), what)
    if path is not None and output is None and not html:
        raise UsageError("`koi runs export` needs a file to write", help=f"Name it: `-o tests/{path.stem}.jsonl`.")
    if path is not None:
        output = output or Path(f"{path.stem}.html")
    if output is not None and output.exists():
        raise UsageError(f"`{output}` exists", help="Choose another name, or remove the file first.")
    if path is None or output is None:
        _export_table(what, kind or "json", second_before("--from", since), output)
    elif html:
        _export_page(path, output)
    else:
        with writing(output):
            left_out = store.export_recording(path, output)
        named = shlex.quote(str(output))
        commands = f"`koi test {named}` replays it, `koi replay {named}` shows what is different"
        click.echo(clean(f"wrote {output}; {commands}"), err=True)
        if left_out:
            click.echo(f"warning: {count_text(left_out, 'line')} left out", err=True)


def _export_page(path: Path, output: Path) -> None:
    """Write the page of a run, and report what it lacks."""
    text = page_file.run_page(path, Keys(read_settings()).redactor().source)
    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    click.echo(f"wrote {output}")
    warn_of_journal(path, read_journal(path))


def warn_of_journal(path: Path, journal: Journal) -> None:
    """Report what a journal holds that is no entry, and what it lacks."""
    for fault in journal.faults:
        click.echo(f"warning: {fault}", err=True)
    if journal.torn and not store.is_running(path):
        click.echo(f"warning: the last line is torn; `koi runs repair {path.stem}` cuts it off", err=True)


@click.command()
@click.argument("run", metavar="[ID]", required=False, shell_complete=complete_run)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; by default any that is free.")
@click.option("--no-open", is_flag=True, help="Say the address, and open no browser.")
def view(run: str | None, port: int, no_open: bool) -> None:
    """Show recorded runs in a browser, without a service: one run, or the list of all.

    Only this machine can reach it; it ends with Ctrl-C.
    """
    path = f"/run/{store.find(Path.cwd(), run).stem}&" if run else ""
    token = secrets.token_urlsafe(32)

    def announce(url: str) -> None:
        page = f"{url}/dev#{path}token={token}"
        click.echo(page)
        if not no_open:
            browser.open_page(page)

    address = Address(LOOPBACK, port, token)
    serve_until_ended(view_server.serve_view(Path.cwd(), address, announce), lambda text: click.echo(text, err=True))


# ---------------------------------------------------------------- tables


def _export_table(what: str, kind: str, since: float | None, output: Path | None) -> None:
    """Write the table of runs or costs to a file, or to stdout."""
    records = _runs(since) if what == "runs" else _costs(since)
    # In JSON, characters that not every program reads are escaped.
    text = csv_of(TABLES[what], records) if kind == "csv" else json.dumps(records, indent=2) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    with writing(output), output.open("xb") as file:
        file.write(text.encode())
    click.echo(clean(f"{count_text(len(records), 'record')} in `{output}`"), err=True)


def _runs(since: float | None) -> list[dict[str, Any]]:
    """The runs, the latest last; journals that cannot be read are reported."""
    summaries = JournalFolder(Path.cwd(), lambda path, _: summarise(path)).look()
    for error in summaries.values():
        if isinstance(error, JournalError):
            click.echo(clean(f"warning: {error.message}"), err=True)
    runs = [(run, summary) for run, summary in summaries.items() if isinstance(summary, RunSummary)]
    runs.sort(key=lambda pair: (pair[1].header.started, pair[0]))
    return [
        {
            **summary.as_data(run),
            "started": datetime.fromtimestamp(started).astimezone().isoformat(timespec="milliseconds"),
        }
        for run, summary in runs
        if (started := summary.header.started) >= (since or 0.0)
    ]


def _costs(since: float | None) -> list[dict[str, Any]]:
    """The costs, in the order of their days; models without a price are reported."""
    records = sorted(list_costs(costs_here(since), since=since), key=lambda record: (record["day"], record["run"]))
    warn_of_unpriced(sorted({record["model"] for record in records if record["unpriced"]} - {*UNPAID}))
    return records


def csv_of(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """A table by RFC 4180: a line of names, CRLF behind every line, quotes where they are needed.

    A missing value is an empty cell. A text that a spreadsheet would calculate gets an apostrophe before it.
    """
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(record.get(name)) for name in columns] for record in records)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.encode("utf-8", "replace").decode("utf-8")  # half of a character cannot be written
        return f"'{plain}" if plain.startswith(FORMULA) or plain.lstrip().startswith(FORMULA) else plain
    return value
