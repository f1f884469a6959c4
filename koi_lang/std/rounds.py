"""The runtime of `std/improve`: its rounds as events, and the reasons of failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from koi_lang.errors import BestEffortError
from koi_lang.events import RoundEnded, RoundStarted
from koi_lang.js.errors import ErrorValue
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.context import current
from koi_lang.runtime.replay.location import leaf_path
from koi_lang.std.effects import agent


def begin_round(number: int, rounds: int) -> None:
    """Tell that a round begins."""
    _emit(RoundStarted(number, rounds), "round")


def end_round(number: int, rounds: int, decision: str, score: float | None, gates: Mapping[str, bool]) -> None:
    """Report the end of a round: its score, its gates, and the decision."""
    _emit(RoundEnded(number, rounds, decision, score, dict(gates)), "round_end")


def is_limit(error: Any) -> bool:
    """Whether a caught error is a limit that ended the work, rather than a failure of it."""
    return isinstance(error, ErrorValue) and isinstance(error.exception, LimitReachedError)


def _emit(data: RoundStarted | RoundEnded, name: str) -> None:
    run, asking = current.get(), agent()
    if run is not None:
        run.events.emit(data, "" if asking is None else asking.name, path=leaf_path(name))


def end(checks: str) -> NoReturn:
    """End the run with the result of rounds that were not accepted.

    Args:
        checks: what the checks said of the best round, as a clause.

    Raises:
        BestEffortError: always.
    """
    run = current.get()
    if run is not None and run.planning.is_on:
        raise BestEffortError("no plan was accepted, so nothing was changed", help="Say what the plan is to be like.")
    help = "Look at what was changed; `koi undo` puts it back."
    raise BestEffortError(f"this is the best that came of it: {checks}", help=help)
