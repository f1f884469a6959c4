"""`koi reflect`."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click

from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.std.runs import ActionRecord, ReflectedRun, actions_in, forecasts_in, runs_since
from koi_lang.system.text_width import clean

ABOUT = ("today", "week", "tools", "trust", "votes")
DAY_S = 86_400
# Fewer cases than these say nothing.
MIN_FOR_ADVICE = 20
MIN_FORECASTS = 10
# Shares of kept actions from which on a topic may be left alone, and below which it is to be asked about.
KEPT_TO_ACT, KEPT_TO_ASK = 0.95, 0.8
# What is said where there are runs, and nothing of theirs to show.
NOTHING = {
    **dict.fromkeys(("today", "week", "tools"), "no action was recorded in that time"),
    "trust": "nothing was done without asking in that time",
    "votes": "no forecast of a deliberation or a judge has an outcome in that time; a task without work has none",
}
INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Failures whose names say little.
FAILURES = {
    "AgentError": "failed",
    "ActionError": "failed",
    "FormError": "wrong form",
    "NobodyAllowsError": "not allowed unattended",
    "PermissionDeniedError": "refused",
}
TableRow = Mapping[str, Any]
RunsWithEntries = Sequence[tuple[ReflectedRun, Sequence[JournalEntry]]]


@click.command()
@click.argument("about", type=click.Choice(ABOUT), default="today", metavar="[today|week|tools|trust|votes]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def command(about: str, as_json: bool) -> None:
    """Tell what recorded runs of this folder came to: of today or a week, by tool, by topic, or against forecasts.

    `tools` are actions by calls, failures and median time, `trust` what was done without asking, `votes` the forecasts
    of deliberations and judges. These are of thirty days. No model is asked.
    """
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    since = {"today": midnight, "week": time.time() - 7 * DAY_S}.get(about, time.time() - 30 * DAY_S)
    recorded = list(runs_since(Path.cwd(), since))
    tables = {"tools": tools_of, "trust": trust_of, "votes": votes_of}
    rows = tables.get(about, totals_of)(recorded)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not rows:
        click.echo(NOTHING[about] if recorded else "no run was recorded in that time", err=True)
        return
    names = list(rows[0])
    cells = [names, *([clean(str(row[name])) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def totals_of(recorded: RunsWithEntries) -> list[TableRow]:
    """Runs and actions by their outcomes."""
    runs = Counter(run["outcome"] for run, _ in recorded)
    actions = Counter(action["outcome"] for action in all_actions(recorded))
    outcomes = ("kept", "undone", "refused", "failed", "unfinished")
    counts = {what: count for what, count in (("runs", runs), ("actions", actions)) if count}
    return [{"what": what, "n": n.total(), **{each: n[each] for each in outcomes}} for what, n in counts.items()]


def tools_of(recorded: RunsWithEntries) -> list[TableRow]:
    """Actions by name, the most called first: calls, failures by kind, and the median of their time."""
    by_name: dict[str, list[ActionRecord]] = defaultdict(list)
    for action in all_actions(recorded):
        by_name[action["name"]].append(action)
    rows: list[TableRow] = []
    for name, actions in sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0])):
        errors = [action["error"] for action in actions if action["error"]]
        # A kind without words of its own is written as some: `time limit` for `TimeLimitError`.
        kinds = Counter(
            FAILURES.get(each, INNER_CAPITAL.sub(" ", each.removesuffix("Error")).lower()) for each in errors
        )
        failures = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none"
        ended = [action["seconds"] for action in actions if action["outcome"] != "unfinished"]
        seconds = round(median(ended), 3) if ended else "none ended"
        rows.append({"tool": name, "calls": len(actions), "failures": failures, "median s": seconds})
    return rows


def trust_of(recorded: RunsWithEntries) -> list[TableRow]:
    """What was done without asking, by topic of `[trust]`, with the share that was kept."""
    by_topic: dict[str, list[ActionRecord]] = defaultdict(list)
    for action in all_actions(recorded):
        if action["changes"] and not action["asked"] and action["outcome"] not in ("refused", "unfinished"):
            by_topic[action["topic"]].append(action)
    rows: list[TableRow] = []
    for topic, actions in sorted(by_topic.items(), key=lambda item: (-len(item[1]), item[0])):
        kept = sum(action["outcome"] == "kept" for action in actions) / len(actions)
        advice = "act" if kept >= KEPT_TO_ACT else "ask" if kept < KEPT_TO_ASK else "as it is"
        advice = advice if len(actions) >= MIN_FOR_ADVICE else f"no data under {MIN_FOR_ADVICE}"
        rows.append({"topic": topic, "unasked": len(actions), "kept": f"{kept:.0%}", "advice": advice})
    return rows


def votes_of(recorded: RunsWithEntries) -> list[TableRow]:
    """The mean squared error of forecasts (Brier) by who made them, 0 for the best, over runs that were kept or not."""
    errors: dict[str, list[float]] = defaultdict(list)
    for run, entries in recorded:
        if run["outcome"] in ("kept", "undone", "failed"):
            for forecast in forecasts_in(entries):
                errors[forecast.by].append((forecast.value - (run["outcome"] == "kept")) ** 2)
    enough = {by: len(each) >= MIN_FORECASTS for by, each in errors.items()}
    rows: list[TableRow] = []
    for by, each in sorted(errors.items()):
        brier = round(fmean(each), 3) if enough[by] else f"no data under {MIN_FORECASTS}"
        rows.append({"by": by, "n": len(each), "brier": brier})
    return rows


def all_actions(recorded: RunsWithEntries) -> list[ActionRecord]:
    """The actions of some runs."""
    return [action for _, entries in recorded for action in actions_in(entries)]
