"""The bench of attacks: Koi holds a sample of each kind, and the manual shows the results of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.security.__main__ import main
from benchmarks.security.kinds import KINDS
from benchmarks.security.results import AttackResult, count, read_results, table
from benchmarks.security.trials import AttackKind, NotRunError, Trial

SAMPLE = 2
# Kinds that start a service take more CPU than a test may; these have tests in `tests/service` and `tests/live`.
SLOW = ("users", "mcp", "requests", "replays", "forgeries", "sessions", "approval")
QUICK = [name for name in KINDS if name not in SLOW]


def sample(cases: Sequence[Any]) -> list[Any]:
    """A few of the cases, spread over all."""
    return [cases[at * len(cases) // SAMPLE] for at in range(SAMPLE)]


@pytest.mark.parametrize("name", QUICK)
def test_a_sample_holds(name: str, tmp_path: Path) -> None:
    """Of each kind that is quick to try; the other kinds have tests of their own."""
    kind = KINDS[name]
    try:
        trials = list(kind.attempt(tmp_path, sample(kind.cases)))
    except NotRunError as error:
        pytest.skip(f"NOT TRIED: {error}")

    assert SAMPLE == len(trials)
    assert [] == [trial.attack for trial in trials if not trial.is_held]


def test_the_manual_shows_all_attacks() -> None:
    """The results were saved with the attacks that there are now, all of which hold; `--save` renews them."""
    results = read_results()
    about = {name: (kind.title, len(kind.cases), len(kind.cases), kind.rest) for name, kind in KINDS.items()}

    assert about == {name: (each.title, each.tried, each.held, each.rest) for name, each in results.items()}


def test_what_gets_through_is_counted() -> None:
    """The table has what was tried, what held, and what succeeds without the guard, or why nothing was tried."""
    kind = AttackKind("k", "doors", (), lambda base, cases: (), "windows")
    trials = [Trial("a", True, True), Trial("b", False, True), Trial("c", True, False)]
    results = [count(kind, trials), count(kind, [Trial("a", True)]), count(kind, (), "a lock is missing")]

    assert AttackResult("doors", 3, 2, 2, "windows") == results[0]
    assert [
        "| doors | 3 | 2 | 2 | windows |",
        "| doors | 1 | 1 | – | windows |",
        "| doors | – | – | – | not tried: a lock is missing |",
    ] == table(results).splitlines()[2:]


def test_an_attack_that_gets_through_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named on stderr, and the exit code is 1."""
    kind = AttackKind("doors", "doors", (), lambda base, cases: [Trial("a kick", False)], "windows")
    monkeypatch.setattr("benchmarks.security.__main__.KINDS", {"doors": kind})
    code = main(["doors"])

    assert (1, True) == (code, "doors: a kick gets through" in capsys.readouterr().err)
