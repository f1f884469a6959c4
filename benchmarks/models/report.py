"""Trials to a table in Markdown, a line for each way to ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from benchmarks.models.tasks import TASKS
from benchmarks.models.trial import Trial

HEADER = ("asked by", *TASKS, "requests", "tokens in", "tokens out", "elapsed", "asked in fact")


def table(trials: Sequence[Trial]) -> str:
    """A line for each transport and library: right results of all, and means of a task."""
    rows = [HEADER, ("---",) * len(HEADER), *_rows(trials)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(trials: Sequence[Trial]) -> Iterator[tuple[str, ...]]:
    for by in dict.fromkeys(trial.by for trial in trials):
        group = [trial for trial in trials if trial.by == by]
        yield (
            by,
            *(_rate([trial for trial in group if trial.kind == kind]) for kind in TASKS),
            f"{mean(trial.requests for trial in group):.1f}",
            f"{mean(trial.input_tokens for trial in group):,.0f}",
            f"{mean(trial.output_tokens for trial in group):,.0f}",
            f"{mean(trial.elapsed_s for trial in group):.1f} s",
            ", ".join(dict.fromkeys(way for trial in group for way in trial.ways)) or "–",
        )


def _rate(trials: Sequence[Trial]) -> str:
    if not trials:
        return "–"
    right = sum(trial.is_right for trial in trials)
    return f"{right} of {len(trials)} ({right / len(trials):.0%})"
