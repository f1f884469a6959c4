"""The ledger of a run: its budgets, spending and reservations, and those of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.runtime.budget.limits import (
    MAX_TURNS,
    NO_BUDGET,
    RUN,
    Budget,
    BudgetAccount,
    LimitReachedError,
    current_spending,
)
from koi_lang.runtime.replay.location import Path, current_path

if TYPE_CHECKING:
    from koi_lang.llm import usage
    from koi_lang.llm.usage import Calibration
    from koi_lang.runtime.budget import reservations
    from koi_lang.runtime.budget.reservations import Reservations
    from koi_lang.runtime.replay.recorded_run import RecordedRun
else:
    reservations = lazy_module("koi_lang.runtime.budget.reservations")
    usage = lazy_module("koi_lang.llm.usage")


class Ledger:
    """Limits and spending of a run and its calls.

    A run that goes on counts at once what it had taken when it was interrupted: a request must not have the room of an
    answer that was paid for and comes again later.

    Args:
        limits: as in `Services`.
        clock: seconds that only grow.
        recorded: what an earlier part of the run came to, for which `payer` has paid already.
        payer: who pays for the run beside itself; None for nobody.

    Attributes:
        spending: what everything together spends.
    """

    def __init__(
        self,
        limits: Mapping[str, Any],
        clock: Callable[[], float],
        recorded: RecordedRun,
        payer: BudgetAccount | None = None,
    ) -> None:
        self._limits, self._clock = limits, clock
        self._recorded = recorded
        self._overspent: list[LimitReachedError] = []
        self._is_told = False
        budget = replace(Budget.of(limits), turns=None)
        self.spending = BudgetAccount(budget if recorded.is_live else self._limit_time(budget), RUN, clock, payer)
        if not recorded.is_live:
            self._with_paid(self.spending, ())

    @cached_property
    def reservations(self) -> Reservations:
        """Room that is kept free for requests to models."""
        most = self._limits.get("concurrency")
        limit = {} if most is None else {"concurrency": most}
        return reservations.Reservations(self.calibration, **limit)

    @cached_property
    def calibration(self) -> Calibration:
        """The factor between counted and estimated tokens of its models."""
        return usage.Calibration()

    def spending_of(self, call: str, declared: Budget, *, is_playbook: bool) -> BudgetAccount | None:
        """The budget account of the call at the current place; None where only calls around it have a budget.

        Args:
            call: its name in messages.
            declared: the most it may spend by its playbook and its agent.
        """
        budget = self.budget(declared, is_playbook=is_playbook)
        if budget is NO_BUDGET or budget == NO_BUDGET:
            return None
        outer = current_spending() or self.spending
        spending = BudgetAccount(self._limit_time(budget), call, self._clock, outer)
        return self._with_paid(spending, current_path())

    def _limit_time(self, budget: Budget) -> Budget:
        """A budget with the time that counts in this run."""
        limit_s = self._recorded.time_limit(budget.time_s)
        return budget if limit_s == budget.time_s else replace(budget, time_s=limit_s)

    def budget(self, declared: Budget, *, is_playbook: bool) -> Budget:
        """The budget of a call: the declared limits, else the defaults; code has no turns."""
        if not is_playbook:
            return declared if declared.turns is None else replace(declared, turns=None)
        turns = self._limits.get("turns", declared.turns)
        return replace(declared, turns=MAX_TURNS if turns is None else turns)

    # ------------------------------------------------------------ runs that go on

    def _with_paid(self, spending: BudgetAccount, path: Path) -> BudgetAccount:
        """A call with its spending from before the interruption of the run."""
        spending.tokens, spending.usd, spending.requests = self._recorded.paid(path)
        return spending

    def has_counted(self, type: str, path: Path) -> bool:
        """Whether something was paid for before the run was interrupted, so that it was counted from the beginning."""
        return self._recorded.has_paid(type, path)

    # ------------------------------------------------------------ calls that took more than they might

    def note_end(self, spending: BudgetAccount) -> None:
        """Note the final spending of a call."""
        error = spending.overspent()
        if error is not None:
            self._overspent.append(error)

    def require_within_budget(self) -> None:
        """Raise LimitReachedError if the run, or a call in it, has taken more than its budget."""
        for error in (self.spending.overspent(), *self._overspent):
            if error is not None:
                raise error

    def tell_overspent(self, tell: Callable[[str], None]) -> None:
        """Report each account that exceeded its budget, once; for runs that outlive a call."""
        own = None if self._is_told else self.spending.overspent()
        self._is_told |= own is not None
        errors, self._overspent = self._overspent, []
        for error in (own, *errors):
            if error is not None:
                tell(error.message)
