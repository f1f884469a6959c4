"""JSON Schema, as far as Koi's own types need it: from annotations, and checking values."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from koi_lang.js.conversions import is_number
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.js.undefined import undefined

Schema = Mapping[str, Any]
NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def of_annotation(annotation: Any) -> dict[str, Any]:
    """The schema of a Python annotation; empty (anything) for those that say nothing."""
    if annotation in NAMES:
        return {"type": NAMES[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [of_annotation(argument) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if annotation is list or origin is list:
        return {"type": "array", **({"items": of_annotation(arguments[0])} if arguments else {})}
    if annotation is dict or origin is dict:
        return {"type": "object"}
    return {}


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of an object with the parameters of a function; a rest parameter is a list that may be left out."""
    hints = typing.get_type_hints(function)
    known = inspect.signature(function).parameters.values()
    rest = {p.name: {"type": "array"} for p in known if p.kind is p.VAR_POSITIONAL and p.name not in hints}
    return {
        "type": "object",
        "properties": {p.name: rest.get(p.name) or of_annotation(hints.get(p.name, Any)) for p in known},
        "required": [p.name for p in known if p.default is p.empty and p.kind is not p.VAR_POSITIONAL],
    }


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """What is wrong with a value, one clause a problem: which field, what was expected, what came."""
    if "anyOf" in schema:
        if all(any(problems(value, option, path)) for option in schema["anyOf"]):
            expected = " or ".join(_describe_expected(option) for option in schema["anyOf"])
            yield f"{_field(path)} must be {expected}, not {_value_text(value)}"
        return
    if not _fits(value, schema):
        yield f"{_field(path)} must be {_describe_expected(schema)}, not {_value_text(value)}"
        return
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{index}]")


def convert(value: Any, schema: Schema) -> Any:
    """A value of the command line in the type that is declared for it: the text of a number, or the number of a text.

    It stays as it is where it fits, and where neither fits.
    """
    if not any(problems(value, schema)):
        return value
    other = _json_value(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if any(problems(other, schema)) else other


def _json_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _object_problems(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if value.get(name, undefined) is undefined:
            yield f"{_field(prefix + name)} is missing"
    for name, described in schema.get("properties", {}).items():
        if value.get(name, undefined) is not undefined:
            yield from problems(value[name], described, prefix + name)


def _fits(value: Any, schema: Schema) -> bool:
    if "const" in schema:
        return bool(value == schema["const"] and type(value) is type(schema["const"]))
    if "enum" in schema:
        return value in schema["enum"]
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return is_number(value)
        case "null":
            return value is None or value is undefined
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    return True


def _describe_expected(schema: Schema) -> str:
    if "const" in schema:
        return as_text(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(map(as_text, schema["enum"]))
    return WORDS.get(schema.get("type", ""), "anything")


def _field(path: str) -> str:
    return f"`{path}`" if path else "the value"


def _value_text(value: Any) -> str:
    """A value as programs write it, on one line."""
    text = " ".join(as_text(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def signature_text(schema: Schema) -> str:
    """An object schema as it is shown to models: `name: string, lang?: string`."""
    required = schema.get("required", ())
    fields = schema.get("properties", {}).items()
    return ", ".join(
        f"{name}: {type_text(field)}" if name in required else f"{name}?: {type_text(_without_null(field))}"
        for name, field in fields
    )


def _without_null(schema: Schema) -> Schema:
    """The schema of a field that may be left out, without the null that stands for that."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return schema if not options else options[0] if len(options) == 1 else {"anyOf": options}


def type_text(schema: Schema) -> str:
    """A schema as a short type."""
    if "anyOf" in schema:
        return " | ".join(type_text(option) for option in schema["anyOf"])
    if "const" in schema:
        return as_text(schema["const"])
    if "enum" in schema:
        return " | ".join(map(as_text, schema["enum"]))
    if schema.get("type") == "array":
        return f"{type_text(schema.get('items', {}))}[]"
    if schema.get("type") == "object" and schema.get("properties"):
        return "{ " + signature_text(schema) + " }"
    return str(schema.get("type", "any"))
