"""Fields that a model has written otherwise than an action asks for, read where only one thing can be meant.

Nothing is read into what fits as it is; what may mean two things is left to be refused. What was read is noted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from koi_lang.js.inspect_value import inspect
from koi_lang.runtime.actions.registered import ALWAYS, ActionKind, known_fields
from koi_lang.runtime.playbook.action_parsing import GIVEN
from koi_lang.runtime.prompts import value_text
from koi_lang.runtime.schema import Schema, problems

Fields = dict[str, Any]
# Objects that hold what an action is given, though nothing asks for them.
WRAPPERS = (*GIVEN, "payload", "fields")
# Other names of a field, beside the aliases that an action declares.
MISNOMERS: Mapping[str, Mapping[str, str]] = {
    "print": dict.fromkeys(("content", "value", "output", "msg"), "message"),
    "prompt_user": {**dict.fromkeys(("message", "text", "content"), "question"), "choices": "options"},
    "prompt_form": {"prompt": "question"},
    "call_llm": {**dict.fromkeys(("prompt", "instructions", "task"), "instruction"), "input": "data", "text": "data"},
    "update_state": dict.fromkeys(("data", "values", "update", *WRAPPERS), "updates"),
    "call_skill": {
        "name": "skill",
        **dict.fromkeys((name for name in (*WRAPPERS, "data") if name != "input"), "input"),
    },
    "call_mcp": {"name": "tool", **dict.fromkeys((name for name in (*WRAPPERS, "data") if name != "input"), "input")},
    "repeat": {**dict.fromkeys(("times", "n", "iterations"), "count"), "steps": "actions", "batch": "actions"},
    "while": {"max": "max_iterations", "steps": "actions", "batch": "actions", "do": "actions"},
    "if": {"actions": "then", "do": "then"},
    "ask_parent": {"message": "question", "text": "question", "prompt": "question"},
    "registry_set": {"name": "key", "data": "value"},
    "registry_get": {"name": "key"},
    "registry_delete": {"name": "key"},
    "shell": {"cmd": "command", "reason": "description"},
}
WHOLE = re.compile(r"-?[0-9]{1,15}")
NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
TRUTHS = {"true": True, "false": False}
# Texts that are longer are not tried as JSON.
MAX_JSON = 100_000
# As many levels as an answer may have.
MAX_DEPTH = 100
SHOWN = 40


def read_names(kind: ActionKind, fields: Fields, state: Mapping[str, Any]) -> tuple[Fields, list[str]]:
    """The fields of an action where it asks for them, and which were written otherwise; values stay as they are.

    Args:
        fields: as the model wrote them: what is in the lists of loops and branches is not computed yet.
        state: of the agent.
    """
    notes: list[str] = []
    fields = _rename(kind, fields, notes)
    if _lacks_required(kind, fields):
        fields = _gather_updates(kind, _rename(kind, _unwrap(kind, fields, notes), notes), state, notes)
    return fields, notes


def read_values(kind: ActionKind, fields: Fields) -> tuple[Fields, list[str]]:
    """The values of an action as it asks for them, and how each was read that was written otherwise.

    Args:
        fields: with their references replaced.
    """
    notes: list[str] = []
    misfits = any(problems(known_fields(kind, fields), kind.schema))
    return (_convert(kind, fields, notes) if misfits else fields), notes


def _lacks_required(kind: ActionKind, fields: Fields) -> bool:
    known = known_fields(kind, fields)
    return any(name not in known for name in kind.schema.get("required", ()))


def _rename(kind: ActionKind, fields: Fields, notes: list[str]) -> Fields:
    """Fields by their proper names, where those are not there, too."""
    others = MISNOMERS.get(kind.name, {})
    present = known_fields(kind, fields)
    for name in [each for each in fields if each in others and each not in {*kind.schema["properties"], *kind.aliases}]:
        if others[name] not in present:
            fields = {others[name] if each == name else each: value for each, value in fields.items()}
            present = known_fields(kind, fields)
            notes.append(f"`{name}` as `{others[name]}`")
    return fields


def _unwrap(kind: ActionKind, fields: Fields, notes: list[str]) -> Fields:
    """Fields that stand in an object of their own."""
    wrappers = [name for name in WRAPPERS if name in fields and name not in kind.schema["properties"]]
    inner = as_object(fields[wrappers[0]]) if len(wrappers) == 1 else None
    if inner is None:
        return fields
    notes.append(f"`{wrappers[0]}` as the fields of the action")
    return {**inner, **{name: value for name, value in fields.items() if name != wrappers[0]}}


def _gather_updates(kind: ActionKind, fields: Fields, state: Mapping[str, Any], notes: list[str]) -> Fields:
    """Fields of the state that stand beside the name of the action; others may be words on it."""
    updates = {name: value for name, value in fields.items() if name in state}
    if kind.name != "update_state" or not updates or fields.keys() - updates.keys() - ALWAYS:
        return fields
    notes.append(f"{', '.join(f'`{name}`' for name in updates)} as fields of `updates`")
    return {"updates": updates, **{name: value for name, value in fields.items() if name not in updates}}


def _convert(kind: ActionKind, fields: Fields, notes: list[str]) -> Fields:
    """Values of another type as those that they spell; null is as good as nothing where a field may be left out."""
    required = kind.schema.get("required", ())
    known = kind.schema["properties"]
    read: Fields = {}
    for name, value in fields.items():
        proper = name if name in known else kind.aliases.get(name, "")
        misfits = bool(proper) and any(problems(value, known[proper]))
        if misfits and value is None and proper not in required:
            notes.append(f"`{name}` without its null")
            continue
        found = next(values_of(value, known[proper], is_code=proper in kind.code), None) if misfits else None
        if found is not None:
            note_reading(notes, name, value, found)
        read[name] = value if found is None else found
    return read


def values_of(value: Any, schema: Schema, *, is_code: bool = False) -> Iterator[Any]:
    """The values that a text spells which are as a schema says.

    Args:
        is_code: whether a number stands for its text, as where one expression is all of a file.
    """
    if is_code and isinstance(value, (bool, int, float)):
        value = value_text(value)
    for option in schema.get("anyOf", (schema,)):
        if isinstance(value, str) and option.get("type") == "string" and not any(problems(value, option)):
            yield value
        convert = CONVERSIONS.get(option.get("type", ""))
        found = convert(value) if convert is not None else None
        if found is not None and not any(problems(found, option)):
            yield found


def note_reading(notes: list[str], name: str, value: Any, found: Any) -> None:
    """Note the interpretation of a value below its name."""
    notes.append(f"`{name}` {_show(value)} as {_show(found)}")


def as_object(value: Any) -> Fields | None:
    """An object, or the one that a text of JSON holds; None for everything else."""
    found = value if isinstance(value, dict) else _as_json(value)
    return found if isinstance(found, dict) else None


def _as_json(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > MAX_JSON or not value.lstrip().startswith(("{", "[")):
        return None
    try:
        found = json.loads(value, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return found if _is_sound(found, MAX_DEPTH) else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _is_sound(value: Any, depth: int) -> bool:
    """Whether a value is nested no deeper than an answer may be, and holds finite numbers only."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_finite = not isinstance(value, float) or isfinite(value)
    return is_finite and (depth > 0 or not inner) and all(_is_sound(each, depth - 1) for each in inner)


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and WHOLE.fullmatch(value) else None


def _as_number(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and NUMBER.fullmatch(value) else None


def _as_truth(value: Any) -> Any:
    return TRUTHS.get(value) if isinstance(value, str) else None


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "integer": _as_whole,
    "number": _as_number,
    "boolean": _as_truth,
    "object": _as_json,
    "array": _as_json,
}


def _show(value: Any) -> str:
    text = inspect(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
