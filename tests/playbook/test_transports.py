"""The same conversation in text and by native calls of tools, through both SDKs: one stream of actions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.llm.server import Answer
from tests.llm.wire import call
from tests.playbook.playing import Player, act, ask, done
from tests.playbook.transports import MODELS, WAYS, story, talk

PROVIDERS = pytest.mark.parametrize("provider", list(MODELS))
TEAM = """
role Worker { can execute, can delegate }
skill Weather {
  affordance "Weather of cities"
  export async function forecast(city: string): Promise<any> { return { city, degrees: 7 } }
  export async function storm() { await new Promise(done => setTimeout(done, 200)); throw new Error("wet") }
}
agent Helper : Worker { on greet(args: { name: string }) { return { text: `Hi ${args.name}` } } }
team Two { helper = Helper lead = Main }
agent Main : Worker {
  uses team Two
  uses skill Weather
  on go(args) { playbook "Greet {{args.name}} and tell the weather." }
}
"""
FORECAST = act("call_skill", skill="Weather", function="forecast", input={"city": "Rome"})
GREET = ask("helper::greet", {"name": "Ada"})
WARM = {"batch": [{**FORECAST, "id": "w"}, act("print", message="It has ${w.output.degrees} degrees.")]}
TURNS = [[FORECAST, GREET], [act("print", message="Hi Ada"), WARM], [done(ok=True)]]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_one_conversation_is_the_same_whichever_way_it_comes(play: Player, way: tuple[str, str]) -> None:
    """The same actions begin and end in the same order, with the same fields and results."""
    played, *_ = talk(play, TEAM, TURNS, way, played={"payload": {"name": "Ada"}})
    expected, *_ = talk(play, TEAM, TURNS, ("openai", "text"), played={"payload": {"name": "Ada"}})

    assert ({"ok": True}, ("Hi Ada", "It has 7 degrees.")) == (played.result, played.printed)
    assert story(expected.events) == story(played.events)


@PROVIDERS
def test_results_go_back_to_their_calls(play: Player, provider: str) -> None:
    """With ids that fit, an error where one failed, and a word on what was not carried out."""
    turns = [Answer(calls=(call("Weather__forecast", city="Rome"), call("Weather__storm"), call("print", message="x")))]
    played, asked, _ = talk(play, TEAM, [*turns, [done(ok=True)]], (provider, "tools"))
    calls, results = exchange_of(provider, asked[1].body)

    assert (None, ()) == (played.error, played.printed)
    assert ["Weather__forecast", "Weather__storm", "print"] == [name for _, name in calls]
    assert [id for id, _ in calls] == [id for id, _, _ in results]
    assert '✅ call_skill -> {"city":"Rome","degrees":7}' == results[0][1]
    assert results[1][1].startswith("❌ call_skill failed")
    assert "Not carried out, since one before it failed or ended the playbook." == results[2][1]
    assert provider != "anthropic" or [False, True, True] == [failed for _, _, failed in results]


BROKEN = {
    "of another language": ("{'a': 1}", {}),
    "half of a key": ('{"message":"b" "c"}', {}),
}


@PROVIDERS
@pytest.mark.parametrize("name", BROKEN)
def test_the_result_of_a_call_that_cannot_be_read_says_why(play: Player, provider: str, name: str) -> None:
    """Nothing is told beside it, and the call goes back with arguments that are JSON."""
    arguments, expected = BROKEN[name]
    turns = [Answer(calls=(call("print", message="a"), ("print", (arguments,))))]
    played, asked, _ = talk(play, TEAM, [*turns, [done(ok=True)]], (provider, "tools"))
    _, results = exchange_of(provider, asked[1].body)

    assert ({"ok": True}, ("a",)) == (played.result, played.printed)
    assert [{"message": "a"}, expected] == arguments_in(provider, asked[1].body)
    assert "✅ print" == results[0][1]
    assert results[1][1].startswith("❌ The rest of your answer was not carried out: ")
    assert 1 == asked[1].sent.decode().count("The rest of your answer")
    assert provider != "anthropic" or [False, True] == [failed for _, _, failed in results]


@PROVIDERS
def test_the_result_of_half_a_plan_says_what_was_done(play: Player, provider: str) -> None:
    """And why the rest of it could not be read."""
    plan = '{"actions":[{"intent":"print","message":"a"},{"intent":"print",\'b\':1}]}'
    played, asked, _ = talk(play, TEAM, [Answer(calls=(("plan", (plan,)),)), [done(ok=True)]], (provider, "tools"))
    _, [(_, result, _)] = exchange_of(provider, asked[1].body)

    assert ("a",) == played.printed
    assert ["✅ print", "❌ The rest of your answer"] == [line[:25].strip() for line in result.splitlines()]


@PROVIDERS
def test_repaired_calls_go_back_as_they_were_understood(play: Player, provider: str) -> None:
    """With what they were carried out with; those that need no repair keep every character."""
    calls = ("print", ('{"message":"hal",}',)), ("print", ('{"message":"a\tb"}',)), call("print", message="c")
    played, asked, _ = talk(play, TEAM, [Answer(calls=calls), [done(ok=True)]], (provider, "tools"))

    assert ("hal", "a\tb", "c") == played.printed
    assert [{"message": said} for said in played.printed] == arguments_in(provider, asked[1].body)


@PROVIDERS
def test_a_tool_stands_for_each_action_that_the_prompt_would_show(play: Player, provider: str) -> None:
    """Its lists are not told as text, and the playbook is told last."""
    _, asked, _ = talk(play, TEAM, [[done()]], (provider, "tools"))
    body = asked[0].body
    system = body["system"][0]["text"] if provider == "anthropic" else _conversation(body)[0]["content"]
    names = [tool["function"]["name"] if provider == "openai" else tool["name"] for tool in body["tools"]]

    assert {"print", "return", "helper__greet", "Weather__forecast", "plan"} <= set(names)
    assert names == list(dict.fromkeys(names))
    assert all((tool.get("function") or tool)["description"] for tool in body["tools"])
    assert {"call_skill", "if", "while", "repeat"}.isdisjoint(names)
    assert '## Playbook\\nGreet ⟨args.name⟩ and tell the weather."' in json.dumps(body, ensure_ascii=False)
    assert "## Actions" not in system


@PROVIDERS
def test_what_is_said_beside_calls_is_a_thought(play: Player, provider: str) -> None:
    """It is no action, even if it looks like one, and is shown as what the model thinks."""
    said = '{"intent":"print","message":"from a comment"}'
    turns = [Answer(pieces=(said,), calls=(call("print", message="from a call"), call("return", data={})))]
    played, _, thoughts = talk(play, TEAM, turns, (provider, "tools"))

    assert (("from a call",), [said]) == (played.printed, thoughts)


@PROVIDERS
def test_what_is_said_beside_calls_goes_back(play: Player, provider: str) -> None:
    """The model sees its own words before the calls that they belong to."""
    turns = [Answer(pieces=("Let me ", "look.\n"), calls=(call("print", message="a"),)), [done(ok=True)]]
    _, asked, _ = talk(play, TEAM, turns, (provider, "tools"))
    (said,) = [each for each in _conversation(asked[1].body) if "Let me look." in json.dumps(each)]

    assert "assistant" == said["role"]
    assert "Let me look." == (said["content"][0]["text"] if provider == "anthropic" else said["content"])


@PROVIDERS
def test_actions_as_text_are_read_where_no_tool_is_called(play: Player, provider: str) -> None:
    """Some models write what they were to call."""
    turns = [Answer(pieces=('{"intent":"print","message":"a"}', '{"intent":"return"}'))]
    played, *_ = talk(play, TEAM, turns, (provider, "tools"))

    assert (("a",), None) == (played.printed, played.error)


@PROVIDERS
def test_calls_are_read_where_no_tool_was_offered(play: Player, provider: str) -> None:
    """Newer models call what they were only told of."""
    turns = [Answer(calls=(call("print", message="a"), call("return", data={"n": 1})))]
    played, asked, _ = talk(play, TEAM, turns, (provider, "text"))

    assert (("a",), {"n": 1}) == (played.printed, played.result)
    assert "tools" not in asked[0].body


def test_thoughts_go_back_with_the_calls_that_followed_them(play: Player) -> None:
    """Encrypted and in their place, as long as the conversation lasts."""
    turns = [
        Answer(thoughts=("Hm.",), signature="first", calls=(call("print", message="a"),)),
        Answer(thoughts=("So.",), signature="second", calls=(call("print", message="b"),)),
        [done(ok=True)],
        [done(ok=True)],
    ]
    calls = [("Main.go", {})] * 2
    _, asked, thoughts = talk(play, TEAM, turns, ("responses", "tools"), calls=calls)
    told = [[item["encrypted_content"] for item in _of_type(each.body["input"], "reasoning")] for each in asked]
    kinds = [item.get("type") for item in asked[2].body["input"] if "role" not in item]

    assert ["Hm.", "So."] == thoughts
    assert [[], ["first"], ["first", "second"], ["first", "second"]] == told
    assert ["reasoning", "function_call", "function_call_output"] * 2 == kinds


@PROVIDERS
def test_every_role_may_plan(play: Player, provider: str) -> None:
    """What happens at the same time, and references, need no permission; loops and branches do, and are not told of."""
    source = 'role Thinker { can think }\nagent Main : Thinker { on go(args) { playbook "Think." } }\n'
    plan = call("plan", actions=[act("call_llm", id="a", data="d", instruction="i"), done(n="${a.output.result}")])
    played, asked, _ = talk(play, source, [Answer(calls=(plan,)), "words"], (provider, "tools"))
    (told,) = [tool for tool in map(json.dumps, asked[0].body["tools"]) if '"name": "plan"' in tool]

    assert ({"n": "words"}, None) == (played.result, played.error)
    assert ("parallel" in told, "repeat" in told) == (True, False)


def exchange_of(provider: str, body: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str, bool]]]:
    """The calls in a request by id and name, and their results by id, text and whether it is an error."""
    if provider == "openai":
        calls = [(each["id"], each["function"]["name"]) for each in body["messages"][2]["tool_calls"]]
        told = [each for each in body["messages"] if each["role"] == "tool"]
        return calls, [(each["tool_call_id"], each["content"], False) for each in told]
    if provider == "responses":
        calls = [(each["call_id"], each["name"]) for each in _of_type(body["input"], "function_call")]
        told = _of_type(body["input"], "function_call_output")
        return calls, [(each["call_id"], each["output"], False) for each in told]
    calls = [(each["id"], each["name"]) for each in body["messages"][1]["content"]]
    told = [each for each in body["messages"][2]["content"] if each["type"] == "tool_result"]
    return calls, [(each["tool_use_id"], each["content"], each.get("is_error", False)) for each in told]


def arguments_in(provider: str, body: Any) -> list[Any]:
    """The arguments of the calls in a request."""
    if provider == "openai":
        return [json.loads(each["function"]["arguments"]) for each in body["messages"][2]["tool_calls"]]
    if provider == "responses":
        return [json.loads(each["arguments"]) for each in _of_type(body["input"], "function_call")]
    return [each["input"] for each in body["messages"][1]["content"]]


GREETER = """
role Talker { can think }
agent Main : Talker { on go(args) { playbook \"\"\"Greet {{args.name}}, then return { "ok": true }.\"\"\" } }
"""


@PROVIDERS
def test_a_closed_agent_is_held_to_a_schema(play: Player, provider: str) -> None:
    """What its role does not permit has no branch; nulls stand for what is left out."""
    rest = {"id": "", "condition": ""}
    turns = [[act("print", message="Hi", **rest), {"intent": "return", "data": {"ok": True}, **rest}]]
    played, asked, _ = talk(play, GREETER, turns, (provider, "schema"))
    body = asked[0].body
    form = {
        "openai": lambda: body["response_format"]["json_schema"],
        "responses": lambda: body["text"]["format"],
        "anthropic": lambda: body["output_config"]["format"],
    }
    branches = form[provider]()["schema"]["$defs"]["action"]["anyOf"]

    assert ({"ok": True}, ("Hi",)) == (played.result, played.printed)
    assert "tools" not in body
    intents = {branch["properties"]["intent"]["enum"][0] for branch in branches if "intent" in branch["properties"]}
    assert {"print", "return", "call_llm", "prompt_user"} == intents


LEADER = """
role Leader { can delegate }
agent Helper : Leader { on greet(args: { name: string }) { return { text: `Hi ${args.name}` } } }
team Two { helper = Helper lead = Main }
agent Main : Leader { uses team Two on go(args) { playbook "Have Ada greeted. Return { text: <text> }" } }
"""


@PROVIDERS
def test_who_delegates_may_be_held_to_a_schema(play: Player, provider: str) -> None:
    """Where members say what they take, and the result has its types; the system text teaches the same brackets."""
    lines: list[str] = []
    rest = {"id": "", "condition": ""}
    turns = [[{**ask("helper::greet", {"name": "Ada"}), **rest}], [{**done(text="Hi Ada"), **rest}]]
    played, asked, _ = talk(play, LEADER, turns, (provider, "schema"), notes=lines)
    sent = json.dumps(asked[0].body)

    assert ({"text": "Hi Ada"}, []) == (played.result, lines)
    assert '"enum": ["helper::greet"]' in sent
    assert '"required": ["batch"]' in sent
    assert '{\\"batch\\":[' in sent


@PROVIDERS
def test_an_open_agent_is_asked_in_text(play: Player, provider: str) -> None:
    """A grammar of what is open would shut out what may be said; a line says so once."""
    lines: list[str] = []
    turns = [[act("print", message="a")], [done(ok=True)]]
    played, asked, _ = talk(play, TEAM, turns, (provider, "schema"), notes=lines)

    assert ({"ok": True}, ("a",)) == (played.result, played.printed)
    assert all("schema" not in str([each.body.get("response_format"), each.body.get("text")]) for each in asked)
    assert [f"`{asked[0].body['model']}` is not held to a schema of its actions, since"] == [
        line.partition(" `return`")[0] for line in lines
    ]


def _conversation(body: Any) -> Any:
    return body["messages"] if "messages" in body else body["input"]


def _of_type(items: Any, kind: str) -> list[Any]:
    return [each for each in items if each.get("type") == kind]
