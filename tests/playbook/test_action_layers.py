"""What an action goes through, one layer after the other, and what their order is good for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.events import Event
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.actions.layers import ActionLayer, Fields, Next, compose, hook, permit, record
from koi_lang.runtime.budget.limits import LimitReachedError, paid_by
from koi_lang.runtime.guards.size import MAX_BYTES
from koi_lang.runtime.hooks.types import Deny, Rewrite
from koi_lang.runtime.playbook import action_layers as layers
from koi_lang.runtime.playbook.action_parsing import Action
from koi_lang.runtime.playbook.loop import begin
from koi_lang.runtime.playbook.prompting import SKIPPED
from koi_lang.runtime.replay.location import current_path, enter_run, leave_run
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.extensions.hooking import hooks, saying
from tests.playbook.playing import Player, act, done, solo

Layer, Rest = ActionLayer[layers.PlaybookAction], Next[layers.PlaybookAction]
Work = Callable[[layers.PlaybookAction], Awaitable[Any]]
PRINT = Action("print", False, {"message": "${a.output.n}"}, "b")


async def give_fields(running: layers.PlaybookAction, fields: Fields, next: Rest) -> Any:
    """The innermost layer of these tests: what has become of the fields on the way."""
    return dict(fields)


def through(*some: Layer) -> Work:
    """The work of passing an action through some layers and no others."""
    return lambda running: compose([*some, give_fields])(running, running.action.data)


def carried_out(play: Player, action: Action, work: Work, **services: Any) -> tuple[Any, list[Event]]:
    """What some work makes of an action of a playbook, where `a` has given 1; and the events of the run."""
    declared, events = play.load(solo("think")).Main, list[Event]()
    given = Services(
        lambda llm: ScriptedModel([]),
        folder=Path(play.folder),
        evaluate=evaluate,
        consumers=[events.append],
        **services,
    )

    async def carry_out() -> Any:
        token = enter_run()
        async with Run(given) as run:
            with paid_by(run.spending):
                call = begin(run.agent(declared), "go", {})
                call.names.record("think", "a", {"n": 1})
                try:
                    return await work(layers.begin(call, action, call.names))
                finally:
                    leave_run(token)

    return asyncio.run(carry_out()), events


# ---------------------------------------------------------------- the list


def test_the_order_of_the_layers() -> None:
    """Nobody is looked for before that is permitted, and nothing is recorded before it is known what is asked for."""
    asked_for, nested = ([layer.__name__ for layer in each] for each in (layers.ASKED_FOR, layers.NESTED))

    assert [
        *("locate", "read", "conclude", "announce", "guard_repetition", "condition", "substitute"),
        *("require_known", "intervene", "permit", "resolve", "ask_guards"),
        *("record", "hook", "ask_person", "call_function"),
    ] == asked_for
    assert ["limit_nested", *(name for name in asked_for if name != "guard_repetition")] == nested


def test_layers_go_from_the_outside_in(play: Player) -> None:
    """Each passes fields on to the next one, and gives what comes of that."""

    def named(name: str) -> Layer:
        async def layer(running: layers.PlaybookAction, fields: Fields, next: Rest) -> Any:
            return [name, await next(running, {**fields, name: len(fields)})]

        return layer

    result, _ = carried_out(play, Action("print", False), through(named("outer"), named("inner")))

    assert ["outer", ["inner", {"outer": 0, "inner": 1}]] == result


# ---------------------------------------------------------------- each layer


def test_an_action_has_a_location(play: Player) -> None:
    """`locate`: what happens is part of the action."""

    async def look(running: layers.PlaybookAction, fields: Fields, next: Rest) -> Any:
        return current_path()

    path, _ = carried_out(play, PRINT, lambda running: compose([layers.locate, look])(running, {}))

    assert ("print#1",) == path


@pytest.mark.parametrize(("condition", "skipped"), [("${a.output.n} > 1", True), ("${a.output.n} == 1", False)])
def test_a_condition_decides_whether_the_rest_follows(play: Player, condition: str, skipped: bool) -> None:
    """`condition`: it is computed; that of a loop or branch is left to it."""
    fields = {"condition": condition}

    for intent, is_skipped in (("print", skipped), ("if", False)):
        result, _ = carried_out(play, Action(intent, False, fields), through(layers.condition))
        assert (SKIPPED if is_skipped else fields) == result


def test_references_are_replaced(play: Player) -> None:
    """`substitute`: by values; one that leads to nothing ends the action."""
    assert {"message": 1} == carried_out(play, PRINT, through(layers.substitute))[0]
    with pytest.raises(AgentError, match="there is no result `b`"):
        carried_out(play, Action("print", False, {"message": "${b.output}"}), through(layers.substitute))


def test_a_role_is_asked_before_anybody_is_looked_for(play: Player) -> None:
    """`permit`: what is handed to a member needs a permission, too, whoever is meant."""
    for action in (Action("shell", False, {"command": "true"}), Action("nobody::known", True)):
        with pytest.raises(PermissionDeniedError, match="which the role `Worker` lacks"):
            carried_out(play, action, through(permit, layers.resolve))


def test_it_is_told_that_an_action_begins_and_ends(play: Player) -> None:
    """`announce` and `conclude`: what it is given is told with its values, and its result is there for later ones."""

    async def work(running: layers.PlaybookAction) -> Any:
        await compose([layers.conclude, layers.announce, give_fields])(running, {"x": 1})
        return running.names.resolve("${b.output.x}"), running.call.results[-1].action

    result, events = carried_out(play, PRINT, work, detailed=True)

    assert (1, {"message": 1}) == result
    assert [("action_started", {"message": 1}), ("action_ended", None)] == [
        (event.type, event.fields.get("fields")) for event in events if event.type.startswith("action")
    ]


@pytest.mark.parametrize("detailed", [True, False])
def test_an_action_whose_fields_grow_too_large_is_told(play: Player, detailed: bool) -> None:
    """Whoever looks on learns that it began and failed, with or without details."""
    grown = [act("print", id="a", message="x" * 1000), act("print", message="${a.output.message}" * (MAX_BYTES // 900))]
    played = play(solo(), [{"batch": grown}, done()], detailed=detailed)

    assert (["print", "print", "return"], ["print"]) == (played.did("action_started"), played.did("action_failed"))


# ---------------------------------------------------------------- what the order is good for


def test_a_denied_action_never_reaches_the_recorder(play: Player) -> None:
    """Whether its references lead anywhere or not, nothing of it is done, recorded or shown to hooks."""
    reached: list[str] = []

    def noting(layer: Layer) -> Layer:
        async def noted(running: layers.PlaybookAction, fields: Fields, next: Rest) -> Any:
            reached.append(layer.__name__)
            return await layer(running, fields, next)

        return noted

    action = Action("shell", False, {"command": "echo ${a.output.n}"})
    with pytest.raises(PermissionDeniedError):
        carried_out(play, action, through(*map(noting, (layers.substitute, permit, record, hook))))

    assert ["substitute", "permit"] == reached


def test_hooks_see_values_and_decide_about_what_may_be_done(play: Player) -> None:
    """References are replaced before; what the role does not allow they are not asked about."""
    seen = saying()
    answer = [
        act("print", id="a", message="one"),
        act("print", message="${a.output.message} more"),
        act("shell", command="x"),
    ]
    play(solo("think"), [{"batch": answer}, done()], added=hooks(seen))

    assert [{"message": "one"}, {"message": "one more"}] == [
        call.fields for call in seen.seen if call.intent != "return"
    ]


def test_the_guard_against_repetition_sees_what_the_model_asked_for(play: Player) -> None:
    """Values count, conditions and hooks do not: what is skipped, denied or rewritten again and again is a circle."""
    skipped = act("print", message="x", condition="false")
    counting = act("print", id="n", message="${n.output.message}x")
    rewritten = hooks(saying(*(Rewrite({"message": f"{n}"}) for n in range(9))))
    denied = hooks(saying(*[Deny("no")] * 9))
    for answer, added in (
        (skipped, hooks()),
        (act("print", message="x"), rewritten),
        (act("print", message="x"), denied),
    ):
        assert isinstance(play(solo(), [answer] * 9, added=added).error, LimitReachedError)
    first = act("print", id="n", message="x")
    assert play(solo(), [first, *[counting] * 9, done()]).error is None


def test_the_guard_is_not_asked_about_loops(play: Player) -> None:
    """What a loop does again and again was asked for once."""
    played = play(solo("execute"), [act("repeat", count=9, actions=[act("print", message="x")]), done()])

    assert (None, 9) == (played.error, played.did().count("print"))
