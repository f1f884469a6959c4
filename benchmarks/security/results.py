"""Trials to a table in Markdown, and the results that the manual shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.security.trials import AttackKind, Trial

RESULTS = Path(__file__).with_name("results.json")
DOJO_RESULTS = Path(__file__).with_name("agentdojo.json")
DOJO_HEADER = (
    *("suite", "pairs", "all tools: attacks", "task done"),
    *("a role per task: attacks", "changes by the attacker", "task done", "calls outside of the role"),
)
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


@dataclass(frozen=True, slots=True)
class DojoResult:
    """Pairs of AgentDojo, counted.

    Attributes:
        seen: pairs whose injection the model has seen.
        all_attacked: attacks that succeed with all tools permitted.
        all_useful: tasks of users that are done all the same.
        own_attacked: attacks that succeed with the tools that the task of the user needs.
        own_effects: pairs with a call of the attacker that changes something there.
        outside: calls that ran although the role did not permit them.
    """

    pairs: int
    seen: int
    all_attacked: int
    all_useful: int
    own_attacked: int
    own_effects: int
    own_useful: int
    outside: int


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


def dojo_table(results: Mapping[str, DojoResult]) -> str:
    """A line for each suite of AgentDojo, and one for all of them."""
    rows = [DOJO_HEADER, ("---",) * len(DOJO_HEADER)]
    for name, each in results.items():
        rates = (each.all_attacked, each.all_useful, each.own_attacked, each.own_effects, each.own_useful)
        cells = (f"{number:,} ({number / each.pairs:.0%})" for number in rates)
        rows.append((name, f"{each.pairs:,}", *cells, f"{each.outside:,}"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def save_dojo(results: Mapping[str, DojoResult]) -> None:
    """Keep results of AgentDojo for the manual."""
    rows = {name: asdict(each) for name, each in results.items()}
    DOJO_RESULTS.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def read_dojo_results() -> dict[str, DojoResult]:
    """The results of AgentDojo that the manual shows."""
    rows = json.loads(DOJO_RESULTS.read_text("utf-8")) if DOJO_RESULTS.exists() else {}
    return {name: DojoResult(**row) for name, row in rows.items()}


def save(results: Mapping[str, AttackResult], order: Iterable[str]) -> None:
    """Keep results for the manual, in place of older ones of the same kinds; those of other kinds are dropped."""
    known = {**read_results(), **results}
    rows = {name: asdict(known[name]) for name in order if name in known}
    RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_results() -> dict[str, AttackResult]:
    """The results that the manual shows."""
    rows = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return {name: AttackResult(**row) for name, row in rows.items()}
