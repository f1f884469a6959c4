"""The evals of a program to the cases that are carried out, side by side in several processes, within a budget."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from koi_lang.evaluation.case_answers import CaseAnswers
from koi_lang.evaluation.case_files import cases_of
from koi_lang.evaluation.case_run import CaseRun, EvalOutcome, has_header
from koi_lang.evaluation.records import CaseRecord, record_of
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.test_blocks.evals import EvalBlock
from koi_lang.sessions.prepared import Prepared
from koi_lang.testing.pool import results


@dataclass(frozen=True, slots=True)
class Plan:
    """What an evaluation consists of.

    Attributes:
        blocks: the evals that were chosen.
        cases: in their order, each as often as it is to be carried out.
        digest: tells whether the cases have changed.
    """

    id: str
    blocks: list[EvalBlock]
    cases: list[CaseRun]
    digest: str


def plan_evaluation(
    id: str, ready: Prepared, blocks: list[EvalBlock], answers: CaseAnswers | None, most: int | None
) -> Plan:
    """The cases of some evals of a program.

    Args:
        most: how many cases of each eval are taken, the first ones; None for all.

    Raises:
        UsageError: cases or their answers cannot be read.
    """
    path, planned = Path(ready.path), list[CaseRun]()
    for block in blocks:
        for case in cases_of(block, path)[:most]:
            for repeat in range(1, block.times + 1):
                about = {"evaluation": id, "eval": block.name, "id": case.id, "repeat": repeat, "key": case.key}
                given = None if answers is None or block.gives_model else answers.pick(case.id, repeat)
                about["data"] = case.data
                planned.append(CaseRun(path, len(planned) + 1, about, ready.options, given))
    keys = [f"{case.name}: {case.case['key']}: {case.case['repeat']}" for case in planned]
    return Plan(id, blocks, planned, hashlib.sha256("\n".join(keys).encode()).hexdigest())


@dataclass(slots=True)
class EvalBudget:
    """The money that an evaluation may spend; None is no limit.

    Attributes:
        spent: by the numbers of cases.
        open: what cases that are under way may spend at the most.
    """

    usd: float | None
    spent: dict[int, float] = field(default_factory=dict)
    open: dict[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """What was spent."""
        return sum(self.spent.values())

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.usd is not None and self.total >= self.usd

    def reserve(self, number: int, idle: int) -> float | None:
        """What a case may spend: an equal share of what is left, for each of the processes that wait for a case."""
        if self.usd is None:
            return None
        share = max(0.0, self.usd - self.total - sum(self.open.values())) / idle
        self.open[number] = share
        return share

    def settle(self, number: int, usd: float) -> None:
        """Count what a case has spent, all of its run together."""
        self.open.pop(number, None)
        self.spent[number] = usd


@dataclass(slots=True)
class Evaluation:
    """An evaluation while it goes on.

    Attributes:
        left: cases that are to be carried out.
        stuck: cases whose runs cannot go on, each with why.
        is_out_of_money: whether cases are left because of the budget.
        refusal: why no case can be carried out; empty while that is not known.
    """

    budget: EvalBudget
    left: deque[CaseRun]
    stuck: list[tuple[CaseRun, str]] = field(default_factory=list)
    is_out_of_money: bool = False
    refusal: str = ""

    def carry_out(self, *, jobs: int, timeout_s: float) -> Generator[CaseRecord]:
        """Carry out what is left; gives what came of each case when it has come to its end.

        A case that its share of the budget has stopped goes on alone, with all that is left of it.
        """
        yield from self._carry_out(min(jobs, len(self.left)), timeout_s)
        if self.is_out_of_money and jobs > 1 and not self.budget.is_spent and not self.refusal:
            self.is_out_of_money = False
            yield from self._carry_out(1, timeout_s)

    def _carry_out(self, jobs: int, timeout_s: float) -> Iterator[CaseRecord]:
        arriving = results(self._hand_out(jobs), jobs=jobs, timeout_s=timeout_s, is_hermetic=False)
        with closing(arriving):
            for result in arriving:
                case, outcome = result.case, result.outcome
                assert isinstance(case, CaseRun)
                known = outcome if isinstance(outcome, EvalOutcome) else EvalOutcome(False, message=outcome.message)
                self.budget.settle(case.number, known.usage.usd)
                if known.end == "over":
                    yield record_of(case, known)
                elif known.end == "stuck":
                    self.stuck.append((case, known.message))
                else:
                    self.left.appendleft(case)
                    self.is_out_of_money |= known.end == "budget"
                    self.refusal = self.refusal or (known.message if known.end == "refused" else "")

    def _hand_out(self, jobs: int) -> Iterator[CaseRun]:
        while self.left and not (self.is_out_of_money or self.refusal):
            self.is_out_of_money = self.budget.is_spent
            if not self.is_out_of_money:
                case = self.left.popleft()
                yield replace(case, usd=self.budget.reserve(case.number, jobs - len(self.budget.open)))


def spent_before(cases: Iterable[CaseRun], folder: Path) -> dict[int, float]:
    """What cases have spent whose runs were interrupted, by their numbers."""
    paths = ((case.number, store.path_of(folder, case.id)) for case in cases)
    return {number: summarise(path).totals.usd for number, path in paths if has_header(path)}
