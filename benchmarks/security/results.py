"""Trials to a table in Markdown, and the results that the manual shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.security.trials import AttackKind, Trial

RESULTS = Path(__file__).with_name("results.json")
HEADER = ("attacks", "tried", "held", "succeed without the guard", "left, and why")


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The trials of a kind of attack, counted.

    Attributes:
        title: of the kind.
        succeed_unguarded: how many succeed with the guard off; None where it cannot be off.
        rest: what is left and why.
        missing: why they were not tried; empty where they were.
    """

    title: str
    tried: int
    held: int
    succeed_unguarded: int | None
    rest: str
    missing: str = ""


def count(kind: AttackKind, trials: Sequence[Trial], missing: str = "") -> AttackResult:
    """Count the trials of a kind."""
    unguarded = [trial.succeeds_unguarded for trial in trials if trial.succeeds_unguarded is not None]
    held = sum(trial.is_held for trial in trials)
    return AttackResult(kind.title, len(trials), held, sum(unguarded) if unguarded else None, kind.rest, missing)


def table(results: Iterable[AttackResult]) -> str:
    """A line for each kind."""
    rows = [HEADER, ("---",) * len(HEADER), *map(_cells, results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(result: AttackResult) -> tuple[str, ...]:
    if result.missing:
        return result.title, "–", "–", "–", f"not tried: {result.missing}"
    unguarded = "–" if result.succeed_unguarded is None else f"{result.succeed_unguarded:,}"
    return result.title, f"{result.tried:,}", f"{result.held:,}", unguarded, result.rest


def save(results: Mapping[str, AttackResult], order: Iterable[str]) -> None:
    """Keep results for the manual, in place of older ones of the same kinds; those of other kinds are dropped."""
    known = {**read_results(), **results}
    rows = {name: asdict(known[name]) for name in order if name in known}
    RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_results() -> dict[str, AttackResult]:
    """The results that the manual shows."""
    rows = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return {name: AttackResult(**row) for name, row in rows.items()}
