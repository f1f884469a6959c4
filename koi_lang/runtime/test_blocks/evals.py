"""Declarations of `eval` blocks and their steps; a case runs to its end in spite of failed expectations."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from koi_lang.errors import ExpectationError
from koi_lang.events import ExpectationMissed, ScoreGiven
from koi_lang.js.inspect_value import inspect
from koi_lang.js.undefined import Value
from koi_lang.runtime.context import current_run
from koi_lang.runtime.replay.location import leaf_path
from koi_lang.runtime.test_blocks.context import current_trial


@dataclass(frozen=True, slots=True)
class EvalBlock:
    """An `eval` of a program.

    Attributes:
        body: carries out the current case.
        over: the path of a file with cases, as it is written, or a list of them; None for one case that is `{}`.
        times: how often each case is carried out.
        accept: the share of the cases that has to pass; None where none has to.
        gives_model: whether it lays down what models answer.
    """

    name: str
    body: Callable[[], Awaitable[None]]
    over: str | list[Any] | None
    times: int
    accept: float | None
    gives_model: bool


def current_case() -> Value:
    """`case`. Raises AgentError outside of evals."""
    return current_trial().case


@contextmanager
def note_misses() -> Iterator[None]:
    """A context around an `expect` of an eval: a failure is noted, and the case goes on."""
    try:
        yield
    except ExpectationError as error:
        current_trial().misses.append(error)
        current_run().events.emit(ExpectationMissed(error.message, list(error.details)), path=leaf_path("expect"))


def give_score(name: str, value: Value) -> None:
    """`score name = value`. Raises ExpectationError, which ends the case, for a value that is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        help = "give a finite number; what holds or does not is an `expect`, or `condition ? 1 : 0`."
        raise ExpectationError(f"the score `{name}` must be a number, not {inspect(value)}", help=help)
    scores = current_trial().scores
    if name in scores:
        raise ExpectationError(f"the score `{name}` is given twice for one case", help="give it another name.")
    scores[name] = float(value)
    current_run().events.emit(ScoreGiven(name, float(value)), path=leaf_path("score"))
