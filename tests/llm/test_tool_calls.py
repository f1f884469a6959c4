"""Native calls of tools as the text of the actions that they stand for, however they arrive."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest

from koi_lang.llm.tool_calls import CallWriter
from koi_lang.llm.tools import NativeTool, ToolCall, ToolSet

PRINT = NativeTool("print", "", {}, '{"intent":"print"')
LOOK = NativeTool("files__look", "", {}, '{"intent":"call_mcp","mcp":"files","tool":"look","input":', is_nested=True)
PLAN = NativeTool("plan", "", {})
SET = ToolSet((PRINT, LOOK, PLAN))

# Calls by name and arguments, and the text that they become.
CALLS = {
    "fields": ([("print", '{"message":"a"}')], '{"intent":"print","message":"a"}'),
    "blanks": ([("print", ' { \n"message" : "a" } ')], '{"intent":"print","message" : "a" }'),
    "no arguments": ([("print", "")], '{"intent":"print"}'),
    "no fields": ([("print", "{ }")], '{"intent":"print"}'),
    "null": ([("print", "null")], '{"intent":"print"}'),
    "JSON in JSON": ([("print", '"{\\"message\\": 1}"')], '{"intent":"print","message": 1}'),
    "a single value": ([("print", "[1]")], '{"intent":"print","data": [1]}'),
    "brackets in texts": (
        [("print", '{"message":"}{\\"]["}'), ("print", '{"message":"\\\\"}')],
        '{"intent":"print","message":"}{\\"]["}{"intent":"print","message":"\\\\"}',
    ),
    "a value": (
        [("files__look", '{"path":{"a":[1]}}')],
        '{"intent":"call_mcp","mcp":"files","tool":"look","input":{"path":{"a":[1]}}}',
    ),
    "no value": ([("files__look", "")], '{"intent":"call_mcp","mcp":"files","tool":"look","input":{}}'),
    "a plan": ([("plan", '{"actions":[{"intent":"print"}]}')], '{"actions":[{"intent":"print"}]}'),
    "what was not offered": ([('z"ap', '{"q":1}')], '{"intent":"z\\"ap","q":1}'),
    "cut in a text": ([("print", '{"message":"a'), ("print", '{"message":"b"}')], '{"intent":"print","message":"a'),
    "cut before its fields": ([("files__look", "{"), ("print", "{}")], LOOK.opening + "{"),
    "no JSON": ([("print", "hello"), ("print", "{}")], '{"intent":"print",hello'),
    "a second value": (
        [("print", '{"message":"a"}{"intent":"shell"}'), ("print", "{}")],
        '{"intent":"print","message":"a"}"{\\"intent\\":\\"shell\\"}"',
    ),
    "too many brackets": ([("files__look", "{}}"), ("print", "{}")], LOOK.opening + '{}}"}"'),
}


def written(calls: Sequence[tuple[str, str]], size: int) -> str:
    """The text of calls that arrive one after the other, in pieces of so many characters."""
    writer = CallWriter(SET.by_name)
    text = ""
    for key, (name, arguments) in enumerate(calls):
        writer.call(key, name)
        pieces = [arguments[start : start + size] for start in range(0, len(arguments), size)]
        text += "".join(writer.add(key, piece) for piece in pieces)
    return text + writer.finish()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_calls_become_the_actions_they_stand_for(name: str, size: int) -> None:
    """Whatever the pieces; what follows arguments that are no single value is not written."""
    calls, expected = CALLS[name]
    if name == "a second value":
        size = 1000  # what is told of it depends on the piece in which it begins

    assert expected == written(calls, size)


@pytest.mark.parametrize("size", range(1, 40))
def test_a_second_value_is_never_an_action(size: int) -> None:
    """What stands behind the arguments of a call is a text in quotation marks, and what follows is left out."""
    text = written([("print", '{"message":"a"}{"intent":"shell","command":"x"}'), ("print", "{}")], size)
    first, end = json.JSONDecoder().raw_decode(text)

    assert {"intent": "print", "message": "a"} == first
    assert isinstance(json.loads(text[end:]), str)


@pytest.mark.parametrize(
    "name",
    [
        "functions.print",
        "functions.print:0",
        "function/print",
        "print:12",
        " print\n",
        "print()",
        "default_api.print",
        "print<|channel|>commentary",
        "commentary to=functions.print",
        "functions.print<|channel|>commentary json",
    ],
)
def test_words_of_a_template_around_a_name_are_left_out(name: str) -> None:
    """The tool is called all the same, also where it is not known here."""
    assert '{"intent":"print"}' == written([(name, "{}")], 9)
    assert '{"intent":"zap"}' == written([(name.replace("print", "zap"), "{}")], 9)


@pytest.mark.parametrize("name", ["Worker::print", "files.print", "print.print", "functions::print", "a print"])
def test_other_names_stay_what_they_are(name: str) -> None:
    """A member or a server may be called anything."""
    assert json.dumps({"intent": name}).replace(" ", "") == written([(name, "{}")], 9).replace(" ", "")


def test_an_action_is_complete_with_its_arguments() -> None:
    """It need not wait for the call after it, or for the end of the answer."""
    writer = CallWriter(SET.by_name)
    writer.call(0, "print")

    assert '{"intent":"print","message":"a"}' == writer.add(0, '{"message":"a"}')


def test_calls_that_interleave_are_written_in_their_order() -> None:
    """What belongs to a later call waits until the one before it is complete."""
    writer = CallWriter(SET.by_name)
    for key in (0, 1, 2):
        writer.call(key, "print")
    early = [writer.add(2, '{"message":"c"}'), writer.add(1, '{"message":')]

    assert ["", ""] == early
    assert '{"intent":"print","message":"a"}{"intent":"print","message":' == writer.add(0, '{"message":"a"}')
    assert '"b"}{"intent":"print","message":"c"}' == writer.add(1, '"b"}')


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith(("cut", "no JSON", "too", "a second"))])
def test_actions_become_the_calls_again(name: str) -> None:
    """What a model called is told to it as it called it, but for blanks and for arguments that were no object."""
    calls, _ = CALLS[name]
    for tool, arguments in calls:
        told = SET.call_of(written([(tool, arguments)], 1000))
        assert told is not None
        assert tool.replace('"', "_") == told.name
        if arguments.lstrip().startswith("{"):
            assert json.loads(arguments) == json.loads(told.arguments)
        assert isinstance(json.loads(told.arguments), dict)


@pytest.mark.parametrize("text", ['{"id":"a","intent":"print"}', '{"data":1}', "[1]", '{"actionType":"delegate"}'])
def test_what_no_call_can_be_stays_text(text: str) -> None:
    """One action among several that no call could have made leaves all of them text."""
    assert None is SET.call_of(text)
    assert () == SET.calls_of(['{"intent":"print"}', text])
    assert (ToolCall("print", "{}"),) == SET.calls_of(['{"intent":"print"}'])


def test_many_calls_that_wait_take_time_in_proportion_to_their_number() -> None:
    """The first one never closes, so that none behind it is read."""
    writer, start_s = CallWriter(SET.by_name), time.process_time()
    writer.call(0, "print")
    begun = writer.add(0, "{")
    for key in range(1, 50_000):
        writer.call(key, "print")
        begun += writer.add(key, "{}")

    assert '{"intent":"print"' == begun
    assert time.process_time() - start_s < 5
