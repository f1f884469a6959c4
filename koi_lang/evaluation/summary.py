"""The records of an evaluation to shares, means and differences, eval by eval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from koi_lang.evaluation.intervals import Interval, PairedDifference, mean_score, paired_difference, pass_rate
from koi_lang.evaluation.records import CaseRecord

# How the share of what passed is called among the scores.
PASSED = "passed"


@dataclass(frozen=True, slots=True)
class EvalSummary:
    """The summary of an eval.

    Attributes:
        accept: the share of its cases that has to pass; None where none has to.
        scores: in the order in which they were given first.
        runs: how many of its runs there were, and how many of them passed.
    """

    name: str
    accept: float | None
    rate: Interval
    scores: Mapping[str, Interval]
    runs: int
    passed: int

    @property
    def is_missed(self) -> bool:
        """Whether fewer cases have passed than have to."""
        return self.accept is not None and self.rate.value < self.accept


@dataclass(frozen=True, slots=True)
class EvalComparison:
    """The difference from an earlier time.

    Attributes:
        differences: of what is in both, by `passed` and the names of scores.
        unpaired: how many cases are not in both.
    """

    differences: Mapping[str, PairedDifference]
    unpaired: int


def summarise_eval(name: str, accept: float | None, records: Sequence[CaseRecord]) -> EvalSummary:
    """The summary of the records of an eval; there is at least one."""
    values = _values_by_case(records)
    rate = pass_rate(list(values[PASSED].values()))
    scores = {score: mean_score(list(known.values())) for score, known in values.items() if score != PASSED}
    return EvalSummary(name, accept, rate, scores, len(records), sum(record.ok for record in records))


def compare(before: Sequence[CaseRecord], after: Sequence[CaseRecord]) -> EvalComparison:
    """The difference of two evaluations, case by case."""
    old, new = _values_by_case(before), _values_by_case(after)
    differences: dict[str, PairedDifference] = {}
    for score in [score for score in new if score in old]:
        both = [key for key in new[score] if key in old[score]]
        if both:
            found = paired_difference([old[score][key] for key in both], [new[score][key] for key in both])
            differences[score] = found
    keys = [{record.key for record in records} for records in (before, after)]
    return EvalComparison(differences, len(keys[0] ^ keys[1]))


def _values_by_case(records: Iterable[CaseRecord]) -> Mapping[str, Mapping[str, float]]:
    """For `passed` and each score the mean of every case that has it over its repeats, by the key of the case."""
    found: dict[str, dict[str, list[float]]] = {PASSED: {}}
    for record in records:
        found[PASSED].setdefault(record.key, []).append(float(record.ok))
        for name, value in record.scores.items():
            found.setdefault(name, {}).setdefault(record.key, []).append(value)
    return {name: {key: fmean(values) for key, values in cases.items()} for name, cases in found.items()}
