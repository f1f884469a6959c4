"""`koi export`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import click

from koi_lang.cli.tables.costs import costs_here, since_option, since_second, warn_of_unpriced
from koi_lang.cli.tables.csv_text import csv_of
from koi_lang.cli.ui.output import writing
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import JournalError, UsageError
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.journal.cost_tables import list_costs
from koi_lang.runtime.journal.journal_folder import JournalFolder
from koi_lang.runtime.journal.summary import RunSummary, summarise
from koi_lang.system.text_width import clean

RUNS = ("run", "started", "program", "state", "seconds", "requests", "tokens", "usd", "parent", "entry")
COSTS = (
    *("day", "run", "program", "agent", "model"),
    *("requests", "tokens", "input", "output", "cached", "usd", "unpriced"),
)
OUTPUT = click.Path(path_type=Path)


@click.command()
@click.argument("what", type=click.Choice(("runs", "costs")))
@click.option(
    "--format", "kind", type=click.Choice(("json", "csv")), default="json", show_default=True, help="Of the output."
)
@since_option
@click.option("-o", "--output", type=OUTPUT, help="A file that does not exist yet; without it stdout.")
def command(what: str, kind: Literal["json", "csv"], since: str | None, output: Path | None) -> None:
    """Write the recorded runs of this folder, or what models took in them, for spreadsheets and other programs.

    `runs` has a record for each run, `costs` one for each day, run, agent and model. With `--since`, runs that began
    within that time.
    """
    if output is not None and output.exists():
        raise UsageError(f"`{output}` exists", help="Choose another name, or remove the file first.")
    records = _runs(since_second(since)) if what == "runs" else _costs(since_second(since))
    text = csv_of(RUNS if what == "runs" else COSTS, records) if kind == "csv" else _json(records)
    if output is None:
        click.echo(text, nl=False)
        return
    with writing(output), output.open("xb") as file:
        file.write(text.encode())
    click.echo(clean(f"{count_text(len(records), 'record')} in `{output}`"), err=True)


def _json(records: Sequence[Mapping[str, Any]]) -> str:
    """One list; characters that not every program reads are escaped."""
    return json.dumps(records, indent=2) + "\n"


def _runs(since: float | None) -> list[dict[str, Any]]:
    """The runs, the latest last; what cannot be read is told."""
    found = JournalFolder(Path.cwd(), lambda path, _: summarise(path)).look()
    for error in found.values():
        if isinstance(error, JournalError):
            click.echo(clean(f"warning: {error.message}"), err=True)
    runs = [(run, summary) for run, summary in found.items() if isinstance(summary, RunSummary)]
    runs.sort(key=lambda pair: (pair[1].header.started, pair[0]))
    return [_record(run, summary) for run, summary in runs if since is None or summary.header.started >= since]


def _record(run: str, summary: RunSummary) -> dict[str, Any]:
    started = datetime.fromtimestamp(summary.header.started).astimezone().isoformat(timespec="milliseconds")
    return {**summary.as_data(run), "started": started}


def _costs(since: float | None) -> list[dict[str, Any]]:
    """The costs, in the order of their days; models without a price are told."""
    records = sorted(list_costs(costs_here(since), since=since), key=lambda record: (record["day"], record["run"]))
    warn_of_unpriced(sorted({record["model"] for record in records if record["unpriced"]} - {*UNPAID}))
    return records
