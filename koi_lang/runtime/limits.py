"""What a call may spend, and what it has spent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from koi_lang.errors import PlaybookError
from koi_lang.runtime.context import current_execution

MOST_TURNS = 50
# Providers and models that work inside this process.
UNPAID = ("scripted", "rehearsal")
# Events that tell what was paid for: tokens, and usd where the price is known.
PAID = ("model_answered", "texts_embedded")
# What messages call the run as a whole.
RUN = "the run"


class LimitReached(PlaybookError):
    """A limit ended a playbook.

    Attributes:
        limit: its name.
        what: whose limit it is: a call such as `A.go`, or `RUN`.
    """

    def __init__(self, limit: str, what: str, message: str, help: str) -> None:
        super().__init__(f"{what} {message}", help=help)
        self.limit, self.what = limit, what

    def is_final(self) -> bool:
        """Whether the limit is that of the run, or of a playbook that the current code was started by."""
        execution = current_execution()
        return self.what == RUN or (execution is not None and self.what in execution.spending.names())


@dataclass(frozen=True, slots=True)
class Budget:
    """The most a call may spend; None is no limit of its own.

    Attributes:
        tokens: read and written, of all requests together.
        usd: what they cost.
        time_s: from the start of the call.
        turns: answers of the model.
    """

    tokens: int | None = None
    usd: float | None = None
    time_s: float | None = None
    turns: int | None = None

    @staticmethod
    def of(declared: Mapping[str, Any]) -> Budget:
        """A `budget { tokens: …, usd: …, time: …, turns: … }` block; `time` is in seconds."""
        known = {"tokens": "tokens", "usd": "usd", "time": "time_s", "turns": "turns"}
        return Budget(**{known[name]: value for name, value in declared.items() if name in known})

    def over(self, other: Budget) -> Budget:
        """This budget, with what it leaves open taken from another one."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in given.items() if value is not None})


@dataclass(slots=True)
class Spending:
    """What one call and everything it delegates has spent against a budget.

    Attributes:
        budget: the limits.
        what: how messages name the call.
        clock: seconds, for `time_s`.
        outer: the spending of whoever delegated; it counts everything, too.
    """

    budget: Budget
    what: str
    clock: Callable[[], float]
    outer: Spending | None = None
    tokens: int = 0
    usd: float = 0.0
    turns: int = 0
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.clock()

    def _all(self) -> Iterable[Spending]:
        spending: Spending | None = self
        while spending is not None:
            yield spending
            spending = spending.outer

    def names(self) -> list[str]:
        """Whose limits count: this call's and those of everybody around it."""
        return [spending.what for spending in self._all()]

    def begin_turn(self) -> None:
        """Count an answer of the playbook's model. Raises LimitReached if that is one too many, or it is too late."""
        self.turns += 1
        limits = self.budget
        if limits.turns is not None and self.turns > limits.turns:
            turns = "1 turn" if limits.turns == 1 else f"{limits.turns} turns"
            raise self._reached("turns", f"did not return within {turns}", "turns: N")
        for spending in self._all():
            if spending.left_s() == 0:
                raise spending.too_late()

    def allow(self, tokens: int, usd: float | None) -> None:
        """Raise LimitReached if a request that takes at most so much could exceed a budget."""
        for spending in self._all():
            spending._check(tokens, usd or 0.0)

    def _check(self, tokens: int, usd: float) -> None:
        limits = self.budget
        if limits.tokens is not None and self.tokens + tokens > limits.tokens:
            spent = f"has used {self.tokens} tokens, and the next answer could exceed its budget of {limits.tokens}"
            raise self._reached("tokens", spent, "tokens: N")
        if limits.usd is not None and self.usd + usd > limits.usd:
            spent = f"has spent ${self.usd:.4f}, and the next answer could exceed its budget of ${limits.usd:g}"
            raise self._reached("usd", spent, "usd: N")

    def limits_requests(self) -> bool:
        """Whether a budget counts that a single request could exceed."""
        return any(each.budget.tokens is not None or each.budget.usd is not None for each in self._all())

    def limits_usd(self) -> bool:
        """Whether a budget in money counts."""
        return any(spending.budget.usd is not None for spending in self._all())

    def too_late(self) -> LimitReached:
        """The error for a call whose time is up."""
        return self._reached("time", f"took longer than its budget of {self.budget.time_s:g} s", "time: 2m")

    def _reached(self, limit: str, message: str, option: str) -> LimitReached:
        help = f"Raise `--max-{limit}`" if self.outer is None else f"Raise `budget {{ {option} }}` or `--max-{limit}`"
        return LimitReached(limit, self.what, message, f"{help} if this is expected.")

    def spend(self, tokens: int, usd: float | None) -> None:
        """Count what an answer has really taken."""
        for spending in self._all():
            spending.tokens += tokens
            spending.usd += usd or 0.0

    def left_s(self) -> float | None:
        """Seconds until its own time limit, not less than 0; None without one."""
        if self.budget.time_s is None:
            return None
        return max(0.0, self.budget.time_s - (self.clock() - self.started))


@asynccontextmanager
async def in_time(*spendings: Spending) -> AsyncIterator[None]:
    """End a block when the first of some time limits is over. Raises LimitReached."""
    limited = [(left_s, spending) for spending in spendings if (left_s := spending.left_s()) is not None]
    left_s, first = min(limited, key=lambda pair: pair[0], default=(None, None))
    timer = asyncio.timeout(left_s)
    try:
        async with timer:
            yield
    except TimeoutError:
        if first is None or not timer.expired():
            raise
        raise first.too_late() from None
