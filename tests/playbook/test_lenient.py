"""What models write otherwise than they are told to: read where one thing can be meant, refused where two can."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from koi_lang.runtime.playbook import action_layers
from koi_lang.runtime.playbook.json_repair import loads
from tests.journal.again import Recorder
from tests.playbook.playing import Played, Player, act, ask, done
from tests.running import RecordingHost

PROGRAM = """
role Worker { can execute, can delegate }
skill Weather {
  affordance "Weather of cities"
  export async function forecast(city: string, days: number = 1): Promise<any> { return `${city} ${days}` }
  export async function plain(input: string): Promise<any> { return input }
  export async function price(net: number, currency: string = "eur", sure: boolean = false): Promise<any> {
    return `${net + 1} ${currency} ${sure}`
  }
  export async function open(a: number | null, b: any = 1): Promise<any> { return JSON.stringify([a, b]) }
}
agent Helper : Worker {
  on greet(args: { name: string }) { return `Hi ${args.name}` }
  on store(args: { input: any }) { return `stored ${JSON.stringify(args.input)}` }
  on order(args: { text: string, n?: number, to?: { zip?: string, no: number }, all?: number[] }) {
    return JSON.stringify(args)
  }
  on keep(args: { n?: number | null, name: string | null }) { return JSON.stringify(args) }
  on free(args) { return `free ${JSON.stringify(args)}` }
}
team Two { helper = Helper lead = Main }
agent Main : Worker {
  uses team Two
  uses skill Weather
  state { count = 0, title = "" }
  on go(args) { playbook \"\"\"Work, then return { "ok": true }.\"\"\" }
}
"""
PRINTED, SPELT = ("a",), {"name": "Ada"}
SKILL = {"skill": "Weather", "function": "forecast"}
TWO = [act("print", message="a")] * 2

PRICE = {"intent": "call_skill", "skill": "Weather", "function": "price"}
ORDER = {"actionType": "delegate", "intent": "helper::order"}

# A slip, what comes of it (what is printed, or the result of the action), and how it was read.
SLIPS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "content": ({"intent": "print", "content": "a"}, PRINTED, "`content` as `message`"),
    "value": ({"intent": "print", "value": "a"}, PRINTED, "`value` as `message`"),
    "output": ({"intent": "print", "output": "a"}, PRINTED, "`output` as `message`"),
    "args of print": ({"intent": "print", "args": {"message": "a"}}, PRINTED, "`args` as the fields of the action"),
    "input of print": ({"intent": "print", "input": {"message": "a"}}, PRINTED, "`input` as the fields of the action"),
    "params of print": (
        {"intent": "print", "params": '{"message":"a"}'},
        PRINTED,
        "`params` as the fields of the action",
    ),
    "message asked": ({"intent": "prompt_user", "message": "Q"}, {"answer": "yes"}, "`message` as `question`"),
    "choices": (
        {"intent": "prompt_user", "question": "Q", "choices": ["yes", "no"]},
        {"answer": "yes"},
        "`choices` as `options`",
    ),
    "options as JSON": (
        {"intent": "prompt_user", "question": "Q", "options": '["yes","no"]'},
        {"answer": "yes"},
        """`options` '["yes","no"]' as [ 'yes', 'no' ]""",
    ),
    "times": ({"intent": "repeat", "times": 1, "actions": TWO[:1]}, PRINTED, "`times` as `count`"),
    "n": ({"intent": "repeat", "n": 1, "actions": TWO[:1]}, PRINTED, "`n` as `count`"),
    "count as text": ({"intent": "repeat", "count": "1", "actions": TWO[:1]}, PRINTED, "`count` '1' as 1"),
    "actions as JSON": (
        {"intent": "repeat", "count": 1, "actions": json.dumps(TWO[:1])},
        PRINTED,
        "`actions` '[{",
    ),
    "steps": ({"intent": "repeat", "count": 1, "steps": TWO[:1]}, PRINTED, "`steps` as `actions`"),
    "do": ({"intent": "if", "condition": "1 > 0", "do": TWO[:1]}, PRINTED, "`do` as `then`"),
    "null rounds": (
        {"intent": "while", "condition": "1 > 2", "actions": TWO[:1], "max_iterations": None},
        PRINTED,
        "`max_iterations` without its null",
    ),
    "updates at the top": (
        {"intent": "update_state", "count": 3, "title": "T"},
        {"state_updated": True, "state": {"count": 3, "title": "T"}},
        "`count`, `title` as fields of `updates`",
    ),
    "updates in data": (
        {"intent": "update_state", "values": {"count": 3}},
        {"state_updated": True, "state": {"count": 3, "title": ""}},
        "`values` as `updates`",
    ),
    "updates as JSON": (
        {"intent": "update_state", "updates": '{"count": 3}'},
        {"state_updated": True, "state": {"count": 3, "title": ""}},
        """`updates` '{"count": 3}' as { count: 3 }""",
    ),
    "args of a skill": ({"intent": "call_skill", **SKILL, "args": {"city": "Rome"}}, "Rome 1", "`args` as `input`"),
    "parameters of a skill": (
        {"intent": "call_skill", **SKILL, "parameters": {"city": "Rome"}},
        "Rome 1",
        "`parameters` as `input`",
    ),
    "name of a skill": (
        {"intent": "call_skill", "name": "Weather", "function": "forecast", "input": {"city": "Rome"}},
        "Rome 1",
        "`name` as `skill`",
    ),
    "a function": ({"intent": "Weather.forecast", "city": "Rome"}, "Rome 1", "`Weather.forecast` as `call_skill`"),
    "a function with data": (
        {"intent": "Weather.forecast", "data": {"city": "Rome", "days": 2}},
        "Rome 2",
        "`Weather.forecast` as `call_skill`",
    ),
    "a function with args": (
        {"intent": "Weather.forecast", "args": {"city": "Rome"}},
        "Rome 1",
        "`Weather.forecast` as `call_skill`",
    ),
    "a function with input": ({"intent": "Weather.plain", "input": "x"}, "x", "`Weather.plain` as `call_skill`"),
    "a member with args": (
        {"actionType": "delegate", "intent": "helper::greet", "args": SPELT},
        "Hi Ada",
        "`args` as the payload",
    ),
    "a member with payload": (
        {"actionType": "delegate", "intent": "helper::greet", "data": {"payload": SPELT}},
        "Hi Ada",
        "`payload` as the payload",
    ),
    "a member with JSON": (
        {"actionType": "delegate", "intent": "helper::greet", "data": '{"name":"Ada"}'},
        "Hi Ada",
        "a text of JSON as the payload",
    ),
    "null for a parameter": (
        {**PRICE, "input": {"net": 10, "currency": None}},
        "11 eur false",
        "`input.currency` without its null",
    ),
    "null for a parameter of an intent": (
        {"intent": "Weather.price", "net": 10, "currency": None},
        "11 eur false",
        "`input.currency` without its null",
    ),
    "a parameter as text": ({**PRICE, "input": {"net": "2", "sure": "true"}}, "3 eur true", "`input.net` '2' as 2"),
    "the first parameter as text": ({**PRICE, "input": "2.5"}, "3.5 eur false", "`input.net` '2.5' as 2.5"),
    "parameters as JSON": (
        {**PRICE, "input": '{"net":"2","currency":null}'},
        "3 eur false",
        """`input` '{"net":"2","currency":null}' as""",
    ),
    "null in a payload": ({**ORDER, "data": {"text": "a", "n": None}}, '{"text":"a"}', "`data.n` without its null"),
    "null beside the name of a member": (
        {**ORDER, "text": "a", "n": None},
        '{"text":"a"}',
        "`data.n` without its null",
    ),
    "null in a wrapped payload": (
        {**ORDER, "data": {"payload": {"text": "a", "n": None}}},
        '{"text":"a"}',
        "`data.n` without its null",
    ),
    "null for an event alone": (
        {"actionType": "delegate", "intent": "order", "data": {"text": "a", "n": None}},
        '{"text":"a"}',
        "`data.n` without its null",
    ),
    "null within a payload": (
        {**ORDER, "data": {"text": "a", "to": {"zip": None, "no": "7"}}},
        '{"text":"a","to":{"no":7}}',
        "`data.to.no` '7' as 7",
    ),
    "a payload with texts": (
        {**ORDER, "data": {"text": "a", "n": "10", "all": ["1", 2]}},
        '{"text":"a","n":10,"all":[1,2]}',
        "`data.all[0]` '1' as 1",
    ),
    "a payload with JSON": (
        {**ORDER, "data": {"text": "a", "all": "[1]"}},
        '{"text":"a","all":[1]}',
        "`data.all` '[1]' as [ 1 ]",
    ),
    "a result in args": ({"intent": "return", "args": {"ok": True}}, {"ok": True}, "`args` as `data`"),
    "a result in payload": ({"intent": "return", "payload": {"ok": True}}, {"ok": True}, "`payload` as `data`"),
}


def carried_out(play: Player, slip: dict[str, Any]) -> Played:
    """What an action does, and the end of its playbook."""
    return play(PROGRAM, [slip, done()], host=RecordingHost(answers=["yes"]), detailed=True)


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_with_one_meaning_is_read(play: Player, name: str) -> None:
    """It costs no further request, and the journal says how it was read."""
    slip, expected, note = SLIPS[name]
    played = carried_out(play, slip)
    (begun, *_) = [event.fields for event in played.events if event.type == "action_started"]
    ended = [event.fields.get("result") for event in played.events if event.type == "action_ended"]

    assert (None, 1 + (slip["intent"] != "return")) == (played.error, len(played.requests)), played.feedback
    assert expected in (played.printed, *ended)
    assert any(line.startswith(note) for line in begun["read_as"]), begun


@pytest.mark.parametrize("name", ["functions.print", "print:0", "print<|channel|>commentary", "functions.forecast"])
def test_words_of_a_template_are_left_out_of_intents(play: Player, name: str) -> None:
    """Models that were trained to call tools by such names write them in plans, too."""
    played = play(PROGRAM, [{"batch": [act(name, message="a")]}, done()])

    assert name.startswith("functions.f") or (PRINTED, 1) == (played.printed, played.feedback[1].count("✅ print"))
    assert ("known actions are" in played.feedback[1]) == (name == "functions.forecast")


def test_what_fits_is_left_as_it_is(play: Player) -> None:
    """Nothing is noted, and nothing changes, where an action is as it should be, or means what it says."""
    for action in (
        act("print", message={"value": "a", "args": {"message": "b"}}),
        ask("helper::store", {"input": {"args": 1}}),
        ask("helper::free", {"args": {"name": "Ada"}}),
        act("call_skill", skill="Weather", function="plain", input={"input": "x"}),
        act("update_state", updates={"count": "3", "args": None}),
        act("call_skill", skill="Weather", function="open", input={"a": None, "b": None}),
        act("call_skill", skill="Weather", function="plain", input={"input": "2"}),
        act("call_skill", skill="Weather", function="plain", input='{"a":"2"}'),
        ask("helper::keep", {"n": None, "name": None}),
        ask("helper::order", {"text": "2", "to": {"no": 1, "more": None}}),
        ask("helper::free", {"n": None}),
        act("return", data={"args": {"other": True}}),
        act("return", data='{"ok":true}'),
        act("return", total=3, input={"a": 1}),
    ):
        played = carried_out(play, action)
        begun = [event.fields for event in played.events if event.type == "action_started"]

        assert None is played.error
        assert "read_as" not in begun[0], begun[0]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "null that is needed": (act("prompt_user", question=None), "`question` must be a text, not null"),
    "a number too large": (act("repeat", count="1e400", actions=TWO), "`count` must be a whole number"),
    "hexadecimal": (act("repeat", count="0x10", actions=TWO), "`count` must be a whole number"),
    "blanks": (act("repeat", count=" 2 ", actions=TWO), "`count` must be a whole number"),
    "NaN": (act("repeat", count="NaN", actions=TWO), "`count` must be a whole number"),
    "digits without end": (act("repeat", count="9" * 100_000, actions=TWO), "`count` must be a whole number"),
    "other digits": (act("repeat", count="\u0663", actions=TWO), "`count` must be a whole number"),
    "yes": (act("shell", command="echo a", description="d", background="yes"), "`background` must be true or false"),
    "a text for a list": (act("repeat", count=1, actions="print a"), "`actions` must be a list"),
    "an object for a list": (act("repeat", count=1, actions='{"intent":"print"}'), "`actions` must be a list"),
    "JSON without end": (act("update_state", updates='{"a":' * 10), "`updates` must be an object"),
    "deep JSON": (act("update_state", updates='{"a":' * 100_000 + "1" + "}" * 100_000), "`updates` must be an object"),
    "large JSON": (act("update_state", updates='{"a":"' + "x" * 3_000_000 + '"}'), "`updates` must be an object"),
    "null for a parameter that is needed": (
        {**PRICE, "input": {"net": None, "currency": None}},
        "called: `net` must be a number, not null",
    ),
    "no number for a parameter": ({**PRICE, "input": {"net": "2 or 3"}}, "`net` must be a number"),
    "an object for a parameter": ({**PRICE, "input": {"net": {"a": "2"}}}, "`net` must be a number"),
    "null for all that a member is given": (ask("helper::order", None), "`text` is missing"),
    "null that a payload needs": (ask("helper::order", {"text": None, "n": None}), "`text` must be a text, not null"),
    "null needed within": (ask("helper::order", {"text": "a", "to": {"no": None}}), "`to.no` must be a number"),
    "null in a list": (ask("helper::order", {"text": "a", "all": [None]}), "`all[0]` must be a number, not null"),
    "two wrappers": ({"intent": "print", "args": {"message": "a"}, "params": {"message": "b"}}, "`message` is missing"),
    "no function of it": ({"intent": "Weather.rain", "city": "Rome"}, "`Weather.rain`"),
    "a skill it has not": ({"intent": "Other.forecast", "city": "Rome"}, "`Other.forecast`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mean_two_things_is_refused(play: Player, name: str) -> None:
    """The model hears what is wrong; nothing is guessed, and nothing takes long."""
    action, problem = REFUSED[name]
    played = carried_out(play, action)

    assert ((), 2) == (played.printed, len(played.requests))
    assert problem in played.feedback[1]


NARROW = """
role Talker { can think }
skill Weather { affordance "w" export async function forecast(city: string): Promise<any> { return city } }
agent Main : Talker { state { count = 0 } on go(args) { playbook "Work." } }
"""


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ({"intent": "update_state", "count": 3}, "needs the permission `execute`"),
        ({"intent": "repeat", "times": "2", "steps": TWO}, "needs the permission `execute`"),
        ({"intent": "shell", "cmd": "echo a", "reason": "r"}, "needs the permission `execute`"),
        ({"intent": "Weather.forecast", "city": "Rome"}, "there is no action `Weather.forecast`"),
        ({"intent": "registry.get", "name": "k"}, "there is no action `registry.get`"),
        ({"intent": "files.read", "path": "x"}, "there is no action `files.read`"),
    ],
    ids=str,
)
def test_no_reading_widens_what_a_role_allows(play: Player, action: dict[str, Any], problem: str) -> None:
    """Whatever an action is read as, the role is asked; skills that an agent does not use are not found."""
    played = play(NARROW, [action, done()], detailed=True)

    assert problem in played.feedback[1]
    assert {"count": 0} == played.state("Main")


def test_an_unknown_intent_suggests_all_that_could_be_meant(play: Player) -> None:
    """Actions, and functions of skills."""
    for intent, meant in (
        ("prnt", "print"),
        ("Weather.forecst", "Weather.forecast"),
    ):
        played = play(PROGRAM, [{"intent": intent}, done()])

        assert f"did you mean `{meant}`?" in played.feedback[1], played.feedback[1]


@pytest.mark.parametrize("intent", ["formt", "prompt_frm", "call_skll", "ask_parnt", "zzz"])
def test_an_unknown_intent_suggests_nothing_that_was_not_offered(play: Player, intent: str) -> None:
    """Actions for older programs, and those of no use to the agent, stay out."""
    told = play(NARROW.replace("can think", "can think, can execute"), [{"intent": intent}, done()]).feedback[1]

    assert f"there is no action `{intent}`" in told
    assert [name for name in ("`format`", "`prompt_form`", "`call_skill`", "`ask_parent`") if name in told] == []


def test_of_many_values_a_few_are_noted(play: Player) -> None:
    """A journal does not grow with each value of a long list."""
    played = carried_out(play, {**ORDER, "data": {"text": "a", "all": ["1"] * 10_000}})
    (begun, *_) = [event.fields for event in played.events if event.type == "action_started"]

    assert (21, "9,980 more likewise") == (len(begun["read_as"]), begun["read_as"][-1])


@pytest.mark.parametrize(
    "code",
    [
        'this.callAction("call_skill", { skill: "Weather", function: "price", input: { net: 1, currency: null } })',
        'Helper.handle("order", args)',
    ],
)
def test_code_that_calls_is_told_what_is_wrong(play: Player, code: str) -> None:
    """Only what models write is read otherwise than it stands there."""
    head, _, tail = PROGRAM.partition('playbook """')
    rest = tail.partition('"""')[2]
    played = play(f"{head} return await {code} {rest}", [], payload={"text": "a", "n": None})

    assert "not null" in played.told, (played.told, played.result)


def test_lists_of_actions_keep_their_references_until_they_are_carried_out(play: Player) -> None:
    """Also under another name, and in an object of their own."""
    inner = [act("registry_set", key="k", value="${iteration}"), act("registry_get", key="k", id="x")]
    inner.append(act("print", message="${x.output.value}"))
    role = "role Worker { can execute, can registry:read, can registry:write }"
    source = role + ' agent Main : Worker { on go(args) { playbook "Work." } }'
    for loop in ({"times": 2, "steps": inner}, {"args": {"count": 2, "actions": inner}}):
        played = play(source, [{"intent": "repeat", **loop}, done()])

        assert ("1", "2") == played.printed, played.feedback


@pytest.mark.parametrize(
    "updates",
    ['{"n":' + "[" * 300 + "]" * 300 + "}", '{"n": NaN}', '{"n": 1e400}', '{"n": -Infinity}'],
    ids=["deep", "NaN", "too large", "infinite"],
)
def test_json_in_a_text_is_what_an_answer_may_hold(play: Player, updates: str) -> None:
    """Numbers that are none, and more levels than an answer may have, are refused, and the playbook goes on."""
    played = carried_out(play, act("update_state", updates=updates))

    assert (None, 2) == (played.error, len(played.requests))
    assert "`updates` must be an object" in played.feedback[1]
    assert {"count": 0, "title": ""} == played.state("Main")


def test_words_beside_updates_are_not_kept(play: Player) -> None:
    """Fields at the top are updates where all of them are fields of the state."""
    played = carried_out(play, {"intent": "update_state", "count": 1, "reasoning": "because"})

    assert "`updates` is missing" in played.feedback[1]
    assert {"count": 0, "title": ""} == played.state("Main")


def test_a_run_that_goes_on_takes_what_it_took_as_written(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was refused before is refused again: the model had written it anew, and that was carried out."""
    slip = {"intent": "repeat", "times": 1, "actions": TWO[:1]}
    mended = {"intent": "repeat", "count": 1, "actions": TWO[:1]}
    recorder = Recorder(play, PROGRAM, [slip, {"intent": "Weather.forecast", "city": "Rome"}, mended, done(ok=True)])
    with monkeypatch.context() as patch:
        patch.setattr(action_layers, "_read_names", lambda running: None)
        patch.setattr(action_layers.PlaybookAction, "_read_values", lambda running, filled: None)
        whole = recorder.run()
    again = [recorder.again(whole.entries[:end]) for end in range(len(whole.entries) - 3, len(whole.entries))]

    assert ["a"] == list(whole.printed)
    assert [{"ok": True}] * 3 == [each.played.result for each in again]
    assert all(list(each.played.printed) in ([], ["a"]) for each in again)


def test_a_text_without_an_end_is_looked_at_once() -> None:
    """In whatever a model writes as arguments: quotes that do not end cost time in proportion to their number."""
    begun = time.process_time()
    with pytest.raises(ValueError, match="broken"):
        loads('{"a":"' + '\\"' * 200_000)

    assert time.process_time() - begun < 2


def test_of_two_names_for_one_field_the_first_counts(play: Player) -> None:
    """In the order in which the model wrote them, so that a run that goes on reads the same."""
    for first, second in (("content", "value"), ("value", "content"), ("output", "msg"), ("msg", "output")):
        assert ("a",) == carried_out(play, {"intent": "print", first: "a", second: "b"}).printed
