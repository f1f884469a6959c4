"""Intervals and p-values against scipy, and judges that are a matter of chance against real losses."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from koi_lang.evaluation.intervals import mean_score, paired_difference, pass_rate, t_cdf
from koi_lang.evaluation.records import CaseRecord
from koi_lang.evaluation.summary import PASSED, compare, summarise_eval
from tests.support import HERE

# Computed with scipy, whose version stands in the file: `binomtest(…).proportion_ci(method="wilson")`, the roots of the
# score equation for shares, `t.interval`, `t.cdf`, `ttest_rel`, and `permutation_test(permutation_type="samples")` with
# all signs.
KNOWN: Any = json.loads((HERE / "data" / "intervals.json").read_text("utf-8"))
NEAR = 1e-9
CASES, TIMES, LOSS = 60, 3, 0.1


@pytest.mark.parametrize("known", KNOWN["wilson"], ids=lambda known: f"{known['passed']} of {known['cases']}")
def test_rates_have_the_interval_of_wilson(known: Any) -> None:
    """Of cases that have passed or not."""
    rate = pass_rate([1.0] * known["passed"] + [0.0] * (known["cases"] - known["passed"]))

    assert known["interval"] == pytest.approx([rate.low, rate.high], abs=NEAR)


@pytest.mark.parametrize("known", KNOWN["shares"])
def test_repeats_of_a_case_count_as_one(known: Any) -> None:
    """The interval is that of n cases with the mean of their shares, whatever the number of their repeats."""
    rate = pass_rate(known["shares"])

    assert known["interval"] == pytest.approx([rate.low, rate.high], abs=NEAR)
    assert len(known["shares"]) == rate.cases


@pytest.mark.parametrize("known", KNOWN["means"])
def test_scores_have_the_interval_of_student(known: Any) -> None:
    """Over the means of cases."""
    mean = mean_score(known["values"])

    assert known["interval"] == pytest.approx([mean.low, mean.high], abs=NEAR)


def test_students_distribution_is_that_of_scipy() -> None:
    """For few and many degrees of freedom, near the middle and far out."""
    assert [p for _, _, p in KNOWN["t"]] == pytest.approx([t_cdf(t, freedom) for t, freedom, _ in KNOWN["t"]], abs=NEAR)


@pytest.mark.parametrize("kind", ["paired_t", "sign_flips"])
def test_differences_have_the_p_value_of_scipy(kind: str) -> None:
    """All signs are tried out for few cases; many have the paired t test."""
    found = [paired_difference(known["before"], known["after"]).p for known in KNOWN[kind]]

    assert [known["p"] for known in KNOWN[kind]] == pytest.approx(found, abs=NEAR)


def test_one_case_tells_nothing_of_others() -> None:
    """A mean of one has no interval, one difference may always be chance, and so may none."""
    assert (None, None) == ((one := mean_score([0.5])).low, one.high)
    assert (1.0, False) == ((lost := paired_difference([1.0], [0.0])).p, lost.is_more_than_chance)
    assert (0.0, 1.0) == ((same := paired_difference([0.5] * 80, [0.5] * 80)).value, same.p)
    assert paired_difference([1.0] * 80, [0.5] * 80).is_more_than_chance


def judged(seed: object, loss: float) -> list[CaseRecord]:
    """Cases of different difficulty, judged by somebody whose scores are a matter of chance by 0.2."""
    chance, own = random.Random(str(seed)), random.Random("cases")
    levels = [own.gauss(0.7, 0.15) for _ in range(CASES)]
    return [
        CaseRecord(
            0, "e", str(case), str(case), repeat, "", ok=True, scores={"quality": chance.gauss(level - loss, 0.2)}
        )
        for case, level in enumerate(levels)
        for repeat in range(1, TIMES + 1)
    ]


def count_alarms(loss: float, runs: int, measured: Callable[[list[CaseRecord], list[CaseRecord]], bool]) -> int:
    """How often a loss is told, of so many pairs of evaluations."""
    return sum(measured(judged(("old", run), 0.0), judged(("new", run), loss)) for run in range(runs))


def test_a_loss_is_told_from_a_judge_of_moods() -> None:
    """A loss of 10 points is found in at least 95 of 100 evaluations; at most 5 of 100 without one raise an alarm."""

    def is_lost(before: list[CaseRecord], after: list[CaseRecord]) -> bool:
        found = compare(before, after).differences["quality"]
        return found.is_more_than_chance and found.value < 0

    def is_changed(before: list[CaseRecord], after: list[CaseRecord]) -> bool:
        return compare(before, after).differences["quality"].is_more_than_chance

    assert count_alarms(LOSS, 100, is_lost) >= 95
    assert count_alarms(0.0, 400, is_changed) <= 20


def test_cases_are_paired_by_their_content() -> None:
    """In another order, and with other ids, the same cases are compared; what is in one of both only is counted."""

    def records(*cases: tuple[str, str, bool]) -> list[CaseRecord]:
        return [CaseRecord(0, "e", id, key, 1, "", ok, scores={"n": 1.0 if ok else 0.0}) for id, key, ok in cases]

    before = records(("1", "a", True), ("2", "b", True), ("3", "c", False))
    found = compare(before, records(("1", "b", True), ("2", "a", False), ("x", "d", True)))

    assert ([PASSED, "n"], 2) == (list(found.differences), found.unpaired)
    assert (-0.5, 2) == (found.differences[PASSED].value, found.differences[PASSED].cases)


def test_a_score_that_some_cases_lack_is_that_of_the_others() -> None:
    """Its mean and interval count those cases that have it."""
    records = [
        CaseRecord(n, "e", str(n), str(n), 1, "", ok=n > 1, scores={"s": n * 1.0} if n > 1 else {}) for n in (1, 2, 4)
    ]

    summary = summarise_eval("e", 0.6, records)

    assert (3, 2, 3.0) == (summary.rate.cases, summary.scores["s"].cases, summary.scores["s"].value)
    assert not summary.is_missed
