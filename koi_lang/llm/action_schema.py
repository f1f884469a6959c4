"""One closed schema of an answer, made from the offered tools, so that no other tool can be written.

Providers that hold a model to a schema make a grammar of it: every object lists its fields, and requires each. What an
action may be given and is not is null there. Anthropic takes no definition that leads back to itself, and at most 16
fields that may be one thing or another: so what any action may say of itself is a text, which may be empty, and what
carries out others is not nested further.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from koi_lang.llm.json_schemas import bounds_of, can_be_sent
from koi_lang.llm.tools import NativeTool, ToolSet

Schema = Mapping[str, Any]
NULL = {"type": "null"}
TEXT = {"type": "string"}
PERHAPS = {"$ref": "#/$defs/perhaps"}
# What any action may say of itself.
OF_ACTIONS: Mapping[str, Schema] = {"id": PERHAPS, "condition": PERHAPS}
ACTION, GROUP = {"$ref": "#/$defs/action"}, {"$ref": "#/$defs/group"}
STEPS = {"type": "array", "items": {"anyOf": [ACTION, GROUP]}}
COUNT = {"type": "integer"}
CONTROL: Mapping[str, Mapping[str, Schema]] = {
    "if": {"condition": TEXT, "then": STEPS, "else": STEPS},
    "while": {"condition": TEXT, "actions": STEPS, "max_iterations": {"anyOf": [COUNT, NULL]}},
    "repeat": {"count": COUNT, "actions": STEPS},
}
# An action that takes anything, and how those begin that do the same and say what they take.
SAID_BY_OTHERS: Mapping[str, str] = {"send_message": '{"actionType":"delegate"'}


def action_schema(tools: ToolSet) -> Schema | None:
    """The schema of `{"batch": [...]}` with a branch for each tool; None where one of them takes anything at all.

    Where an answer is to call no more than one, the schema is that of one action, which has the fields that it needs.

    An action that does what others do, which say what they take, has none.
    """
    branches = [_branch(tool, is_short=tools.one_by_one) for tool in _closable(tools)]
    if any(branch is None for branch in branches):
        return None
    if tools.one_by_one:
        return {"anyOf": branches} if can_be_sent({"anyOf": branches}) else None
    control = [_object({**_as_choices({"intent": name}), **CONTROL[name], "id": PERHAPS}) for name in tools.control]
    schema = {
        **_object({"batch": {"type": "array", "items": {"anyOf": [ACTION, GROUP, *control]}}}),
        "$defs": {
            "action": {"anyOf": branches},
            "group": _object({"parallel": {"type": "array", "items": ACTION}}),
            "perhaps": {"type": "string", "description": "Empty for none."},
        },
    }
    return schema if can_be_sent(schema) else None


def open_tools(tools: ToolSet) -> list[str]:
    """The names of the tools that take anything at all."""
    return [tool.name for tool in _closable(tools) if _branch(tool) is None]


def _closable(tools: ToolSet) -> list[NativeTool]:
    """The tools that are actions of their own."""
    openings = [tool.opening for tool in tools.tools if tool.opening]
    left_out = {
        name for name, others in SAID_BY_OTHERS.items() if any(opening.startswith(others) for opening in openings)
    }
    return [tool for tool in tools.tools if tool.opening and tool.name not in left_out]


def _branch(tool: NativeTool, *, is_short: bool = False) -> Schema | None:
    """The action that a call of a tool stands for.

    Args:
        is_short: whether fields that may be left out are, and with them what any action may say of itself.
    """
    about: Mapping[str, Schema] = {} if is_short else OF_ACTIONS
    parameters = tool.parameters
    if is_short and not tool.is_nested:
        needed = parameters.get("required", ())
        given = {name: field for name, field in parameters.get("properties", {}).items() if name in needed}
        parameters = {**parameters, "properties": given}
    fields = close(parameters)
    if fields is None or fields.get("type") != "object":
        return None
    opening = json.loads(tool.opening + ("null}" if tool.is_nested else "}"))
    named = {name: value for name, value in opening.items() if not (is_short and name == "actionType")}
    own = {[*opening][-1]: fields} if tool.is_nested else fields["properties"]
    return _object({**_as_choices(named), **own, **about})


def _as_choices(fields: Mapping[str, Any]) -> dict[str, Schema]:
    return {name: {"type": "string", "enum": [value]} for name, value in fields.items() if value is not None}


def _object(fields: Mapping[str, Schema]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def close(schema: Schema) -> dict[str, Any] | None:
    """A closed form of a schema; optional fields may be null. None for a schema that accepts anything."""
    found = _close_type(schema)
    said = schema.get("description")
    return {**found, "description": said} if found is not None and isinstance(said, str) else found


def _close_type(schema: Schema) -> dict[str, Any] | None:
    if "anyOf" in schema:
        options = [close(option) for option in schema["anyOf"]]
        if all(option is not None and "enum" in option for option in options):
            return _enumeration([value for option in options if option is not None for value in option["enum"]])
        return None if None in options else {"anyOf": options}
    if "enum" in schema:
        return _enumeration(schema["enum"])
    match schema.get("type"):
        case "object":
            return _close_object(schema)
        case "array":
            items = close(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
            return None if items is None else {"type": "array", "items": items, **bounds_of(schema)}
        case "string" | "number" | "integer" | "boolean" | "null" as kind:
            return {"type": kind, **bounds_of(schema)}
    return None


def _close_object(schema: Schema) -> dict[str, Any] | None:
    if "properties" not in schema or schema.get("additionalProperties"):
        return None
    required: Sequence[str] = schema.get("required", ())
    fields = {name: close(field) for name, field in schema["properties"].items()}
    known = {name: field for name, field in fields.items() if field is not None}
    if len(known) < len(fields):
        return None
    return _object({name: field if name in required else _or_null(field) for name, field in known.items()})


def _or_null(schema: Schema) -> Schema:
    said = {name: value for name, value in schema.items() if name == "description"}
    options = schema.get("anyOf", [{name: value for name, value in schema.items() if name not in said}])
    return schema if NULL in options else {"anyOf": [*options, NULL], **said}


def _enumeration(values: Sequence[Any]) -> dict[str, Any] | None:
    is_of_texts = all(isinstance(value, str) for value in values)
    return {"type": "string", "enum": list(values)} if is_of_texts else None
