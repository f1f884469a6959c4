"""Requests of a run that wait for room in budgets: each reserves the most it can take, and gives it back.

A request reserves with everybody who pays for it. Where it fits nowhere it is refused; where only open reservations of
others are in its way it waits for them, behind whoever waits for the same room. Nobody waits in a circle, because a
reservation is settled when its answer has been written, and nothing that an answer causes keeps it from being written.

Several runs may have a payer in common, in one event loop; then their requests wait for its room in one queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from koi_lang.errors import KoiError
from koi_lang.llm.usage import Calibration, Estimate
from koi_lang.runtime.budget.limits import BudgetAccount, Reservation

CONCURRENCY = 32
NOTHING = Estimate(0, 0, 0)


@dataclass(slots=True)
class _Waiter:
    """A waiting request; `number` gives the order of arrival, `home` holds the reservations of its run."""

    number: int
    home: Reservations
    payers: tuple[BudgetAccount, ...]
    need: Estimate
    reservation: asyncio.Future[Reservation] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def __lt__(self, other: _Waiter) -> bool:
        return self.number < other.number


_Queue: TypeAlias = list[_Waiter]


class Reservations:
    """The open reservations of a run.

    Args:
        calibration: what models have counted; a request reserves with what is known of it when it may go.
        concurrency: how many requests may be on their way at once.
    """

    def __init__(self, calibration: Calibration, concurrency: int = CONCURRENCY) -> None:
        self._calibration = calibration
        self._concurrency, self._open = concurrency, 0
        # Those that wait for others to be answered; those that wait for room stand with whose budget it is.
        self._waiting: _Queue = []

    async def reserve(self, payer: BudgetAccount, need: Estimate | None) -> Reservation:
        """Keep room for a request until it is settled, for as much of its answer as budgets leave.

        Args:
            need: the most it can take; None where no budget counts that.

        Raises:
            LimitReachedError: a budget does not allow it, whatever becomes of other requests.
        """
        payers, need = payer.payers(), need or NOTHING
        queue = self._busy(payers) or self._short(payers, need)
        if queue is None:
            return self._open_reservation(payers, need)
        waiter = _Waiter(next(payers[0].arrivals), self, payers, need)
        heappush(queue, waiter)
        try:
            return await waiter.reservation
        except asyncio.CancelledError:
            self._give_up(waiter)
            raise

    def settle(self, reservation: Reservation, tokens: int = 0, usd: float | None = 0.0) -> None:
        """Count the actual cost of a request and release the rest of its reservation, once."""
        self._open -= 1
        for payer in reservation.payers:
            payer.settle(reservation, tokens, usd or 0.0)
        self._serve(reservation.payers)

    def release(self, reservation: Reservation) -> None:
        """The same for a request that has taken nothing, and does not count as one."""
        reservation.payers[-1].count_request(-1)
        self.settle(reservation)

    # ------------------------------------------------------------ who may go

    def is_free(self, payer: BudgetAccount) -> bool:
        """Whether a request for which there is room would not have to wait."""
        return self._open < self._concurrency and self._busy(payer.payers()) is None

    def _busy(self, payers: tuple[BudgetAccount, ...]) -> _Queue | None:
        """The queue that a request has to join, since others have come before; None where nobody waits."""
        return next((queue for queue in self._queues(payers) if queue), None)

    def _queues(self, payers: tuple[BudgetAccount, ...]) -> list[_Queue]:
        return [self._waiting, *(payer.waiting for payer in payers)]

    def _short(self, payers: tuple[BudgetAccount, ...], need: Estimate) -> _Queue | None:
        """Where a request has to wait; None where it may go, or may not go at all."""
        need = self._calibration.adjust(need)
        tokens = _answer_tokens(payers, need)
        if tokens < need.least_answer_tokens:
            return None
        if self._open >= self._concurrency:
            return self._waiting
        short = (payer for payer in payers if payer.answer_room(need, beside_open=True) < tokens)
        return next((payer.waiting for payer in short), None)

    def _open_reservation(self, payers: tuple[BudgetAccount, ...], need: Estimate) -> Reservation:
        """Let a request go that nobody is in the way of.

        Raises:
            LimitReachedError: it does not fit, whatever becomes of others.
            KoiError: somebody who pays cannot keep account of it; then nobody keeps room for it.
        """
        need = self._calibration.adjust(need)
        for payer in payers:
            payer.require_room(need)
        payers[-1].require_turn_for_request()
        answer = int(_answer_tokens(payers, need))
        limited = (each for each in payers if each.answer_room(need, beside_open=False) < need.answer_tokens)
        tokens, usd = need.input_tokens + answer, need.usd_with(answer)
        reservation = Reservation(payers, tokens, usd, answer, next(limited, None))
        with ExitStack() as undo:
            for payer in payers:
                payer.keep_free(reservation)
                undo.callback(payer.settle, reservation, 0, 0.0)
            undo.pop_all()
        payers[-1].count_request()
        self._open += 1
        return reservation

    def _serve(self, payers: tuple[BudgetAccount, ...]) -> None:
        """Admit waiting requests that fit now, in the queues of accounts whose room may have grown."""
        queues = deque(self._queues(payers))
        while queues:
            queue = queues.popleft()
            if queue:
                queues += self._serve_first(queue)

    def _serve_first(self, queue: _Queue) -> Sequence[_Queue]:
        """Look at the first in a queue; gives the queues in which others may have their turn now."""
        waiter = queue[0]
        if waiter.reservation.done():
            heappop(queue)
            return (queue,)
        home = waiter.home
        short, among = home._short(waiter.payers, waiter.need), home._queues(waiter.payers)
        if short is queue:
            return ()
        heappop(queue)
        if short is None:
            home._admit(waiter)
            return among
        heappush(short, waiter)
        # Whoever waits here for the same outer budget waits behind it; an inner one is not everybody's.
        order = [id(each) for each in among]
        return (queue,) if order.index(id(short)) > order.index(id(queue)) else ()

    def _admit(self, waiter: _Waiter) -> None:
        try:
            waiter.reservation.set_result(self._open_reservation(waiter.payers, waiter.need))
        except KoiError as error:
            waiter.reservation.set_exception(error)

    def _give_up(self, waiter: _Waiter) -> None:
        """Take away a request that is cancelled while it waits, or just when it was let go."""
        if waiter.reservation.cancelled():
            self._serve(waiter.payers)
        elif waiter.reservation.exception() is None:
            self.release(waiter.reservation.result())


def _answer_tokens(payers: tuple[BudgetAccount, ...], need: Estimate) -> float:
    """How many tokens an answer may have when all others have been answered."""
    return min(need.answer_tokens, *(payer.answer_room(need, beside_open=False) for payer in payers))
