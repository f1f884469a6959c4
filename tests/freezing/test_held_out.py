"""Plans of recorded calls, on payloads that were not recorded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.freezing.candidates import AmbiguousError, UnexplainedError
from koi_lang.freezing.plans import Frozen, HandoverError, explain_calls, hold
from koi_lang.freezing.recordings import RecordedCall, RecordedStep
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.model_calls.frozen_plans import misfits
from tests.freezing.handlers import AMBIGUOUS, EXPLAINABLE, NAMES, TODAY, UNEXPLAINABLE, HandlerCase, give, keep, show

RECORDED = 6
HELD_OUT = 12
# Of the handlers that can be explained.
LEAST_FROZEN = 0.6
MAX_CPU_S = 2


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


def test_a_number_behind_a_dash_is_none_below_zero() -> None:
    """`order-${args.id}` is the same as `order${args.id * -1}` for every number that it takes."""
    playbook = "Store ⟨args.what⟩ under order-ID."
    calls = [
        RecordedCall(
            f"run{id}", TODAY, playbook, {"id": id, "what": what}, {}, (RecordedStep(*keep(f"order-{id}", what), {}),)
        )
        for id, what in ((7, "tea"), (31, "jam"), (112, "oil"))
    ]

    assert "order-${args.id}" == explain_calls(calls, evaluate).actions[0]["key"]


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize(("count", "seed"), [(3, 21), (3, 25), (4, 1), (5, 21)])
def test_few_recordings_are_refused_rather_than_misread(count: int, seed: int, part: int) -> None:
    """A branch that one recording shows, a word that was the same by chance, and amounts without a last zero."""
    groups = dict([*EXPLAINABLE.items(), *UNEXPLAINABLE.items()][part::3])
    plans = {name: plan for name, each in groups.items() if (plan := frozen(name, each, count, seed)) is not None}

    assert [] == [line for name, plan in plans.items() for line in tried(name, groups[name], plan)[1]]


@pytest.mark.parametrize("name", UNEXPLAINABLE)
def test_what_cannot_be_explained_is_not_frozen(name: str) -> None:
    """A text that a model has thought of, an order, capitals or a day is refused by name."""
    with pytest.raises((UnexplainedError, AmbiguousError)) as refused:
        explain_calls(UNEXPLAINABLE[name].record(name, RECORDED - 1, 1), evaluate)

    assert "nothing" in str(refused.value) or "2026-11-29" in str(refused.value)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_not_frozen(name: str) -> None:
    """Two explanations that fit three recordings are both named, with an input that tells them apart."""
    with pytest.raises(AmbiguousError) as refused:
        explain_calls(AMBIGUOUS[name].record(name, 3, 1), evaluate)

    assert " or `" in refused.value.sentence()


def twenty_actions(run: str, count: int, customer: str) -> RecordedCall:
    """A call of twenty actions: a line, six articles that are each stored, announced and counted, and the sum."""
    rng = random.Random(run)
    articles = [{"name": f"{customer}{n}", "price": rng.randint(99, 999), "left": rng.randint(1, 50)} for n in range(6)]
    args = {"customer": customer, "articles": articles, "rate": count, "paid": count > 6}
    done = [show(f"Order of {customer}")]
    for each in articles:
        done += [keep(each["name"], each["left"]), show(f"{each['name']} is stored")]
        done += [keep(f"cost-{each['name']}", each["price"] * count)]
    done += [give(sum(each["price"] for each in articles))]
    steps = tuple(RecordedStep(intent, fields, result, {}) for intent, fields, result in done)
    playbook = "Print the order, store each article and its cost, and return the sum."
    return RecordedCall(run, TODAY, playbook, args, {}, steps)


@pytest.mark.parametrize("is_explained", [True, False])
def test_five_recordings_of_twenty_actions_take_less_than_two_seconds(is_explained: bool) -> None:
    """Of CPU, also where nothing explains the last of them."""
    made = [twenty_actions(f"run{n}", count, NAMES[n]) for n, count in enumerate((3, 5, 8, 11, 13))]
    if not is_explained:
        ends = [say("", "", {}, name).steps for name in reversed(NAMES[:5])]
        made = [replace(each, steps=(*each.steps[:-1], *end)) for each, end in zip(made, ends, strict=True)]
    begun = time.process_time()

    with nullcontext() if is_explained else pytest.raises(UnexplainedError):
        explain_calls(made, evaluate)

    assert time.process_time() - begun < MAX_CPU_S


def say(run: str, playbook: str, args: dict[str, Any], message: str) -> RecordedCall:
    """A call that prints something."""
    steps = (RecordedStep("print", {"message": message}, {"printed": True, "message": message}, {}),)
    return RecordedCall(run, TODAY, playbook, args, {}, steps)


def test_letters_of_the_playbook_are_no_words_of_it() -> None:
    """A list is no list of those whose name is a letter that stands in some word."""
    people = [[{"name": name, "points": 9}, {"name": "B", "points": 3}] for name in ("A", "C", "E")]
    made = [
        say(f"run{n}", "Say Bravo to the first person.", {"people": each, "n": n}, f"Bravo {each[0]['name']}")
        for n, each in enumerate(people)
    ]

    assert "Bravo ${args.people[0].name}" == explain_calls(made, evaluate).actions[0]["message"]


def test_a_long_text() -> None:
    """A constant text of some thousand characters around a value is explained."""
    made = [
        say(f"run{n}", "Print the letter.", {"name": name}, f"Dear {name}, {'hello ' * 900}")
        for n, name in enumerate(("Ada", "Bo", "Cy"))
    ]

    assert f"Dear ${{args.name}}, {'hello ' * 900}" == explain_calls(made, evaluate).actions[0]["message"]


def test_recordings_that_print_something_else_contradict_each_other() -> None:
    """What is printed is no result that the next step could have followed from."""
    made = [say(f"run{n}", "Print something.", {"name": "A"}, f"thing {n}") for n in range(3)]

    with pytest.raises(UnexplainedError, match="the recordings contradict each other: `run1` and `run0`"):
        explain_calls(made, evaluate)


PAIRS = [(5, 3), (1, 9), (7, 6), (20, 80), (40, 9)]


def test_a_value_that_depends_on_two_fields() -> None:
    """Two that are compared; without a recording in which they are equal it is ambiguous."""
    playbook = "If a is at least b, print ok, otherwise short."
    pairs = enumerate([*PAIRS, (4, 4)])
    made = [say(f"run{n}", playbook, {"a": a, "b": b}, "ok" if a >= b else "short") for n, (a, b) in pairs]

    assert '${args.a < args.b ? "short" : "ok"}' == explain_calls(made, evaluate).actions[0]["message"]
    with pytest.raises(AmbiguousError):
        explain_calls(made[:-1], evaluate)


def test_a_field_with_the_name_of_a_word_for_cases() -> None:
    """Whoever is named `who` is no case."""
    given = [{"who": name, "n": n} for n, name in enumerate(NAMES)]
    made = [say(f"run{n}", "Print who has ordered.", each, f"{each['who']} has") for n, each in enumerate(given)]

    assert "${args.who} has" == explain_calls(made, evaluate).actions[0]["message"]


def test_the_last_item_of_a_list() -> None:
    """Where the playbook says so; lists of one length tell it from another item."""
    lists = (["a", "b"], ["c", "d", "e"], ["f"], ["z", "y", "x", "w"])
    made = [say(f"run{n}", "Print the last item.", {"items": each}, each[-1]) for n, each in enumerate(lists)]

    (action,) = explain_calls(made, evaluate).actions
    assert "${args.items.at(-1)}" == action["message"]


@pytest.mark.parametrize(
    ("playbook", "write", "why"),
    [
        ("Print a by b.", lambda a, b: f"{a // b}", "`args.a / args.b` was always whole"),
        ("Print how many a are b items.", lambda a, b: f"{a} a are {b} items", "`args.b` was never 1"),
    ],
)
def test_what_the_recordings_do_not_show_of_a_number_is_for_the_model(
    playbook: str, write: Callable[[int, int], str], why: str
) -> None:
    """How a quotient is rounded, and what is said of one item."""
    pairs = [(9, 3), (30, 5), (8, 2), (14, 7), (12, 4)]
    made = [say(f"run{n}", playbook, {"a": a, "b": b}, write(a, b)) for n, (a, b) in enumerate(pairs)]
    plan = explain_calls(made, evaluate)

    hold(plan.actions, say("run", playbook, {"a": 21, "b": 3}, write(21, 3)), evaluate)
    with pytest.raises(HandoverError, match=why):
        hold(plan.actions, say("run", playbook, {"a": 5, "b": 2 if "/" in why else 1}, "?"), evaluate)
