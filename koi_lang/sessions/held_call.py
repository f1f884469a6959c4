"""A call that comes to a run from outside of its program, and what is told of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import KoiError, Outcome, failure_code
from koi_lang.events import OMITTED, CallEnded, CallStarted
from koi_lang.program.error_report import message
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.concurrency.cancellation import GRACE_S, CancelScope
from koi_lang.runtime.replay.location import Location
from koi_lang.runtime.replay.location import Path as Trail
from koi_lang.runtime.replay.ordering import BEGIN
from koi_lang.runtime.run import Run


@dataclass(slots=True, eq=False)
class HeldCall:
    """A call that is under way, or has ended.

    Attributes:
        id: names it, also in messages.
        name: what is called, such as `Agent.event`.
        place: its own within the run, where its beginning and its end are told.
        task: carries it out.
        is_told: whether its beginning has been told.
        is_cancelled: whether somebody has asked for its end.
        waiting: how many wait for its outcome.
        scope: in which it is carried out, once it is.
        end_error: why it was ended from outside, where that is told as its failure.
    """

    id: str
    name: str
    place: Location
    task: asyncio.Task[Outcome[Any]] = field(init=False)
    is_told: bool = False
    is_cancelled: bool = False
    waiting: int = 0
    scope: CancelScope = field(default_factory=CancelScope)
    end_error: KoiError | None = None

    def as_data(self) -> dict[str, str]:
        """Its names, for clients."""
        return {"call": self.id, "name": self.name}

    @property
    def path(self) -> Trail:
        """Where it is told."""
        return self.place.path

    def tell_start(self, run: Run, given: Mapping[str, Any]) -> None:
        """Tell that it begins, and what it is given."""
        self.is_told = True
        run.events.emit(CallStarted(self.id, self.name, **given), path=self.path)
        run.recorder.slots.pass_over(BEGIN, self.path)

    def cancel(self, grace_s: float = GRACE_S) -> None:
        """Have it end at once; what cleans up for ever, or computes, is ended after some seconds."""
        self.is_cancelled = True
        self.task.cancel()
        self.scope.cancel(grace_s)

    def interrupt(self, delay_s: float, error: KoiError | None = None) -> None:
        """Have it end, or give it some seconds, although its code computes and nothing else happens meanwhile.

        Any thread may ask for it.

        Args:
            error: is told as its failure; without one its end is told as asked for.
        """
        self.is_cancelled, self.end_error = True, error
        self.scope.cancel(delay_s)

    def describe_end(self, explain: Callable[[BaseException], str]) -> CallEnded:
        """What is told of its end, once its task has ended.

        Args:
            explain: an error as a person gets it.
        """
        outcome = None if self.task.cancelled() or self.scope.caught is not None else self.task.result()
        error = self.end_error if outcome is None else outcome.error
        if error is None:
            ended = {"aborted": True} if outcome is None else {"result": outcome.value}
            return CallEnded(self.id, self.name, ok=outcome is not None, **ended)
        is_own_limit = isinstance(error, LimitReachedError) and (error.limit, error.what) == ("time", f"`{self.name}`")
        is_late = outcome is None or is_own_limit
        return CallEnded(
            self.id,
            self.name,
            ok=False,
            timed_out=is_late or OMITTED,
            code=failure_code(error),
            error=message(error),
            help=(isinstance(error, KoiError) and error.help) or OMITTED,
            report=explain(error),
        )
