"""One closed schema for all that an agent may do: what it does not hold cannot be written."""

from __future__ import annotations

import json
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
OF_NONE = {"id": None, "condition": None}
GOOD: dict[str, list[Any]] = {
    "an action": [{"intent": "print", "message": "a", **OF_NONE}],
    "a name and a condition": [{"intent": "print", "message": "a", "id": "p", "condition": "${x.output} > 1"}],
    "a delegate": [{"actionType": "delegate", "intent": "h::greet", "data": {"name": "A", "times": None}, **OF_NONE}],
    "some at once": [{"parallel": [{"intent": "print", "message": "a", **OF_NONE}] * 2}],
    "a loop": [
        {"intent": "repeat", "count": 2, "actions": [{"intent": "print", "message": "a", **OF_NONE}], "id": None},
        {"intent": "return", "data": {"ok": True}, **OF_NONE},
    ],
}
BAD: dict[str, list[Any]] = {
    "another action": [{"intent": "shell", "command": "x", **OF_NONE}],
    "another member": [{"actionType": "delegate", "intent": "h::harm", "data": {"name": "A", "times": 1}, **OF_NONE}],
    "another field": [{"intent": "print", "message": "a", "command": "x", **OF_NONE}],
    "another kind of value": [{"intent": "print", "message": {"a": 1}, **OF_NONE}],
    "an action in a loop": [{"intent": "repeat", "count": 2, "actions": [{"intent": "shell", **OF_NONE}], "id": None}],
    "another result": [{"intent": "return", "data": {"ok": "yes"}, **OF_NONE}],
}


@LIBRARIES
def test_what_an_agent_may_do_can_be_written_and_nothing_else(library: str) -> None:
    """As the libraries decide by which providers hold models to a schema."""
    schema = action_schema(ToolSet((PRINT, RETURN, GREET, PLAN), ("if", "while", "repeat")))
    assert schema is not None
    accepts = grammar(library, schema)

    assert dict.fromkeys(GOOD, True) == {name: accepts(json.dumps({"actions": GOOD[name]})) for name in GOOD}
    assert dict.fromkeys(BAD, False) == {name: accepts(json.dumps({"actions": BAD[name]})) for name in BAD}


def test_who_may_not_repeat_has_no_loops() -> None:
    """A role that may not execute has no word for them."""
    schema = action_schema(ToolSet((PRINT, PLAN)))

    assert schema is not None
    assert "repeat" not in json.dumps(schema)
    assert can_be_sent(schema)


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
