"""Limits and spending of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from itertools import count
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from koi_lang.errors import EXIT_CODES, PlaybookError, ProviderError
from koi_lang.runtime.concurrency.cancellation import CancelScope

if TYPE_CHECKING:
    from koi_lang.llm.usage import Estimate

MAX_TURNS = 50
# Requests that a playbook may make for each of its turns where its budget says nothing about them.
REQUESTS_PER_TURN = 20
# Providers and models that work inside this process.
UNPAID = ("scripted", "rehearsal")
# What messages call the run as a whole.
RUN = "the run"
# The kinds of failures of limits that bound no spending: of a model that gets nowhere, or returns nothing valid.
CODES_BY_LIMIT = {"circles": "E0505", "failures": "E0505", "result": "E0506"}
# Sums of prices may be wrong by so much.
MIN_USD = 1e-12


class LimitReachedError(PlaybookError, code="E0501"):
    """A limit ended a playbook.

    Attributes:
        limit: its name.
        what: whose limit it is: a call such as `A.go`, or `RUN`.
        last: what the model was told last that was wrong; empty where nothing was.
        broken: why the answer before broke off, which was to be asked for again; None where it did not.
        has_report: whether a model was asked what it has done.
        is_beyond_run: whether the limit is that of somebody who pays for several runs.
    """

    last = ""
    has_report = False
    is_beyond_run = False
    broken: ProviderError | None = None

    def __init__(self, limit: str, what: str, message: str, help: str) -> None:
        super().__init__(f"{what} {message}", help=help)
        self.limit, self.what = limit, what
        self.failure_code = CODES_BY_LIMIT.get(limit, self.failure_code)
        self.exit_code = EXIT_CODES[self.failure_code]

    def is_final(self) -> bool:
        """Whether the limit belongs to the run, to its payer, or to a call around the current code."""
        spending = current_spending()
        return self.is_beyond_run or self.what == RUN or (spending is not None and self.what in spending.names())


@dataclass(frozen=True, slots=True)
class Budget:
    """The most a call may spend; None is no limit of its own.

    Attributes:
        tokens: read and written, of all requests together.
        usd: what they cost.
        time_s: from the start of the call.
        turns: answers of the model.
        requests: to models, whatever they are for, those of delegates included.
    """

    tokens: int | None = None
    usd: float | None = None
    time_s: float | None = None
    turns: int | None = None
    requests: int | None = None

    @staticmethod
    def of(declared: Mapping[str, Any]) -> Budget:
        """A `budget { tokens: …, usd: …, time: …, turns: …, requests: … }` block; `time` is in seconds."""
        known = {"tokens": "tokens", "usd": "usd", "time": "time_s", "turns": "turns", "requests": "requests"}
        return Budget(**{known[name]: value for name, value in declared.items() if name in known})

    def limits(self) -> dict[str, Any]:
        """The set limits, by the names of fields."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def over(self, other: Budget) -> Budget:
        """This budget, with its open limits taken from another one."""
        return replace(other, **self.limits())


NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """The worst-case cost of one request, reserved in every account that pays for it until it is settled.

    Attributes:
        payers: the run first, then the calls from the outside in.
        answer_tokens: what is left for its answer.
        limited_by: whose budget leaves less than the answer might have had; None where none does.
    """

    payers: tuple[BudgetAccount, ...]
    tokens: int
    usd: float
    answer_tokens: int
    limited_by: BudgetAccount | None = None


@dataclass(slots=True, eq=False)
class BudgetAccount:
    """The spending of one call and all its delegations against a budget.

    Attributes:
        budget: the limits.
        what: how messages name the call.
        clock: seconds, for `time_s`.
        outer: the spending of whoever called, of a run that of who pays for it; it counts everything, too.
        requests: to models, with those of everything it delegates; `own_requests` without.
        open: what is reserved.
        waiting: requests that wait for room here, see `Reservations`.
        arrivals: numbers the requests that wait, where nobody is further out.
    """

    budget: Budget
    what: str
    clock: Callable[[], float]
    outer: BudgetAccount | None = None
    tokens: int = 0
    usd: float = 0.0
    turns: int = 0
    requests: int = 0
    own_requests: int = 0
    started: float = 0.0
    open: set[Reservation] = field(default_factory=set)
    waiting: list[Any] = field(default_factory=list)
    arrivals: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def _all(self) -> Iterable[BudgetAccount]:
        spending: BudgetAccount | None = self
        while spending is not None:
            yield spending
            spending = spending.outer

    def names(self) -> list[str]:
        """Whose limits count: this call's and those of everybody around it."""
        return [spending.what for spending in self._all()]

    def begin_turn(self, *, had_ended: bool = False) -> None:
        """Count an answer of the playbook's model. Raises LimitReachedError if it is one too many, or too late.

        Args:
            had_ended: whether an earlier part of the run has ended the call here, perhaps by a lower limit.
        """
        had_ended = had_ended and self.turns > 0
        self.turns += 1
        limits = self.budget
        if had_ended or (limits.turns is not None and self.turns > limits.turns):
            turns = "1 turn" if self.turns == 2 else f"{self.turns - 1} turns"
            raise self.limit_error("turns", f"did not return within {turns}", "turns: N")
        for spending in self._all():
            if spending.left_s() == 0:
                raise spending.too_late()

    def payers(self) -> tuple[BudgetAccount, ...]:
        """Every account that pays for its requests, from the outside in."""
        return tuple(self._all())[::-1]

    def limits_requests(self) -> bool:
        """Whether a budget counts that a single request could exceed."""
        return any(each.budget.tokens is not None or each.budget.usd is not None for each in self._all())

    def limits_usd(self) -> bool:
        """Whether a budget in money counts."""
        return any(spending.budget.usd is not None for spending in self._all())

    # ------------------------------------------------------------ requests

    def answer_room(self, need: Estimate, *, beside_open: bool) -> float:
        """The most tokens of an answer that its own budget leaves; less than 0 where there is no room for the request.

        Args:
            beside_open: whether room that is reserved for other requests does not count as left.
        """
        limits = self.budget
        others = self.open if beside_open else ()
        room = inf
        if limits.tokens is not None:
            taken = self.tokens + sum(other.tokens for other in others)
            room = limits.tokens - taken - need.input_tokens
        if limits.usd is not None:
            spent = self.usd + sum(other.usd for other in others)
            room = min(room, need.tokens_for(limits.usd - spent))
        return room

    def require_room(self, need: Estimate) -> None:
        """Raise LimitReachedError if its own budget does not allow a request, even with nothing else reserved."""
        limits, least = self.budget, need.least_answer_tokens
        if limits.requests is not None and self.requests >= limits.requests:
            raise self.limit_error("requests", f"has made {_requests(limits.requests)}, all that it may", "requests: N")
        if self.answer_room(need, beside_open=False) >= least:
            return
        answer = f" and at least {least} more for its answer" if least else ""
        if limits.tokens is not None and self.tokens + need.input_tokens + least > limits.tokens:
            spent = f"has used {self.tokens} of its {limits.tokens} tokens"
            raise self.limit_error(
                "tokens", f"{spent}, and the next request takes about {need.input_tokens}{answer}", "tokens: N"
            )
        spent = f"has spent {_dollars(self.usd)} of its ${limits.usd:g}"
        cost = _dollars(need.usd_with(least))
        raise self.limit_error("usd", f"{spent}, and the next request costs about {cost} at the least", "usd: N")

    def require_turn_for_request(self) -> None:
        """Raise LimitReachedError if a playbook has made very many requests for the turns it has."""
        limits = self.budget
        if limits.turns is None or limits.requests is not None:
            return
        if self.own_requests >= limits.turns * REQUESTS_PER_TURN:
            turns = "1 turn" if limits.turns == 1 else f"{limits.turns} turns"
            message = f"has made {_requests(self.own_requests)}, all that it may with {turns}"
            raise LimitReachedError("requests", self.what, message, "Write `budget { requests: N }` if it needs more.")

    def count_request(self, number: int = 1) -> None:
        """Count a request to a model; -1 takes one back."""
        self.own_requests += number
        for spending in self._all():
            spending.requests += number

    def too_little(self, answer_tokens: int) -> LimitReachedError:
        """The error for an answer that would have needed more than its own budget left."""
        limits, few = self.budget, f"and the {answer_tokens} tokens that were left for an answer were too few"
        if limits.usd is None:
            return self.limit_error(
                "tokens", f"has used {self.tokens} of its {limits.tokens} tokens, {few}", "tokens: N"
            )
        return self.limit_error("usd", f"has spent {_dollars(self.usd)} of its ${limits.usd:g}, {few}", "usd: N")

    def overspent(self) -> LimitReachedError | None:
        """The error for a call that has taken more than its budget; None for one that has not."""
        limits, why = self.budget, "because a model took more than was to be expected"
        if limits.tokens is not None and self.tokens > limits.tokens:
            message = f"has used {self.tokens} tokens, more than its budget of {limits.tokens}, {why}"
            return self.limit_error("tokens", message, "tokens: N")
        if limits.usd is not None and self.usd > limits.usd + MIN_USD:
            message = f"has spent {_dollars(self.usd)}, more than its budget of ${limits.usd:g}, {why}"
            return self.limit_error("usd", message, "usd: N")
        return None

    def too_late(self) -> LimitReachedError:
        """The error for a call whose time is up."""
        return self.limit_error("time", f"took longer than its budget of {self.budget.time_s:g} s", "time: 2m")

    def limit_error(self, limit: str, message: str, option: str) -> LimitReachedError:
        """The error for a limit of its own, which an option or a budget could raise."""
        help = f"Raise `--max-{limit}`" if self.what == RUN else f"Raise `budget {{ {option} }}` or `--max-{limit}`"
        return LimitReachedError(limit, self.what, message, f"{help} if the run needs more.")

    def spend(self, tokens: int, usd: float | None) -> None:
        """Count unreserved spending in every paying account, from the outside in."""
        for spending in self.payers():
            spending.count(tokens, usd or 0.0)

    def count(self, tokens: int, usd: float) -> None:
        """Count spending in this account alone."""
        self.tokens += tokens
        self.usd += usd

    def keep_free(self, reservation: Reservation) -> None:
        """Keep room free here."""
        self.open.add(reservation)

    def settle(self, reservation: Reservation, tokens: int, usd: float) -> None:
        """Count the cost of a request and release its reservation, in this account alone."""
        self.open.discard(reservation)
        self.count(tokens, usd)

    def left_s(self) -> float | None:
        """Seconds until its own time limit, not less than 0; None without one."""
        if self.budget.time_s is None:
            return None
        return max(0.0, self.budget.time_s - (self.clock() - self.started))


@asynccontextmanager
async def in_time(*spendings: BudgetAccount) -> AsyncIterator[None]:
    """End a block when the first of some time limits is over. Raises LimitReachedError."""
    limited = [(left_s, spending) for spending in spendings if (left_s := spending.left_s()) is not None]
    if not limited:
        yield
        return
    left_s, first = min(limited, key=itemgetter(0))
    async with CancelScope(left_s) as scope:
        yield
    if scope.caught is not None:
        raise first.too_late().with_traceback(scope.caught.__traceback__) from None


_paying: ContextVar[BudgetAccount | None] = ContextVar("koi_spending", default=None)


def current_spending() -> BudgetAccount | None:
    """The account of the call that the current code belongs to; None in code that only the run pays for."""
    return _paying.get()


@contextmanager
def paid_by(spending: BudgetAccount) -> Iterator[None]:
    """A context whose requests a call pays for, and everybody around it."""
    token = _paying.set(spending)
    try:
        yield
    finally:
        _paying.reset(token)


def _requests(number: int) -> str:
    return "1 request to a model" if number == 1 else f"{number} requests to models"


def _dollars(usd: float) -> str:
    return f"${usd:.4f}" if usd == 0 or usd >= 0.0001 else f"${usd:.1e}"
