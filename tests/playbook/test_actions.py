"""What the built-in actions take and give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koi_lang.runtime.actions.lookup import all_actions
from tests.playbook.playing import Player, act, ask, done
from tests.running import RecordingHost

PROGRAM = """
role Worker { can execute, can delegate, can registry }
role Other { can delegate }
skill Tools {
  affordance "Helps with numbers."
  export function add(a: number, b: number = 1): number { return a + b }
  export function size(value: any) { return Object.keys(value).length }
  export function sum(first: number, ...more: number[]) { return more.reduce((a, b) => a + b, first) }
  export function count(...all) { return all.length }
  export async function fail(): Promise<string> { throw new Error("broken tool") }
}
agent First : Worker { on hello(args) { return { by: "first", given: args } } }
agent Second : Other { on hello(args) { return { by: "second" } } }
agent Asking : Worker { on work(args) { playbook "Ask what is unclear." } }
team Crew { first: First, second: Second, asking: Asking }
agent Main : Worker {
  uses team Crew
  uses skill Tools
  state { n: number = 0 }
  on go(args) { playbook "Do the work." }
}
"""


def output(play: Player, intent: str, host: RecordingHost | None = None, **fields: Any) -> Any:
    """What an action gives."""
    answers = [{"batch": [act(intent, id="x", **fields), act("return", data="${x.output}")]}]
    played = play(PROGRAM, answers, host=host)
    assert played.error is None
    return played.result


def failure(play: Player, *actions: Any) -> str:
    """What the model is told about the last of some actions, which fails."""
    played = play(PROGRAM, [{"batch": list(actions)}, done()])
    assert played.did("action_failed")
    return played.feedback[1].splitlines()[-2]


# ---------------------------------------------------------------- core


@pytest.mark.parametrize("fields", [{"message": "hi"}, {"text": "hi"}, {"data": "hi"}, {"data": {"message": "hi"}}])
def test_print(play: Player, fields: dict[str, Any]) -> None:
    """A message is shown, under whichever name it is given."""
    host = RecordingHost()

    assert {"printed": True, "message": "hi"} == output(play, "print", host, **fields)
    assert ["hi"] == host.printed


def test_print_shows_values_as_console_log_does(play: Player) -> None:
    """A message that is no text is shown as `console.log` would show it."""
    assert "{ a: [ 1, 2 ] }" == output(play, "print", message={"a": [1, 2]})["message"]


class Choosing(RecordingHost):
    """A person who keeps what was asked and takes the first option."""

    async def ask(self, question: str, options: Any = ()) -> str:
        """Keep the question."""
        self.logged.append(f"{question} {list(options)}")
        return options[0] if options else "free"


def test_prompt_user_offers_options(play: Player) -> None:
    """Options are texts, and lines of the question that list them are left out."""
    host = Choosing()
    answer = output(play, "prompt_user", host, question="Which?\n- one\n2. two", options=["one", 2])

    assert ({"answer": "one"}, ["Which? ['one', '2']"]) == (answer, host.logged)


def test_prompt_user_asks_freely(play: Player) -> None:
    """Without options the whole question is asked."""
    host = Choosing()

    assert {"answer": "free"} == output(play, "prompt_user", host, prompt="Why?\n- because")
    assert ["Why?\n- because []"] == host.logged


def test_a_question_nobody_answers_is_told(play: Player) -> None:
    """Without a person the model hears that nobody can answer."""
    assert "❌ prompt_user failed: nobody can answer: Why?" in failure(play, act("prompt_user", question="Why?"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data": {"a": 1}}, {"a": 1}),
        ({"result": [1]}, [1]),
        ({"data": "text"}, "text"),
        ({"data": 0}, 0),
        ({"data": False}, False),
        ({}, {}),
        ({"data": None}, None),
        ({"result": None}, None),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_return(play: Player, fields: dict[str, Any], expected: Any) -> None:
    """The result is what stands under `data` or `result`, else the other fields."""
    assert expected == play(PROGRAM, [act("return", **fields)]).result


@pytest.mark.parametrize("name", ["state_updates", "stateUpdates"])
def test_return_changes_the_state(play: Player, name: str) -> None:
    """Updates of the state that come with a result are made and are not part of it."""
    played = play(PROGRAM, [done(**{name: {"n": 5}, "ok": True})])

    assert ({"ok": True}, {"n": 5}) == (played.result, played.state("Main"))


@pytest.mark.parametrize("field", ["data", "result"])
@pytest.mark.parametrize("name", ["state_updates", "stateUpdates"])
def test_updates_beside_a_result_change_the_state(play: Player, field: str, name: str) -> None:
    """They were dropped without a word where the result stood in a field of its own."""
    played = play(PROGRAM, [act("return", **{field: {"ok": True}, name: {"n": 5}})])

    assert ({"ok": True}, {"n": 5}) == (played.result, played.state("Main"))


@pytest.mark.parametrize("result", ["text", None])
def test_updates_beside_a_result_that_is_no_object(play: Player, result: str | None) -> None:
    """The model is told where they belong, `null` was read as `{}`; a text without updates is a result as ever."""
    updates = act("update_state", updates={"n": 5})
    said = [act("return", data=result, state_updates={"n": 5}), updates, act("return", data=result, state_updates=None)]
    played = play(PROGRAM, said)

    assert (result, {"n": 5}) == (played.result, played.state("Main"))
    assert f"stands in an object of `data`, and `data` is {json.dumps(result)}" in played.feedback[1]
    assert "carry out `update_state` first" in played.feedback[1]


def test_updates_in_a_result_are_an_object(play: Player) -> None:
    """Anything else is told to the model; it was dropped without a word."""
    form = '{"intent":"update_state","updates":{…}}'
    told = f"`update_state` cannot be carried out: `updates` must be an object, not 5. Write {form}"

    assert f"❌ return failed: {told}." == failure(play, act("return", state_updates=5))


def test_update_state(play: Player) -> None:
    """Fields are changed, others stay; the whole state comes back."""
    assert {"state_updated": True, "state": {"n": 0, "m": 2}} == output(play, "update_state", updates={"m": 2})
    assert {"state_updated": True, "state": {"n": 3}} == output(play, "update_state", state={"n": 3})


def test_call_llm(play: Player) -> None:
    """A model works on data as instructed; code fences around its answer are taken away."""
    batch = {"batch": [act("call_llm", id="x", data=[1], instruction="sum up"), act("return", data="${x.output}")]}
    played = play(PROGRAM, {"Do the work": [batch], "sum up": ["```json\n[2]\n```"]})

    assert {"result": "[2]"} == played.result
    assert ("sum up", "[1]") == (played.requests[1].system, played.requests[1].messages[0].text)


def test_format_is_call_llm(play: Player) -> None:
    """The older name gives its result under both keys."""
    batch = {"batch": [act("format", id="x", data="a", instruction="sum up"), act("return", data="${x.output}")]}
    played = play(PROGRAM, {"Do the work": [batch], "sum up": ["b"]})

    assert {"result": "b", "formatted": "b"} == played.result


def test_send_message(play: Player) -> None:
    """The first agent that handles the event gets the data, of a role if one is named."""
    assert {"by": "first", "given": 4} == output(play, "send_message", event="hello", data=4)
    assert {"by": "second"} == output(play, "send_message", event="hello", data=4, role="Other")


def test_send_message_to_nobody(play: Player) -> None:
    """An event that nobody handles is an error that says so."""
    assert "no agent of `Crew` handles `bye`" in failure(play, act("send_message", event="bye", data={}))


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (act("print", message="hi", mesage="ho"), "there is no `mesage` (did you mean `message`?)"),
        (act("prompt_user", question="?", optoins=["a"]), "there is no `optoins` (did you mean `options`?)"),
        (act("while", condition="false", actions=[], maxIterations=2), "(did you mean `max_iterations`?)"),
    ],
)
def test_a_misspelt_field(play: Player, action: dict[str, Any], problem: str) -> None:
    """What is almost a field of an action is refused, also beside all that it needs."""
    assert problem in failure(play, action)


def test_a_field_that_means_nothing(play: Player) -> None:
    """What a model adds to an action and is like none of its fields does no harm."""
    extra = {"title": "a", "description": "b", "tone": "warm", "reasoning": "c"}

    assert {"printed": True, "message": "hi"} == output(play, "print", message="hi", **extra)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"function": "add", "input": {"a": 2, "b": 3}}, 5),
        ({"function": "add", "input": {"a": 2, "b": 3, "sum": 9}}, 5),
        ({"function": "add", "input": {"a": 2}}, 3),
        ({"input": {"a": 2}}, 3),
        ({"input": 2}, 3),
        ({"function": "size", "input": {"x": 1, "y": 2}}, 2),
        ({"function": "size", "input": {"value": {"x": 1}}}, 1),
        ({"function": "sum", "input": {"first": 1, "more": [2, 3]}}, 6),
        ({"function": "sum", "input": {"first": 1}}, 1),
        ({"function": "count", "input": {"all": [7, 8]}}, 2),
    ],
)
def test_call_skill(play: Player, fields: dict[str, Any], expected: float) -> None:
    """A function gets its parameters by name; without a function the first one is called."""
    assert expected == output(play, "call_skill", skill="Tools", **fields)


def calling(input: Any) -> dict[str, Any]:
    """The fields of a call of `Tools.add`."""
    return {"skill": "Tools", "function": "add", "input": input}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"skill": "Tolls"}, "`Main` uses no skill `Tolls`. did you mean `Tools`?"),
        ({"skill": "Tools", "function": "ad"}, "the skill `Tools` has no function `ad`. did you mean `add`?"),
        (calling({"b": 1}), "`Tools.add` cannot be called: `a` is missing. It takes (a: number, b?: number)."),
        (calling({"a": 1, "z": 1}), "`Tools.add` cannot be called: there is no parameter `z`. It takes"),
        (calling({"aa": 5}), "there is no parameter `aa`; `a` is missing. It takes (a: number, b?: number)."),
        (calling({"a": "five"}), "`a` must be a number, not 'five'"),
        (calling([1, 2, 3]), "`a` must be a number, not [ 1, 2, 3 ]"),
        (calling("x"), "`a` must be a number, not 'x'"),
        ({"skill": "Tools", "function": "count", "input": {"all": 5}}, "`all` must be a list, not 5"),
        ({"skill": "Tools", "function": "sum", "input": {"first": 1, "more": [1, "x"]}}, "`more[1]` must be a number"),
        ({"skill": "Tools", "function": "fail", "input": {}}, "Skill Tools.fail failed: Error: broken tool"),
    ],
)
def test_call_skill_that_fails(play: Player, fields: dict[str, Any], problem: str) -> None:
    """The model hears which name is wrong, and what a function says when it fails."""
    assert problem in failure(play, act("call_skill", **fields))


def test_skills_that_an_agent_does_not_use(play: Player) -> None:
    """Code is told to write `uses skill`, a model that there are none, though the program declares some."""
    unused = PROGRAM.replace(
        "uses skill Tools", "on code() { const name = 'Tools' await this.callSkill(name, 'fail') }"
    )
    by_model = play(unused, [{"batch": [act("call_skill", skill="Tools")]}, done()])
    by_code = play(unused.replace('playbook "Do the work."', "await this.handle('code')"), [])

    assert "`Main` uses no skill `Tools`. it uses no skills at all." in by_model.feedback[1]
    assert "help: write `uses skill Tools` in `Main`." in by_code.told


def test_the_prompt_shows_the_real_parameters(play: Player) -> None:
    """The model reads every function with its parameters, their types, and which it may leave out."""
    system = play(PROGRAM, [done()]).requests[0].system

    assert "### Tools - Helps with numbers.\n- Tools.add(a: number, b?: number)\n- Tools.size(value: any)" in system
    assert "\n- Tools.sum(first: number, more?: number[])\n- Tools.count(all?: any[])\n- Tools.fail()" in system


def test_ask_parent(play: Player) -> None:
    """A delegate's question is answered by the model of whoever delegated, without the person."""
    answers: dict[str, list[Any]] = {
        "A team member you delegated to asks": ["blue"],
        "Do the work": [ask("asking::work", {"n": 1}), done()],
        "Ask what is unclear": [
            {"batch": [act("ask_parent", id="a", question="which colour?"), done(c="${a.output}")]}
        ],
    }
    played = play(PROGRAM, answers)

    assert '"c":{"answer":"blue"}' in played.feedback[-1]
    assert '{"question": "which colour?", "task": {"n": 1}}' == played.requests[2].messages[0].text


def test_a_task_that_was_not_delegated_has_no_parent(play: Player) -> None:
    """Nobody can be asked, and the model of a root agent is not even told of the action."""
    assert "there is nobody to ask" in failure(play, act("ask_parent", question="?"))
    assert "ask_parent" not in play(PROGRAM, [done()]).requests[0].system


def test_action_history(play: Player) -> None:
    """The last actions are listed with their outcome."""
    history = [act("action_history", count=5, id="h"), act("return", data="${h.output}")]
    answers = [act("print", message="a"), act("print"), *history]

    assert {"summary": "ok print\nFAILED print", "total": 2, "step": 3} == play(PROGRAM, answers).result


# ---------------------------------------------------------------- registry


def test_registry(play: Player) -> None:
    """Values are stored, read, listed, searched and removed."""
    steps = [
        act("registry_set", key="user:1", value={"age": 40}, id="set"),
        act("registry_set", key="user:2", value={"age": 20}),
        act("registry_get", key="user:1", id="get"),
        act("registry_get", key="nobody", id="none"),
        act("registry_keys", prefix="user:", id="keys"),
        act("registry_search", query={"age": {"$gt": 30}}, id="search"),
        act("registry_delete", key="user:2", id="delete"),
        act("registry_delete", key="user:2", id="again"),
    ]
    ids = ("set", "get", "none", "keys", "search", "delete", "again")
    result = play(PROGRAM, [{"batch": [*steps, done(**{id: f"${{{id}.output}}" for id in ids})]}]).result

    assert {
        "set": {"success": True, "key": "user:1", "saved": True},
        "get": {"success": True, "key": "user:1", "value": {"age": 40}, "found": True},
        "none": {"success": True, "key": "nobody", "value": None, "found": False},
        "keys": {"success": True, "count": 2, "keys": ["user:1", "user:2"]},
        "search": {"success": True, "count": 1, "results": [{"key": "user:1", "value": {"age": 40}}]},
        "delete": {"success": True, "key": "user:2", "deleted": True},
        "again": {"success": True, "key": "user:2", "deleted": False},
    } == result


# ---------------------------------------------------------------- the table


def test_every_action_is_described() -> None:
    """Each action has a sentence for prompts, and required fields come before the others."""
    for kind in all_actions():
        required = [name in kind.schema["required"] for name in kind.schema["properties"]]

        assert kind.description.endswith(".")
        assert sorted(required, reverse=True) == required
