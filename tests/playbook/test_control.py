"""References, conditions and the actions that carry out other actions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.playbook.playing import Player, act, ask, done, solo
from tests.running import RecordingHost

COUNTING = solo("execute", more="state { n: number = 0 }")
TEAM = """
role Worker { can delegate, can execute }
agent Helper : Worker { on double(args: { n: number }) { return { n: args.n * 2 } } }
team Crew { helper: Helper }
agent Main : Worker { uses team Crew  on go(args) { playbook "Do the work." } }
"""


def say(text: str, **fields: Any) -> dict[str, Any]:
    """An action that prints."""
    return act("print", message=text, **fields)


def asking(id: str = "q") -> dict[str, Any]:
    """A question whose answer has an id."""
    return act("prompt_user", question="?", id=id)


def printed(play: Player, *actions: Any, answer: str = "5", source: str = "", payload: Any = None) -> tuple[str, ...]:
    """What a batch prints, where the person gives one answer to every question; it must not fail."""
    played = play(
        source or solo("execute"), [{"batch": [*actions, done()]}], host=RecordingHost([answer] * 9), payload=payload
    )
    assert played.error is None
    return played.printed


# ---------------------------------------------------------------- references


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${q.output.answer}", "5"),
        ("{{q.output.answer}}", "5"),
        ("n=${q.output.answer}!", "n=5!"),
        ("${q.output}", "{ answer: '5' }"),
        ("all: ${q.output}", 'all: {"answer":"5"}'),
        ("${answer}", "5"),
        ("${previousResult.answer}", "5"),
        ("${lastResult.answer}", "5"),
        ("${args.list[1].x}", "2"),
        ("${args.list.length}", "2"),
        ("${state.n}", "0"),
        ("${state.n + 1}", "1"),
        ("${Number(q.output.answer) * 2}", "10"),
        ("${q.output.answer + q.output.answer}", "55"),
        ("${HOME} and ${nobody.output.x}", "${HOME} and ${nobody.output.x}"),
        ("${q.output.answer ? 'yes' : 'no'}", "yes"),
        ("$5 {a} ${}", "$5 {a} ${}"),
        ("`${name}: ${res.output.text} ${state.name}`", "`${name}: ${res.output.text} ${state.name}`"),
        ("let s = `${qq.output.answer}`", "let s = `${qq.output.answer}`"),
    ],
)
def test_references(play: Player, text: str, expected: str) -> None:
    """Paths and expressions are replaced; what refers to nothing stays as written."""
    program = solo("execute", more="state { n: number = 0 }")
    payload = {"list": [{"x": 1}, {"x": 2}]}

    assert (expected,) == printed(play, asking(), say(text), source=program, payload=payload)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${s.output.stdout}", "`${s.output.stdout}` has no value: `s` failed"),
        ("so: {{ s.output.stdout }}!", "`{{ s.output.stdout }}` has no value: `s` failed"),
        ("${s.output.stdout || 'none'}", "has no value: `s` failed"),
        ("${maybe.output.n}", "`maybe` was skipped, because its condition does not hold"),
        (
            "${first.output.anwser}",
            "has no value: `first.output` has no `anwser`. Did you mean `first.output.answer`?",
        ),
        ("${first.output.answer.deep.x} x", "`first.output.answer` is a string, which has no `deep`"),
        ("${nobody.output.x}", "there is no result `nobody`. There are results of `first`. A text"),
        ("said ${frist.output.answer}", "there is no result `frist`. Did you mean `first`?"),
        ("${inner.output.x}", "`inner` failed"),
        ("${previousResult.nothing}", "`previousResult` has no `nothing`. It has `answer`."),
    ],
)
def test_what_gave_no_result_cannot_be_referred_to(play: Player, text: str, told: str) -> None:
    """A reference to what failed, was skipped or does not exist is an error for the model, and is never passed on."""
    nested = act("if", condition=True, then=[act("shell", id="inner", command="true", description="")])
    first = [asking("first"), act("print", id="maybe", message="no", condition=False)]
    answers = [*first, act("shell", id="s", command="ls", description=""), nested, done(r=[{"deep": text}]), done()]
    played = play(solo("execute"), answers, host=RecordingHost(["5"]))

    assert told in played.feedback[-1]
    assert {} == played.result


def test_a_second_attempt_gives_the_result(play: Player) -> None:
    """What failed and then succeeded under the same id can be referred to; one of two branches with an id, too."""
    failed = act("shell", id="s", command="<NAME>", description="")
    choice = [say("a", id="c"), say("b", id="c", condition=False)]
    batch = {"batch": [act("shell", id="s", command="echo hi", description=""), *choice, done(r="${s.output.stdout}")]}

    assert {"r": "hi\n"} == play(solo("execute"), [failed, batch], allow=["shell"]).result


def test_any_id_can_be_referred_to(play: Player) -> None:
    """Ids with hyphens, digits and reserved words work in texts and in conditions."""
    shown = say("${first-try.output.answer} ${2.output.answer}", condition="${first-try.output.answer} === '5'")

    assert ("5 5",) == printed(play, asking("first-try"), asking("2"), shown)


def test_a_reference_keeps_the_type(play: Player) -> None:
    """A field that is one reference gets the value itself."""
    answers = [{"batch": [ask("helper::double", {"n": 4}, id="d"), done(n="${d.output.n}", text="is ${d.output.n}")]}]

    assert {"n": 8, "text": "is 8"} == play(TEAM, answers).result


def test_json_in_the_answer_of_a_model_can_be_referred_to(play: Player) -> None:
    """Where `call_llm` answers with a JSON object, its fields are those of the output, too."""
    batch = {"batch": [act("call_llm", id="c", data={}, instruction="make a name"), say("${c.output.name}"), done()]}
    played = play(solo(), {"Do the work": [batch], "make a name": ['{"name":"Ada"}']})

    assert ("Ada",) == played.printed


def test_a_reference_is_not_followed_twice(play: Player) -> None:
    """A value that looks like a reference is not replaced in turn."""
    assert ("${state}",) == printed(play, asking(), say("${q.output.answer}"), answer="${state}")


# ---------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("${q.output.answer} == 5", True),
        ("${q.output.answer} === 5", False),
        ("${Number(q.output.answer)} > 3 && !false", True),
        ("${q.output.answer > 3}", True),
        ("q.output.answer > 7", False),
        ("'${q.output.answer}' === '5'", True),
        ('"${q.output.answer}" !== "5"', False),
        ("${q.output.missing} == null", True),
        ("state.n === 0", True),
        ("${state.n} === 0 || nobody", True),
        ("'${q.output.answer}'.length === 1", True),
    ],
)
def test_conditions(play: Player, condition: Any, holds: bool) -> None:
    """A condition is an expression over known names; the action is left out when it does not hold."""
    lines = printed(play, asking(), say("yes", condition=condition), source=COUNTING)

    assert (("yes",) if holds else ()) == lines


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (5, "`condition` must be true, false or the text of an expression, not 5"),
        ("nobody.output.x > 3", "there is no `nobody` here"),
        ("state.n > nobody", "Known names are `args`, `state`."),
        ("${nobody.output.x} > 3", "there is no `nobody` here"),
        ("one two", "`one two` is no expression"),
    ],
)
def test_a_condition_that_cannot_be_computed_fails(play: Player, condition: Any, problem: str) -> None:
    """It is never guessed whether such a condition holds."""
    played = play(solo(), [say("x", condition=condition), done()])

    assert problem in played.feedback[1]
    assert () == played.printed


def test_the_condition_of_a_delegate_is_not_its_payload(play: Player) -> None:
    """A delegate whose condition does not hold is not called, and the condition never reaches its payload."""
    skipped = {"actionType": "delegate", "intent": "helper::double", "n": 1, "condition": "false"}
    kept = {"actionType": "delegate", "intent": "helper::double", "n": 1, "condition": "true"}
    played = play(TEAM, [{"batch": [skipped, kept, done()]}])

    assert 1 == len([event for event in played.events if event.type == "handler_started" and event.agent == "Helper"])


# ---------------------------------------------------------------- if, while, repeat


def outcome(play: Player, *actions: Any, **options: Any) -> Any:
    """What the last of some actions gives."""
    source = options.pop("source", COUNTING)
    played = play(source, [{"batch": [*actions, act("return", data="${previousResult}")]}], **options)
    assert played.error is None
    return played.result


@pytest.mark.parametrize(
    ("condition", "lines"), [("${q.output.answer} > 3", ("then",)), ("${q.output.answer} > 7", ("else",))]
)
def test_if(play: Player, condition: str, lines: tuple[str, ...]) -> None:
    """One of the branches is carried out."""
    both = act("if", condition=condition, then=[say("then")], **{"else": [say("else")]})

    assert lines == printed(play, asking(), both)


def test_if_gives_what_its_branch_gave(play: Player) -> None:
    """The result names the branch and holds the last nested result."""
    changing = branches(act("update_state", updates={"n": 3}))

    assert {"executed": "then", "result": {"state_updated": True, "state": {"n": 3}}} == outcome(play, changing)


def test_if_without_else_gives_nothing(play: Player) -> None:
    """A branch that is not there is carried out without trouble."""
    assert {"executed": "else", "result": None} == outcome(play, act("if", condition=False, then=[say("x")]))


@pytest.mark.parametrize(("answer", "branch"), [("true", "then"), ("`False`.", "else")])
def test_if_can_ask_the_model(play: Player, answer: str, branch: str) -> None:
    """A condition in words is answered by the model with true or false."""
    condition = {"llm_eval": True, "instruction": "is it warm", "data": "${args}"}
    batch = {"batch": [act("if", condition=condition, then=[]), act("return", data="${previousResult.executed}")]}
    played = play(solo("execute"), {"Do the work": [batch], "is it warm": [answer]}, payload={"t": 30})

    assert branch == played.result
    assert "{'t': 30}" == played.requests[1].messages[0].text


def test_a_verdict_that_is_neither_true_nor_false_fails(play: Player) -> None:
    """What the model says about a condition is not guessed at."""
    condition = {"llm_eval": True, "instruction": "is it warm"}
    judged = act("if", condition=condition, then=[say("x")])
    played = play(solo("execute"), {"Do the work": [judged, done()], "is it warm": ["that is not true"]})

    assert "the condition was to be answered with true or false, and the answer was" in played.feedback[-1]


def test_repeat(play: Player) -> None:
    """The body is carried out so often; `iteration` counts from 1 and `iterationIndex` from 0."""
    body = act("repeat", count=3, actions=[say("${iteration} ${iterationIndex}")])

    assert ("1 0", "2 1", "3 2") == printed(play, body)


def test_the_same_action_may_be_repeated_on_purpose(play: Player) -> None:
    """Twenty equal actions in a loop, or in one answer, are no circle."""
    assert ("x",) * 40 == printed(play, act("repeat", count=20, actions=[say("x")]), *[say("x")] * 20)


def test_for_each_names_the_items_of_a_list(play: Player) -> None:
    """The body is carried out for each item, by its name; the result is the list of the last results."""
    body = [say("first"), act("update_state", updates={"n": "${row.n + iterationIndex}"}, id="u")]
    rows = act("for_each", of=[{"n": 3}, {"n": 5}], actions=body, **{"as": "row"})

    assert [3, 6] == [each["state"]["n"] for each in outcome(play, rows, source=COUNTING)]


def test_for_each_of_nothing_gives_an_empty_list(play: Player) -> None:
    """A list without items has nothing carried out."""
    assert [] == outcome(play, act("for_each", of=[], actions=[say("x")], **{"as": "row"}))


def test_for_each_says_what_it_cannot_be_given(play: Player) -> None:
    """A long list, and a name that is no name or means something else, are refused."""
    long = act("for_each", of=[0] * 1001, actions=[], **{"as": "row"})
    named = [act("for_each", of=[1], actions=[], **{"as": name}) for name in ("two words", "args")]
    told = [play(solo("execute"), [each, done()]).feedback[-1] for each in (long, *named)]

    assert "`of` may have 1000 items, and has 1001" in told[0]
    assert all("`as` is to be a name such as `item`" in each for each in told[1:])


def test_no_model_is_offered_for_each(play: Player) -> None:
    """Prompts are the same as without it, and a model that knows it may use it."""
    played = play(solo("execute"), [act("for_each", of=[1], actions=[say("x")], **{"as": "row"}), done()])

    assert "for_each" not in played.requests[0].system
    assert ("x",) == played.printed


def test_while_carries_out_its_body_before_it_asks(play: Player) -> None:
    """The body runs first, then the condition decides; it sees the counters and the results of the body."""
    count = act("update_state", updates={"n": "${state.n + 1}"})

    assert (3, "condition_false") == ended(play, "state.n < 3", count)
    assert (1, "condition_false") == ended(play, "false", count)
    assert (4, "condition_false") == ended(play, "iteration < 4", count)
    assert (2, "condition_false") == ended(play, "${u.output.state.n} < 2", {**count, "id": "u"})
    assert (100, "max_iterations") == ended(play, "true", count)
    assert (7, "max_iterations") == ended(play, "true", count, max_iterations=7)


def test_a_while_that_is_cut_off_says_so(play: Player) -> None:
    """At the most iterations the model is told that the condition still holds."""
    ran = outcome(play, loop(condition="true", actions=[], max_iterations=2))

    assert "cut off after 2 iterations; the condition still holds" == ran["note"]


def test_a_skipped_action_is_told_as_skipped(play: Player) -> None:
    """The model hears that an action was not carried out, in place of a result."""
    played = play(solo("execute"), [say("x", id="p", condition="false"), done()])

    assert "[p] print was skipped, because its condition does not hold\nContinue." == played.feedback[1]
    assert () == played.printed


def test_a_skipped_action_in_a_block_gives_nothing(play: Player) -> None:
    """The results of a loop are those of what was carried out."""
    body = [say("x", condition="iteration > 1")]

    assert [{"printed": True, "message": "x"}] == outcome(play, act("repeat", count=2, actions=body))["results"]


def ended(play: Player, condition: str, body: Any, **fields: Any) -> tuple[int, str]:
    """How often a loop ran, and why it stopped."""
    ran = outcome(play, loop(condition=condition, actions=[body], **fields))
    return ran["iterations"], ran["stopped_reason"]


def test_results_with_an_id_are_seen_outside(play: Player) -> None:
    """What a nested action leaves under its id can be referred to after the block."""
    body = act("repeat", count=2, actions=[act("update_state", updates={"n": "${iteration}"}, id="u")])

    assert ("2",) == printed(play, body, say("${u.output.state.n}"), source=COUNTING)


def test_blocks_nest(play: Player) -> None:
    """A loop in a branch in a loop sees the counters of the innermost loop."""
    inner = act("repeat", count=2, actions=[say("${iteration}")])
    outer = act("repeat", count=2, actions=[act("if", condition="iteration === 2", then=[inner]), say("o${iteration}")])

    assert ("o1", "1", "2", "o2") == printed(play, outer)


def test_loops_in_a_group_do_not_mix(play: Player) -> None:
    """Two loops at the same time keep their own counters, also within blocks of their own."""
    body = [act("prompt_user", question="?"), act("if", condition=True, then=[say("${iteration}")])]
    group = {"parallel": [act("repeat", count=2, actions=body), act("repeat", count=3, actions=body)]}

    assert ["1", "1", "2", "2", "3"] == sorted(printed(play, group))


def test_a_nested_return_ends_the_playbook(play: Player) -> None:
    """`return` in a loop ends everything, except in a group."""
    body = act("repeat", count=9, actions=[say("${iteration}"), act("return", data=1, condition="iteration === 2")])
    played = play(solo("execute"), [{"batch": [body, say("late")]}])

    assert (1, ("1", "2")) == (played.result, played.printed)


def test_a_delegate_in_a_loop(play: Player) -> None:
    """Nested actions may be delegates, and groups."""
    twice = [{"parallel": [ask("helper::double", {"n": "${iteration}"}), ask("helper::double", {"n": 10})]}]
    body = act("repeat", count=2, actions=twice)

    assert [{"n": 2}, {"n": 20}, {"n": 4}, {"n": 20}] == outcome(play, body, source=TEAM)["results"]


def loop(**fields: Any) -> dict[str, Any]:
    """A `while` that stops after its first pass."""
    return act("while", **{"condition": "false", "actions": [], **fields})


def branches(*then: Any, **fields: Any) -> dict[str, Any]:
    """An `if` whose condition holds."""
    return act("if", condition=True, then=list(then), **fields)


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (act("repeat", count=0, actions=[]), "`count` must be between 1 and 1000, not 0"),
        (act("repeat", count=2000, actions=[]), "`count` must be between 1 and 1000, not 2000"),
        (act("repeat", count="three", actions=[]), "`count` must be a whole number, not 'three'"),
        (loop(max_iterations=0), "`max_iterations` must be between 1 and 1000, not 0"),
        (
            loop(actions=[say("ran"), {"total": 3}]),
            "item 2 of `actions`: an action names its `intent`; this object has",
        ),
        (branches(say("ran"), **{"else": ["x"]}), 'item 1 of `else`: an action is a JSON object, not "x"'),
        (branches({"parallel": "x"}), 'item 1 of `then`: an action is a JSON object, not "x"'),
        (act("if", then=[]), "`condition` is missing"),
        (branches(act("print")), "`message` is missing"),
    ],
)
def test_control_flow_that_is_wrong(play: Player, action: Any, problem: str) -> None:
    """The model hears what is wrong before anything of a block was carried out."""
    played = play(solo("execute"), [action, done()])

    assert problem in played.feedback[1]
    assert () == played.printed
