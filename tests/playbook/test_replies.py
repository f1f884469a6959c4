"""Answers of models to actions, however they are written and cut into pieces."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.runtime.playbook.action_parsing import Action, ReplyError, as_steps
from koi_lang.runtime.playbook.reply_parser import ReplyReader, read_reply
from koi_lang.runtime.playbook.result_keys import Shapes, result_schema, shapes_of
from koi_lang.system.interpolation import Interpolation, Rendered

A, B, C = ({"intent": name} for name in "abc")
LATE = "`intent` must come before the list of actions in the same object"
QUOTES = "the JSON is broken near \"{'intent':'a'}\": expecting property name enclosed in double quotes"
HALVES = '{"intent":"print","message":"\\ud800 and \\ud83d\\ude00"}'


def read(text: str, results: Shapes = ()) -> list[Any]:
    """The actions of an answer in a short form: intents, members of a group together in a set."""
    shown: list[Any] = []
    last = 0
    for action in read_reply(text, results):
        if action.group and action.group == last:
            shown[-1].add(action.intent)
        else:
            shown.append({action.intent} if action.group else action.intent)
        last = action.group
    return shown


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"intent":"a"}', ["a"]),
        ('```json\n{"intent":"a"}\n```', ["a"]),
        ('Sure: {"intent":"a"}', ["a"]),
        ('Sure:\n```json\n[{"intent":"a"},{"intent":"b"}]\n```', ["a", "b"]),
        ('{"intent":"a"}\n{"intent":"b"}', ["a", "b"]),
        ('{"intent":"a"}{"intent":"b"}', ["a", "b"]),
        ('{"intent":"a"} done', ["a"]),
        ('It\'s "so" [1] and {so}, see [x, y]: {"intent":"a"}', ["a"]),
        ('{"intent":"a"},\n{"intent":"b"},', ["a", "b"]),
        ('[{"intent":"a"},{"intent":"b"}]', ["a", "b"]),
        ('{"intent":"a",}', ["a"]),
        ('{"batch":[{"intent":"a"},{"intent":"b"},]}', ["a", "b"]),
        ('{"batch":{"intent":"a"}}', ["a"]),
        ('{"batch":{"parallel":[{"intent":"a"},{"intent":"b"}]}}', [{"a", "b"}]),
        ('{"actions":[{"intent":"a"}]}', ["a"]),
        ('{"thought":"x","actions":[{"intent":"a"}],"more":{"batch":[1]}}', ["a"]),
        ('{"parallel":[{"intent":"a"},{"intent":"b"}]}', [{"a", "b"}]),
        ('{"batch":[{"intent":"a"},{"parallel":[{"intent":"b"},{"intent":"c"}]}]}', ["a", {"b", "c"}]),
        ('{"batch":[{"parallel":[{"intent":"b"},{"intent":"c"}]},{"intent":"d"}]}', [{"b", "c"}, "d"]),
        ('{"batch":[{"parallel":[{"intent":"a"}]},{"parallel":[{"intent":"b"}]}]}', [{"a"}, {"b"}]),
        ('{"parallel":[{"parallel":[{"intent":"a"},{"intent":"b"}]},{"intent":"c"}]}', [{"a", "b", "c"}]),
        ('{"actionType":"print","message":"x"}', ["print"]),
        ('{"type":"print","message":"x"}', ["print"]),
        ('{"actionType":"direct","description":"a"}', ["a"]),
        ('{"intent":" print ","message":"x"}', ["print"]),
        ('{"intent":"repeat","count":2,"actions":[{"intent":"a"}]}', ["repeat"]),
        ('{"intent":"if","then":[{"batch":[]}],"else":[]}', ["if"]),
    ],
)  # fmt: skip
def test_an_answer_is_read(answer: str, expected: list[Any]) -> None:
    """Fences, prose, lists, wrappers, commas too many and older spellings do not matter."""
    assert expected == read(answer)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "the answer is empty"),
        ("I am done.", "the answer holds no action: 'I am done.'"),
        ("[]", "the answer holds no action: '[]'"),
        ("[", "the answer holds no action: '['"),
        ('{"total":3}', "an action names its `intent`; this object has `total` instead"),
        ('{"error":"no"}', "an action names its `intent`; this object has `error` instead"),
        ('{"thought":"hm","plan":[]}', "an action names its `intent`; this object has `thought`, `plan` instead"),
        ("{}", "the object is empty; name an `intent`"),
        ('{"batch":[]}', "the list of actions is empty; give at least one action"),
        ('{"actions":[]}', "the list of actions is empty; give at least one action"),
        ('{"batch":"print"}', '`batch` must be a list of actions, not "print"'),
        ('{"parallel":5}', "`parallel` must be a list of actions, not 5"),
        ('{"batch":["print"]}', "an action is a JSON object, not a text"),
        ('{"batch":[{"intent":"a"},"b"]}', "an action is a JSON object, not a text"),
        ('{"batch":[5,{"intent":"a"}]}', "item 1 of the list is no action; an action is a JSON object"),
        ('{"batch":[[{"intent":"a"}]]}', "an action is a JSON object, not a list"),
        ('{"batch":[{"total":3}]}', "an action names its `intent`; this object has `total` instead"),
        ('{"parallel":[{"batch":[{"intent":"a"}]}]}', "`parallel` holds single actions, not a `batch`"),
        ('{"actions":[{"intent":"a"}],"intent":"repeat"}', LATE),
        ('{"intent":"batch","batch":[]}', '`batch` is no action; answer with {"batch": [action, action]}'),
        ('{"action":"print","message":"x"}', "an action names its `intent`; this object has `action` instead"),
        ('{"name":"print"}', "an action names its `intent`; this object has `name` instead"),
        ('{"tool_calls":[{"name":"print"}]}', "an action names its `intent`; this object has `name` instead"),
        ('{"tool_calls":[]}', "the list of actions is empty; give at least one action"),
        ('{"intent":5}', "`intent` must be the name of an action, not 5"),
        ('{"intent":""}', '`intent` must be the name of an action, not ""'),
        ('{"intent":null,"message":"x"}', "`intent` must be the name of an action, not null"),
        ('{"actionType":"delegate","data":{}}', "`intent` must be the name of an action, not null"),
        ('{"actionType":["direct"],"intent":"a"}', '`actionType` must be "direct" or "delegate", not ["direct"]'),
        ('{"intent":"a"', "the answer stops in the middle of '{\"intent\":\"a\"'"),
        ('{"intent":"a"]', "brackets do not match near '{\"intent\":\"a\"]'"),
        ("{'intent':'a'}", QUOTES),
        ('{"intent":"a" "b":1}', "the JSON is broken near '{\"intent\":\"a\" \"b\":1}': expecting ',' delimiter"),
        ('{"a":' * 101, "the answer is nested more than 100 levels deep"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_says_why(answer: str, problem: str) -> None:
    """The model is told what was expected and what came; nothing is guessed."""
    with pytest.raises(ReplyError) as error:
        read_reply(answer)

    assert problem == error.value.message


def test_a_number_beyond_reason_is_an_error_of_the_answer() -> None:
    """A whole number of thousands of digits, which Python refuses to read, does not end the run."""
    with pytest.raises(ReplyError, match="holds a value that cannot be read"):
        read_reply(f'{{"intent":"a","n":{"9" * 5000}}}')


def test_half_a_character_is_replaced() -> None:
    """Half of a surrogate pair, which nothing can print, becomes a replacement character; whole pairs stay."""
    assert "\ufffd and 😀" == read_reply(HALVES)[0].data["message"]


# ---------------------------------------------------------------- results

SHAPES = (frozenset({"total", "note"}), frozenset({"name", "input"}))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"total": 3}, {"total": 3}),
        ({"total": 3, "note": None}, {"total": 3, "note": None}),
        ({"name": "Ada", "input": {"x": 1}}, {"name": "Ada", "input": {"x": 1}}),
    ],
)
def test_an_object_with_the_keys_of_the_result_is_the_result(answer: Any, expected: Any) -> None:
    """What the playbook says to return may be written without `return`."""
    assert [Action("return", False, {"data": expected})] == read_reply(json.dumps(answer), SHAPES)


@pytest.mark.parametrize("answer", [{"total": 3, "error": "x"}, {"total": 3, "name": "Ada"}, {"other": 1}])
def test_an_object_with_other_keys_is_none(answer: Any) -> None:
    """All keys have to be those of one kind of result."""
    with pytest.raises(ReplyError, match="an action names its `intent`"):
        read_reply(json.dumps(answer), SHAPES)


def test_a_result_stands_outside_of_lists() -> None:
    """In a list every object is an action; one with an intent is an action wherever it stands."""
    with pytest.raises(ReplyError, match="an action names its `intent`"):
        read_reply('{"batch":[{"total":3}]}', SHAPES)
    assert ["total"] == read('{"intent":"total","note":1}', SHAPES)


@pytest.mark.parametrize(
    ("playbook", "expected"),
    [
        ("Return { greeted: <name> }", [{"greeted"}]),
        ('Return {"a": {"b": [1, {"c": 2}]}, "d e": "x, y: {z}", f}', [{"a", "d e", "f"}]),
        ('When done, return:\n  {\n    "a": 1,\n    "b": "it\'s"\n  }\n{ c: 1 }', [{"a", "b"}]),
        ("return JSON as { text: <what you say, e.g. it's>, n: f(a, b) }", [{"text", "n"}]),
        ("Return `{ a: 'x' }`. Otherwise respond with { error: <why> }.", [{"a"}, {"error"}]),
        ("Devuelve { total }", [{"total"}]),
        ("Return {{args.text}} or ${x} or {}.", []),
        ("Print { a: 1 }. Return the total.", []),
        ("Return the sum. Its form is { a: 1 }", []),
    ],
)
def test_what_a_playbook_says_to_return(playbook: str, expected: list[set[str]]) -> None:
    """The keys of the objects behind `return` and the like, in JSON or as in code."""
    assert expected == list(shapes_of(Rendered((playbook,))))


def test_values_name_no_key_of_a_result() -> None:
    """What came in from outside stands in the playbook, and is not taken for its words."""
    outside = Interpolation("x", 'x", more: 1, y: "')
    playbook = Rendered(('Return { a: "', outside, '" } ', Interpolation("x", "Return { evil: 1 }")))

    assert (frozenset({"a"}),) == shapes_of(playbook)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("<text>", "string"),
        ("<a text>", "string"),
        ("<one sentence>", "string"),
        ("string", "string"),
        ("'a'", "string"),
        ('"for" or "against"', "string"),
        ("<number>", "number"),
        ("number", "number"),
        ("-1.5", "number"),
        ("<integer>", "integer"),
        ("<true or false>", "boolean"),
        ("<boolean>", "boolean"),
        ("true", "boolean"),
        *dict.fromkeys(["<name>", "<number of stars>", "<text> or null", "text", "total"], "").items(),
        *dict.fromkeys(["string[]", "string | null", "number(1)", "trueish", "7days", "<texts>", "[1]"], "").items(),
    ],
)
def test_what_names_a_type_types_a_result(value: str, kind: str) -> None:
    """Only what plainly does, and with nothing behind it: all else may be anything."""
    field = {"type": kind} if kind else {}
    written = Rendered((f"Return {{ a: {value}, b: 1 }}",)), Rendered((f'Answer with {{"b": 1, "a": {value}\n}}',))

    assert [field, field] == [result_schema(each)["properties"]["a"] for each in written]


def test_a_result_that_is_written_in_two_ways_may_be_either() -> None:
    """A number, or a word where there is none."""
    written = Rendered(('Return { n: <number>, a: "x" }. Without one, return { n: "none", a: "y" }.',))

    assert {"n": {}, "a": {"type": "string"}} == result_schema(written)["properties"]


# ---------------------------------------------------------------- calls of tools, as other systems write them

PRINT = Action("print", False, {"message": "hi"})
HI = {"message": "hi"}


@pytest.mark.parametrize("name", ["name", "tool", "tool_name", "function", "action"])
@pytest.mark.parametrize("given", ["arguments", "parameters", "params", "input", "args", "action_input"])
def test_a_call_of_a_tool_is_an_action(name: str, given: str) -> None:
    """Whatever name and arguments are called; arguments may be a text that holds JSON."""
    assert [PRINT] == read_reply(json.dumps({name: "print", given: HI}))
    assert [PRINT] == read_reply(json.dumps({given: json.dumps(HI), name: " print "}))


CALL = {"name": "print", "arguments": '{"message": "hi"}'}


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"type": "function", "function": CALL}),
        json.dumps({"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": CALL}]}),
        json.dumps({"tool_calls": CALL}),
        json.dumps({"function_call": CALL}),
        json.dumps({"type": "function_call", **CALL}),
        json.dumps({"type": "tool_use", "name": "print", "input": HI}),
        json.dumps([CALL]),
        json.dumps({"batch": [CALL]}),
        json.dumps({"batch": [{"tool_calls": [CALL]}]}),
        f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>",
        f"<tool_calls>[{json.dumps(CALL)}]</tool_calls>",
        f"I will print it.\n<tool_call>{json.dumps(CALL)}</tool_call>",
        f"[TOOL_CALLS][{json.dumps(CALL)}]",
        f"<|python_tag|>{json.dumps(CALL)}",
    ],
)
def test_a_call_is_read_in_every_wrapping(answer: str) -> None:
    """As OpenAI and Anthropic wrap it, and as open models do."""
    assert [PRINT] == read_reply(answer)


def test_several_calls_are_carried_out_in_order() -> None:
    """Open models write one element for each."""
    call = '<tool_call>{{"name":"{}","arguments":{{}}}}</tool_call>'

    assert ["a", "b"] == read("\n".join(map(call.format, "ab")))


def test_a_call_keeps_what_it_gives() -> None:
    """Names of fields that mean something beside an intent mean nothing among the arguments."""
    given = {"type": "x", "intent": "shell", "actionType": "y"}
    action = read_reply(json.dumps({"id": "call_1", "name": "crew::work", "arguments": given}))[0]

    assert Action("crew::work", False, given, "call_1") == action


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"name": "print", "arguments": [1]}, "`arguments` of `print` must be an object with its fields, not [1]"),
        ({"tool": "print", "input": "hi"}, "`input` of `print` cannot be read: the JSON is broken near 'hi'"),
        ({"tool": "print", "input": "7"}, "`input` of `print` must be an object with its fields, not 7"),
        ({"tool": "print", "args": "[" * 9999}, "`args` of `print` cannot be read: the JSON is nested too deeply"),
        ({"name": 5, "arguments": {}}, "an action names its `intent`; this object has `name`, `arguments` instead"),
        ({"name": " ", "arguments": {}}, "an action names its `intent`; this object has `name`, `arguments` instead"),
        ({"type": ["function"], "name": "a", "input": {}}, '`intent` must be the name of an action, not ["function"]'),
    ],
)
def test_a_call_that_cannot_be_read_says_why(answer: Any, problem: str) -> None:
    """Arguments are an object, and a call has a name."""
    with pytest.raises(ReplyError) as error:
        read_reply(json.dumps(answer))

    assert error.value.message.startswith(problem)


def test_half_a_character_in_the_text_of_arguments_is_replaced() -> None:
    """JSON within JSON is read as carefully."""
    assert (
        "\ufffd" == read_reply(json.dumps({"name": "print", "arguments": '{"message":"\\ud800"}'}))[0].data["message"]
    )


NESTED = {"x": 1, "y": 2}
PAYLOAD = {"n": 1, "id": "x"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"intent": "a", "id": 7}, Action("a", False, {}, "7")),
        ({"intent": "a", "id": None}, Action("a", False, {}, "")),
        ({"intent": "a", "data": NESTED, "y": 3}, Action("a", False, {"x": 1, "y": 3, "data": NESTED})),
        ({"intent": "return", "data": NESTED}, Action("return", False, {"data": NESTED})),
        ({"intent": "return", "x": 1, "y": 2}, Action("return", False, {"data": NESTED})),
        ({"intent": "return", "x": 1, "condition": "c"}, Action("return", False, {"data": {"x": 1}, "condition": "c"})),
        ({"intent": "return"}, Action("return", False, {})),
        ({"intent": "w", "actionType": "delegate", **PAYLOAD}, Action("w", True, {"data": PAYLOAD}, "x")),
        (
            {"intent": "w", "actionType": "delegate", "data": 5, "condition": "c"},
            Action("w", True, {"data": 5, "condition": "c"}),
        ),
    ],
)
def test_fields_find_their_place(value: dict[str, Any], expected: Action) -> None:
    """Payloads stand under `data`, fields of direct actions beside each other, a condition never in a payload."""
    assert expected == read_reply(json.dumps(value))[0]


def test_steps_nested_in_an_action() -> None:
    """Lists of branches and loops take the forms that answers take."""
    steps = as_steps([A, {"batch": [B, {"parallel": [A, C]}]}], "then")

    assert [["a"], ["b"], ["a", "c"]] == [[action.intent for action in step] for step in steps]


def test_a_nested_step_that_is_no_action_is_named() -> None:
    """The message says which item of which list it is."""
    with pytest.raises(ReplyError) as error:
        as_steps([A, {"total": 3}], "then")

    assert "item 2 of `then`: an action names its `intent`; this object has `total` instead" == error.value.message


# ---------------------------------------------------------------- pieces

SPECIAL = st.sampled_from(['"', "\\", "{[", "}]", "intent", "batch"])
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), SPECIAL)
KEYS = st.text(max_size=4)
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
ACTIONS = st.fixed_dictionaries({"intent": st.sampled_from("abc"), "x": VALUES})
STEPS = st.one_of(ACTIONS, st.fixed_dictionaries({"parallel": st.lists(ACTIONS, min_size=1, max_size=3)}))
ANSWERS = st.one_of(STEPS, st.fixed_dictionaries({"batch": st.lists(STEPS, min_size=1, max_size=4)}))


@st.composite
def cut_answers(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Answers with prose around them, sometimes with a character changed: the whole text, and its pieces."""
    before = draw(
        st.sampled_from(["", "Sure: ", "```json\n", 'He said "no', "<think>{", "<think>a</think>", "\ufeff ["])
    )
    ascii_only, answers = draw(st.booleans()), draw(st.lists(ANSWERS, max_size=3))
    text = before + "".join(json.dumps(answer, ensure_ascii=ascii_only) for answer in answers)
    text += draw(st.sampled_from(["", " done", "\n```", "</think>", '</think>{"intent":"a"}', '<think>{"intent":"a"}']))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", '"', "{", "}", "]", ",", "\\"])) + text[at + 1 :]
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def taken(pieces: list[str], reader: ReplyReader | None = None) -> tuple[list[Action], str]:
    """The actions of an answer and what is wrong with the rest."""
    reader, actions = reader or ReplyReader(), []
    try:
        for piece in pieces:
            for action in reader.feed(piece):
                actions.append(action)  # noqa: PERF402 - what came before an error counts
        for action in reader.finish():
            actions.append(action)  # noqa: PERF402
    except ReplyError as error:
        return actions, error.message
    return actions, ""


@given(cut_answers())
@settings(max_examples=150, deadline=None)
def test_pieces_do_not_matter(answer: tuple[str, list[str]]) -> None:
    """However an answer is cut, it gives the same actions and the same error as the whole."""
    text, pieces = answer

    assert taken([text]) == taken(pieces)


@given(st.text(alphabet='{}[]",:\\ ab1', max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_answered(text: str) -> None:
    """Whatever a model writes gives actions or a message for it, and no other error."""
    actions, problem = taken([text])

    assert actions or problem


def seconds(text: str, size: int) -> float:
    """How much time of the processor reading in pieces of a size takes."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    gc.disable()  # its searches grow with what other tests have left
    try:
        started = time.process_time()
        taken(pieces)
        return time.process_time() - started
    finally:
        gc.enable()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("whole", "megabytes"),
    [
        (lambda length: '{"intent":"print","message":"' + "x" * length + '"}', 4),
        (lambda length: '{"batch":[' + ",".join(['{"intent":"a","n":[1,{"b":2}]}'] * (length // 31)) + "]}", 1),
        (lambda length: '{"intent":"a","deep":' + ("[1,{}]," * (length // 7)).join(["[", "1]"]) + "}", 1),
        (lambda length: "prose [x] " * (length // 10), 4),
    ],
    ids=["one text", "many actions", "one value", "prose"],
)
def test_reading_is_linear(whole: Any, megabytes: int) -> None:
    """Megabytes in pieces of twelve characters take about four times as long as a quarter, not sixteen times."""
    length = megabytes * 1_000_000
    quarter, all_of_it = seconds(whole(length // 4), 12), seconds(whole(length), 12)

    assert all_of_it < 10 * quarter + 0.5
