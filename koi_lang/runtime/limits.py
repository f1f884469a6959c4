"""What a playbook may spend, and noticing that it goes round in circles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from koi_lang.errors import PlaybookError

MOST_TURNS = 50
MOST_REPEATS = 5
MOST_ALTERNATIONS = 3
MOST_FAILURES = 10
MOST_PIVOTS = 3


class LimitReached(PlaybookError):
    """A limit ended a playbook; `limit` names it."""

    def __init__(self, limit: str, message: str, help: str) -> None:
        super().__init__(message, help=help)
        self.limit = limit


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

    def begin_turn(self, tokens: int, usd: float | None) -> None:
        """Count a turn whose request and answer take at most so much. Raises LimitReached if that is too much."""
        self.turns += 1
        for spending in self._all():
            spending._check(tokens, usd or 0.0)

    def _check(self, tokens: int, usd: float) -> None:
        limits = self.budget
        if limits.turns is not None and self.turns > limits.turns:
            raise self._reached("turns", f"did not return within {limits.turns} turns", "turns: N")
        if limits.tokens is not None and self.tokens + tokens > limits.tokens:
            spent = f"has used {self.tokens} tokens, and the next answer could exceed its budget of {limits.tokens}"
            raise self._reached("tokens", spent, "tokens: N")
        if limits.usd is not None and self.usd + usd > limits.usd:
            spent = f"has spent ${self.usd:.4f}, and the next answer could exceed its budget of ${limits.usd:g}"
            raise self._reached("usd", spent, "usd: N")
        if limits.time_s is not None and self.clock() - self.started > limits.time_s:
            raise self._reached("time", f"took longer than its budget of {limits.time_s:g} s", "time: 2m")

    def _reached(self, limit: str, message: str, option: str) -> LimitReached:
        return LimitReached(limit, f"{self.what} {message}", f"Raise `budget {{ {option} }}` if this is expected.")

    def spend(self, tokens: int, usd: float | None) -> None:
        """Count what an answer has really taken."""
        for spending in self._all():
            spending.tokens += tokens
            spending.usd += usd or 0.0

    def left_s(self) -> float | None:
        """Seconds until the first time limit; None without one."""
        limits = [s.budget.time_s - (s.clock() - s.started) for s in self._all() if s.budget.time_s is not None]
        return max(0.0, min(limits)) if limits else None


class Circles:
    """Notices actions that repeat themselves: A-A-A… and A-B-A-B…"""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: list[str] = []

    def note(self, intent: str, fields: Mapping[str, Any]) -> None:
        """Count an action that is about to be carried out. Raises LimitReached when it goes round in circles."""
        self._seen.append(f"{intent} {json.dumps(fields, sort_keys=True, default=str)}")
        del self._seen[: -2 * MOST_ALTERNATIONS - MOST_REPEATS]
        if self._same(MOST_REPEATS):
            raise self._circle(f"asked for the same `{intent}` {MOST_REPEATS} times in a row")
        if self._alternating(MOST_ALTERNATIONS):
            raise self._circle(f"went back and forth between two actions {MOST_ALTERNATIONS} times")

    def _same(self, count: int) -> bool:
        last = self._seen[-count:]
        return len(last) == count and len(set(last)) == 1

    def _alternating(self, count: int) -> bool:
        last = self._seen[-2 * count :]
        pair = set(last)
        return (
            len(last) == 2 * count
            and len(pair) == 2
            and all(one != two for one, two in zip(last, last[1:], strict=False))
        )

    def _circle(self, message: str) -> LimitReached:
        help = "Say in the playbook when to stop, or use `repeat` for what is to happen several times."
        return LimitReached("circles", f"{self._what} {message}", help)


class Failures:
    """Counts failures in a row; after ten the model is told to change its approach, at most three times."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._row = self._pivots = 0
        self.last = ""

    def succeeded(self) -> None:
        """An action was carried out."""
        self._row = 0

    def failed(self, message: str) -> None:
        """An action or answer failed."""
        self._row += 1
        self.last = message

    def must_pivot(self) -> bool:
        """Whether it is time to demand a change of approach. Raises LimitReached when that was demanded often enough."""
        if self._row < MOST_FAILURES:
            return False
        if self._pivots == MOST_PIVOTS:
            count = MOST_FAILURES * (MOST_PIVOTS + 1)
            raise LimitReached("failures", f"{self._what} gave up after {count} failures; the last: {self.last}", PLAIN)
        self._pivots, self._row = self._pivots + 1, 0
        return True


PLAIN = "Run with `--verbose` to see every action and what came of it."
