"""One closed schema for all that an agent may do: what it does not hold cannot be written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from koi_lang.llm.action_schema import action_schema, close, open_tools
from koi_lang.llm.json_schemas import can_be_sent
from koi_lang.llm.tools import NativeTool, ToolSet
from tests.llm.grammars import LIBRARIES, grammar

TEXT = {"type": "string"}


def an_object(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": fields, "required": list(required)}


PRINT = NativeTool("print", "", an_object(("message",), message=TEXT), '{"intent":"print"')
RETURN = NativeTool("return", "", an_object(data=an_object(("ok",), ok={"type": "boolean"})), '{"intent":"return"')
GREET = NativeTool(
    "h__greet",
    "",
    an_object(("name",), name=TEXT, times={"type": "integer"}),
    '{"actionType":"delegate","intent":"h::greet","data":',
    is_nested=True,
)
PLAN = NativeTool("plan", "", {"type": "object"})
ANYTHING = NativeTool("store", "", an_object(("value",), value={}), '{"intent":"store"')
OF_NONE = {"id": "", "condition": ""}
REPEAT: dict[str, Any] = {"intent": "repeat", "count": 2, "actions": [], "id": ""}
GOOD: dict[str, list[Any]] = {
    "an action": [{"intent": "print", "message": "a", **OF_NONE}],
    "a name and a condition": [{"intent": "print", "message": "a", "id": "p", "condition": "${x.output} > 1"}],
    "a delegate": [{"actionType": "delegate", "intent": "h::greet", "data": {"name": "A", "times": None}, **OF_NONE}],
    "some at once": [{"parallel": [{"intent": "print", "message": "a", **OF_NONE}] * 2}],
    "some at once in a branch": [
        {"intent": "if", "condition": "true", "then": [{"parallel": []}], "else": [], "id": ""},
    ],
    "a loop": [
        {"intent": "repeat", "count": 2, "actions": [{"intent": "print", "message": "a", **OF_NONE}], "id": ""},
        {"intent": "return", "data": {"ok": True}, **OF_NONE},
    ],
}
BAD: dict[str, list[Any]] = {
    "another action": [{"intent": "shell", "command": "x", **OF_NONE}],
    "another member": [{"actionType": "delegate", "intent": "h::harm", "data": {"name": "A", "times": 1}, **OF_NONE}],
    "another field": [{"intent": "print", "message": "a", "command": "x", **OF_NONE}],
    "another kind of value": [{"intent": "print", "message": {"a": 1}, **OF_NONE}],
    "an action in a loop": [{"intent": "repeat", "count": 2, "actions": [{"intent": "shell", **OF_NONE}], "id": ""}],
    "a loop in a loop": [{"intent": "repeat", "count": 2, "actions": [REPEAT], "id": ""}],
    "some in some at once": [{"parallel": [{"parallel": []}]}],
    "another result": [{"intent": "return", "data": {"ok": "yes"}, **OF_NONE}],
}


@LIBRARIES
def test_what_an_agent_may_do_can_be_written_and_nothing_else(library: str) -> None:
    """As the libraries decide by which providers hold models to a schema."""
    schema = action_schema(ToolSet((PRINT, RETURN, GREET, PLAN), ("if", "while", "repeat")))
    assert schema is not None
    accepts = grammar(library, schema)

    assert dict.fromkeys(GOOD, True) == {name: accepts(json.dumps({"batch": GOOD[name]})) for name in GOOD}
    assert dict.fromkeys(BAD, False) == {name: accepts(json.dumps({"batch": BAD[name]})) for name in BAD}


def test_who_may_not_repeat_has_no_loops() -> None:
    """A role that may not execute has no word for them."""
    schema = action_schema(ToolSet((PRINT, PLAN)))

    assert schema is not None
    assert "repeat" not in json.dumps(schema)
    assert can_be_sent(schema)


def test_a_schema_leads_nowhere_back_and_has_few_choices() -> None:
    """Anthropic refuses definitions that hold themselves, and more than 16 fields of one kind or another."""
    prints = [NativeTool(f"print{n}", "", PRINT.parameters, f'{{"intent":"print{n}"') for n in range(30)]
    schema = action_schema(ToolSet((*prints, GREET, RETURN, PLAN), ("if", "while", "repeat")))

    assert schema is not None
    assert {"batch"} == set(schema["properties"])
    for name in schema["$defs"]:
        assert name not in reached(schema["$defs"], name)
    assert json.dumps(schema).count('"anyOf"') <= 16


def reached(defined: dict[str, Any], name: str) -> set[str]:
    """The definitions that one of them leads to."""
    found: set[str] = set()
    new = {name}
    while new:
        new = {each for one in new for each in re.findall(r"#/\$defs/(\w+)", json.dumps(defined[one]))} - found
        found |= new
    return found


SEND = NativeTool("send_message", "", an_object(("event", "data"), event=TEXT, data={}), '{"intent":"send_message"')
HARM = NativeTool("h__harm", "", {"type": "object"}, '{"actionType":"delegate","intent":"h::harm","data":', True)


def test_a_message_needs_no_word_where_members_say_what_they_take() -> None:
    """Members are reached by delegates; where there are none, or open ones, that is what is open."""
    schema = action_schema(ToolSet((PRINT, SEND, GREET)))

    assert schema is not None
    assert ("h::greet" in json.dumps(schema), "send_message" in json.dumps(schema)) == (True, False)
    assert (None, ["h__harm"]) == (
        action_schema(ToolSet((SEND, GREET, HARM))),
        open_tools(ToolSet((SEND, GREET, HARM))),
    )
    assert (None, ["send_message"]) == (action_schema(ToolSet((SEND, PRINT))), open_tools(ToolSet((SEND, PRINT))))


def test_an_open_tool_leaves_no_schema() -> None:
    """A grammar of it would shut out what it may be given; the tool is named."""
    tools = ToolSet((PRINT, ANYTHING, PLAN))

    assert (None, ["store"]) == (action_schema(tools), open_tools(tools))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": ["string", "null"]},
        {"enum": [1, 2]},
        {"$ref": "#"},
        {"anyOf": [TEXT, {}]},
        {"oneOf": [TEXT]},
        an_object(a=an_object(b={})),
    ],
    ids=json.dumps,
)
def test_what_is_open_stays_open(schema: dict[str, Any]) -> None:
    """Nothing is closed that may be something else."""
    assert None is close(schema)
