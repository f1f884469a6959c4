"""Plans of recorded calls, on payloads that were not recorded."""

from __future__ import annotations

import pytest

from koi_lang.errors import KoiError
from koi_lang.freezing.candidates import AmbiguousError, UnexplainedError
from koi_lang.freezing.plans import Frozen, explain_calls, hold
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.model_calls.frozen_plans import misfits
from tests.freezing.handlers import AMBIGUOUS, EXPLAINABLE, UNEXPLAINABLE, HandlerCase

RECORDED = 6
HELD_OUT = 12
# Of the handlers that can be explained.
LEAST_FROZEN = 0.6


def frozen(name: str, handler: HandlerCase, count: int = RECORDED, seed: int = 1) -> Frozen | None:
    """The plan of some recordings of a handler; None where there is none."""
    try:
        return explain_calls(handler.record(name, count, seed), evaluate)
    except (AmbiguousError, UnexplainedError):
        return None


def tried(name: str, handler: HandlerCase, plan: Frozen) -> tuple[int, list[str]]:
    """How many held-out payloads a plan takes, and what it does wrong with them."""
    wrong, taken = list[str](), 0
    for recording in handler.record(name, HELD_OUT, 2, has_special=False):
        given = {"args": recording.args, "state": recording.state}
        if any(clause for part, value in given.items() for clause in misfits(plan.fits[part], value, part)):
            continue
        taken += 1
        try:
            hold(plan.actions, recording, evaluate)
        except KoiError as error:
            wrong.append(f"{name}: {error.message}")
    return taken, wrong


def test_no_plan_is_wrong_on_payloads_that_were_not_recorded() -> None:
    """Most of the handlers that can be explained are frozen, and none of the plans does anything wrong."""
    plans = {name: plan for name, each in EXPLAINABLE.items() if (plan := frozen(name, each)) is not None}
    tries = {name: tried(name, EXPLAINABLE[name], plan) for name, plan in plans.items()}

    assert [] == [line for _, wrong in tries.values() for line in wrong]
    assert len(plans) >= LEAST_FROZEN * len(EXPLAINABLE)
    assert sum(taken for taken, _ in tries.values()) >= HELD_OUT * len(plans) // 2


@pytest.mark.parametrize(("count", "seed"), [(3, 21), (3, 25), (4, 1), (5, 21)])
def test_few_recordings_are_refused_rather_than_misread(count: int, seed: int) -> None:
    """A branch that one recording shows, a word that was the same by chance, and amounts without a last zero."""
    groups = {**EXPLAINABLE, **UNEXPLAINABLE}
    plans = {name: plan for name, each in groups.items() if (plan := frozen(name, each, count, seed)) is not None}

    assert [] == [line for name, plan in plans.items() for line in tried(name, groups[name], plan)[1]]


@pytest.mark.parametrize("name", UNEXPLAINABLE)
def test_what_cannot_be_explained_is_not_frozen(name: str) -> None:
    """A text that a model has thought of, an order, capitals or a day is refused by name."""
    with pytest.raises((UnexplainedError, AmbiguousError)) as refused:
        explain_calls(UNEXPLAINABLE[name].record(name, RECORDED, 1), evaluate)

    assert "nothing" in str(refused.value) or "2026-11-29" in str(refused.value)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_not_frozen(name: str) -> None:
    """Two explanations that fit three recordings are both named, with an input that tells them apart."""
    with pytest.raises(AmbiguousError) as refused:
        explain_calls(AMBIGUOUS[name].record(name, 3, 1), evaluate)

    assert " or `" in refused.value.sentence()
