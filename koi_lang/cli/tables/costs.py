"""`koi runs costs`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from koi_lang.cli.options import age_s
from koi_lang.cli.ui.text import cost_text, width
from koi_lang.errors import JournalError
from koi_lang.runtime.journal.cost_tables import GROUPINGS, By, CostGroup, CostTable, tabulate_costs
from koi_lang.runtime.journal.run_costs import RunCosts, open_costs
from koi_lang.system.text_width import clean

# Whose a run is, only a service knows.
WITHOUT_USERS = tuple(by for by in GROUPINGS if by != "user")
COLUMNS = ("runs", "requests", "tokens", "cost")
Command = TypeVar("Command", bound=Callable[..., Any])

from_option = click.option(
    "--from", "since", metavar="TIME", help="Only what was paid within a time, such as 7d or 12h."
)


@click.command()
@click.option("--by", type=click.Choice(WITHOUT_USERS), default="day", show_default=True, help="What to tell apart.")
@from_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def costs(by: By, since: str | None, as_json: bool) -> None:
    """Tell what models took in the runs of this folder, by day, model, program or agent.

    What a branch has taken over counts once, for the run that paid it.
    """
    second = second_before("--from", since)
    table = tabulate_costs(costs_here(second), by, since=second)
    if as_json:
        click.echo(json.dumps(table.as_data(), indent=2))
        return
    if not table.groups:
        click.echo("no model was asked in that time" if since else "no model was asked in this folder", err=True)
        return
    for line in cost_lines(table):
        click.echo(clean(line))
    warn_of_unpriced(table.unpriced)


def second_before(option: str, age: str | None) -> float | None:
    """The second, since the epoch, that an option names by how long ago it is. Raises UsageError."""
    return None if age is None else time.time() - age_s(option, age)


def costs_here(since: float | None) -> list[RunCosts]:
    """What was paid for the runs of this folder; journals that cannot be read are told.

    Args:
        since: runs of which nothing was recorded since that second may be left out.
    """
    found = open_costs(Path.cwd()).look(since or 0.0).values()
    for error in found:
        if isinstance(error, JournalError):
            click.echo(clean(f"warning: {error.message}"), err=True)
    return [costs for costs in found if isinstance(costs, RunCosts)]


def warn_of_unpriced(models: Sequence[str]) -> None:
    """Tell of which models no price is known."""
    if models:
        names = ", ".join(f"`{model}`" for model in models)
        click.echo(clean(f"warning: the prices of these models are not known: {names}"), err=True)


def cost_lines(table: CostTable) -> list[str]:
    """A table for people: a heading, a line for each group, and the total where there are several."""
    groups = [*table.groups, *([table.total] if len(table.groups) > 1 else [])]
    rows = [(table.by, *COLUMNS), *map(_row, groups)]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_fill, row, widths)).rstrip() for row in rows]


def _fill(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def _row(group: CostGroup) -> tuple[str, ...]:
    usage = group.usage
    return group.name or "-", f"{group.runs:,}", f"{usage.requests:,}", f"{usage.tokens:,}", cost_text(usage)
