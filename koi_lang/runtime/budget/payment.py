"""Payments for requests to models: reserved before they leave, counted at their end, reported as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from koi_lang.events import OMITTED, AnswerDiscarded, ModelAnswered, decode
from koi_lang.llm.messages import Usage
from koi_lang.llm.usage import Estimate
from koi_lang.runtime.budget.limits import BudgetAccount, Reservation
from koi_lang.runtime.replay.location import Path

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import JournalEntry
    from koi_lang.runtime.ports import RunPort

# Events that tell what a request took.
PaidRequest = ModelAnswered | AnswerDiscarded


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request; `usd` is None where its price is not known."""

    model: str
    usage: Usage
    usd: float | None

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.input_tokens + self.usage.output_tokens


@dataclass(slots=True)
class Payment:
    """The payment for one request; a context that releases its reservation at the end.

    Attributes:
        agent: on whose behalf it is made.
        spending: the call that pays for it, with everybody around.
        reservation: what is kept free for it, while it is on its way.
    """

    run: RunPort
    agent: str
    spending: BudgetAccount
    reservation: Reservation | None = None
    _need: Estimate | None = None
    _answer_tokens: int = 0

    def __enter__(self) -> Payment:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    async def reserve(self, need: Estimate | None) -> Reservation:
        """Wait for room. Raises LimitReachedError.

        Args:
            need: the most that the request can take; None where nothing but requests is counted.
        """
        self._need = need
        self.reservation = await self.run.ledger.reservations.reserve(self.spending, need)
        self._answer_tokens = self.reservation.answer_tokens
        return self.reservation

    async def reserve_again(self) -> None:
        """Wait for room for another attempt, which is the same to the letter. Raises LimitReachedError."""
        assert self.reservation is None, "an attempt that is paid for"
        if self._need is not None:
            sent = self._answer_tokens
            self._need = replace(self._need, answer_tokens=sent, least_answer_tokens=sent)
        await self.reserve(self._need)

    def tell(self, event_type: type[PaidRequest], path: Path, cost: Cost, **about: Any) -> None:
        """Report a counted cost, as an event of a type."""
        usage, estimated = cost.usage, cost.usage.estimated or OMITTED
        tokens = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
        if usage.thinking_tokens:
            tokens["thinking"] = usage.thinking_tokens
        self.run.events.emit(
            event_type(cost.model, tokens, cost.usd, estimated=estimated, **about), self.agent, path=path
        )

    def count_again(self, known: JournalEntry) -> int:
        """Count the cost from an earlier part of the run and report it; returns its tokens.

        It is no matter of the room that is kept free: an attempt from before may be followed by one that is made now.
        """
        tokens = tokens_in(known.data)
        if not known.data.get("replayed"):
            self._count_beside(known.kind, known.path, tokens, known.data.get("usd"))
        about = {name: value for name, value in known.data.items() if name not in ("changed", "recalled")}
        self.run.events.emit(decode(known.kind, about), self.agent, path=known.path)
        return tokens

    def count_killed(self, event_type: type[PaidRequest], path: Path, cost: Cost) -> None:
        """Count and report the cost of a request that was open when the process was killed."""
        self._count_beside(event_type.type, path, cost.tokens, cost.usd)
        self.tell(event_type, path, cost)

    def _count_beside(self, type: str, path: Path, tokens: int, usd: float | None) -> None:
        """Count something else than the request that room is kept for."""
        if self.run.ledger.has_counted(type, path):
            self.spending.own_requests += 1
        else:
            self.spending.spend(tokens, usd)
            self.spending.count_request()

    def release(self) -> None:
        """Release the reservation of a request without cost."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            self.run.ledger.reservations.release(reservation)

    def count(self, type: str, path: Path, tokens: int, usd: float | None) -> None:
        """Count and report the cost of a request by an event of a type; waiting requests may proceed now."""
        if self.run.ledger.has_counted(type, path):
            self.release()
            self.spending.own_requests += 1
        elif self.reservation is not None:
            reservation, self.reservation = self.reservation, None
            self.run.ledger.reservations.settle(reservation, tokens, usd)
        else:
            self._count_beside(type, path, tokens, usd)


def tokens_in(data: Mapping[str, Any]) -> int:
    """All tokens that an event of something paid tells."""
    return input_in(data) + int((data.get("tokens") or {}).get("output", 0))


def input_in(data: Mapping[str, Any]) -> int:
    """The tokens that were read, of all that an event of something paid tells."""
    return int((data.get("tokens") or {}).get("input", 0))
