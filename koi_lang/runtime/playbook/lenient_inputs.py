"""The arguments of a model for skills and members, read leniently by their schemas where the meaning is certain.

Schemas that a provider holds a model to require every field, and null stands there for what may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from koi_lang.runtime.actions.registered import ActionKind
from koi_lang.runtime.agents.skills import by_parameter
from koi_lang.runtime.playbook.delegation import payload_schema
from koi_lang.runtime.playbook.lenient_fields import Fields, as_object, note_reading, values_of
from koi_lang.runtime.schema import Schema, of_function, problems, resolve_part
from koi_lang.system.interpolation import USUAL_CODE

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

# Of an input with many values only the first are told.
MAX_NOTED = 20


def read_inputs(
    agent: AgentPort, kind: ActionKind, fields: Fields, *, is_delegated: bool, result: Schema
) -> tuple[Fields, list[str]]:
    """The fields of an action with arguments in the declared form, and notes on each interpretation.

    Args:
        fields: as the action asks for them, with their references replaced.
        is_delegated: whether a member is given them, whom the name of the action means.
        result: the schema of what `return` gives; empty for anything.
    """
    notes: list[str] = []
    if is_delegated:
        fields = _for_member(payload_schema(agent, kind.name), fields, notes)
    elif kind.name == "call_skill" and "input" in fields:
        input = _for_function(_parameters(agent, fields), fields["input"], notes)
        fields = {**fields, "input": input}
    elif kind.name == "return" and "data" in fields and result:
        fields = {**fields, "data": read_value(fields["data"], result, "data", notes)}
    more = [f"{len(notes) - MAX_NOTED:,} more likewise"] if len(notes) > MAX_NOTED else []
    return fields, [*notes[:MAX_NOTED], *more]


def _for_member(schema: Schema, fields: Fields, notes: list[str]) -> Fields:
    """The payload under `data`, or all fields without one."""
    if not schema:
        return fields
    if "data" in fields:
        return {**fields, "data": read_value(fields["data"], schema, "data", notes)}
    condition = {name: value for name, value in fields.items() if name == "condition"}
    payload = {name: value for name, value in fields.items() if name != "condition"}
    return {**read_value(payload, schema, "", notes), **condition}


def _parameters(agent: AgentPort, fields: Fields) -> Schema:
    """The schema of the function that a call of a skill names; empty (anything) where it names none."""
    skill = next((known for known in agent.about.skills() if known.name == fields.get("skill")), None)
    functions = {} if skill is None else skill.functions
    permitted = {} if skill is None else skill.restrict(agent.may_call).functions
    name = fields.get("function") or next(iter(permitted or functions), "")
    return of_function(functions[name]) if isinstance(name, str) and name in functions else {}


def _for_function(schema: Schema, input: Any, notes: list[str]) -> Any:
    """An object of parameters, or the value of the first one, also as a text of JSON."""
    if not schema or input is None or not any(problems(by_parameter(input, schema), schema)):
        return input
    given = as_object(input)
    read = read_value(by_parameter(input if given is None else given, schema), schema, "input", found := list[str]())
    if isinstance(input, str) and given is not None and not any(problems(read, schema)):
        note_reading(notes, "input", input, given)
    elif not found:
        return input
    notes += found
    return read


def read_value(value: Any, schema: Schema, path: str, notes: list[str], *, is_code: bool = False) -> Any:
    """A value in the form of a schema, its parts included; unreadable values stay unchanged.

    Args:
        path: where it stands, for the notes.
        is_code: whether a number stands for its text.
    """
    schema = resolve_part(schema, schema)
    if not any(problems(value, schema)):
        return value
    if isinstance(value, str) or is_code:
        found = next(values_of(value, schema, is_code=is_code), None)
        if found is None:
            return value
        note_reading(notes, path, value, found)
        return found
    options = list(_options(value, schema))
    for option in options:
        found_notes = list[str]()
        read = _read_parts(value, resolve_part(schema, option), path, found_notes)
        if len(options) == 1 or not any(problems(read, schema)):
            notes += found_notes
            return read
    return value


def _read_parts(value: Any, schema: Schema, path: str, notes: list[str]) -> Any:
    """A list with its items read, or an object with its fields, without nulls for optional fields."""
    if isinstance(value, list):
        items = resolve_part(schema, schema["items"])
        return [read_value(item, items, f"{path}[{index}]", notes) for index, item in enumerate(value)]
    read: Fields = {}
    for name, item in value.items():
        field = resolve_part(schema, schema["properties"].get(name, {}))
        where = f"{path}.{name}" if path else name
        if item is None and name not in schema.get("required", ()) and any(problems(item, field)):
            notes.append(f"`{where}` without its null")
        else:
            read[name] = read_value(item, field, where, notes, is_code=name in USUAL_CODE)
    return read


def _options(value: Any, schema: Schema) -> Iterator[Schema]:
    """The parts of a schema that describe an object or a list."""
    wanted = "properties" if isinstance(value, dict) else "items" if isinstance(value, list) else ""
    options = (resolve_part(schema, option) for option in schema.get("anyOf", (schema,)))
    yield from (option for option in options if wanted in option)
