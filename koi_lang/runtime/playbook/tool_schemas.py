"""JSON Schemas of arguments, simplified to the form that every provider accepts.

Gemini wants a type for every value, and knows neither `const`, `$ref`, `oneOf` nor numbers in an `enum`; Mistral
refuses `$schema` and bounds of older drafts; Groq wants `properties` wherever something is `required`, and holds models
to what is sent; Anthropic takes keys of 64 letters, digits, `_`, `.` and `-`. What cannot be said so is told in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from koi_lang.js.value_bounds import RANGES
from koi_lang.runtime.mcp.safe_text import one_line

Schema: TypeAlias = dict[str, Any]
KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
TYPES = ("string", "integer", "number", "boolean", "object", "array")
# Every provider takes the bounds of numbers; whatever else sets bounds, or says what a text is, is told in words.
TOLD = (
    *"format pattern exclusiveMinimum exclusiveMaximum multipleOf".split(),
    *(*RANGES["string"][:2], *RANGES["array"][:2]),
    *"uniqueItems minProperties maxProperties patternProperties propertyNames not prefixItems".split(),
)
MAX_PARTS, MAX_DEPTH = 2000, 10
MAX_DESCRIPTION_CHARS, MAX_VALUE_CHARS = 500, 200
# Characters of a whole schema.
MAX_SCHEMA_CHARS = 8000
SCALARS: list[Schema] = [{"type": name} for name in ("string", "number", "boolean", "object")]
ANY: Schema = {"anyOf": [*SCALARS, {"type": "array", "items": {"anyOf": SCALARS}}]}

# Of whatever fields; OpenAI wants `properties`, grammars take no other ones where these are all that is said.
OPEN: Schema = {"type": "object", "properties": {}, "additionalProperties": True}


class TooLargeError(ValueError):
    """A schema has more parts than providers take."""


def simplify_schema(schema: Any, *, has_lengths: bool = False, has_null: bool = False) -> Schema | None:
    """The schema of an object that says as much of a schema as can be sent; None where that would be too large.

    Without any fields it is one of whatever fields there may be.

    Args:
        has_lengths: whether it keeps the bounds of texts and lists; adapters leave out what their provider refuses.
        has_null: whether null stays one of the types of a field, rather than make the field one that may be left out.
    """
    try:
        simple = _Simplifier(schema, has_lengths, has_null).simplify(schema, 0, ())
    except (TooLargeError, RecursionError):
        return None
    if simple.get("type") != "object":
        return OPEN
    if isinstance(schema, Mapping) and schema.get("properties") == {}:
        simple = {**simple, "properties": {}}
    elif "properties" not in simple:
        simple = {**simple, **OPEN}
    return simple if len(json.dumps(simple)) <= MAX_SCHEMA_CHARS else None


@dataclass(slots=True)
class _Simplifier:
    """Makes one schema simpler.

    Attributes:
        root: what references point into.
        has_lengths: as in `simplify_schema`; so `has_null`.
    """

    root: Any
    has_lengths: bool
    has_null: bool
    _left: int = MAX_PARTS

    def simplify(self, part: Any, depth: int, seen: tuple[str, ...]) -> Schema:
        """A part of the schema; `seen` are the references that led to it. Raises TooLargeError."""
        self._left -= 1
        if self._left < 0:
            raise TooLargeError
        if not isinstance(part, Mapping):
            return ANY
        part, seen = self._resolve(part, seen)
        if depth > MAX_DEPTH:
            return {"type": "object"}
        return _describe(self._with_type(part, depth, seen), part)

    def _resolve(self, part: Mapping[str, Any], seen: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """A part with its references and required parts resolved; a reference to itself becomes any object."""
        self._left -= 1
        while isinstance(part.get("$ref"), str):
            name = part["$ref"]
            found = None if name in seen else self._find(name)
            seen = (*seen, name)
            rest = {key: value for key, value in part.items() if key != "$ref"}
            part = {**(found if isinstance(found, Mapping) else {"type": "object"}), **rest}
        for more in _list_of(part, "allOf"):
            more, seen = self._resolve(more, seen) if isinstance(more, Mapping) else ({}, seen)
            part = {**more, **part, "properties": {**_fields_of(more), **_fields_of(part)}}
            part["required"] = [*_list_of(more, "required"), *_list_of(part, "required")]
        return part, seen

    def _find(self, name: str) -> Any:
        found = self.root if name.startswith("#") else None
        for key in name.lstrip("#/").split("/") if name.strip("#/") else ():
            found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found

    def _with_type(self, part: Mapping[str, Any], depth: int, seen: tuple[str, ...]) -> Schema:
        """A part without its description."""
        types = [name for name in _types_of(part) if name in TYPES or (self.has_null and name == "null")]
        if len(types) == 1:
            return self._of_type(types[0], part, depth, seen)
        if types:
            return _one_of([self._of_type(name, part, depth, seen) for name in types])
        options = [*_list_of(part, "anyOf"), *_list_of(part, "oneOf")]
        simplified = [
            self.simplify(option, depth + 1, seen) for option in options if self.has_null or not _is_null(option)
        ]
        return _one_of(simplified) if simplified else ANY

    def _of_type(self, name: str, part: Mapping[str, Any], depth: int, seen: tuple[str, ...]) -> Schema:
        if name == "object":
            return self._object(part, depth, seen)
        keys = RANGES[name][:2] if name in RANGES and (self.has_lengths or name in ("integer", "number")) else ()
        bounds = {key: part[key] for key in keys if _is_number(part.get(key))}
        if name == "array":
            return {"type": name, "items": self.simplify(part.get("items"), depth + 1, seen), **bounds}
        enum = _values_of(part) if name == "string" else []
        return {"type": name, **({"enum": enum} if enum else {}), **bounds}

    def _object(self, part: Mapping[str, Any], depth: int, seen: tuple[str, ...]) -> Schema:
        known = {name: field for name, field in _fields_of(part).items() if KEY.fullmatch(name)}
        fields = {name: self.simplify(field, depth + 1, seen) for name, field in known.items()}
        wanted = set(map(str, _list_of(part, "required")))
        required = [
            name for name in fields if name in wanted and (self.has_null or not self._is_nullable(known[name], seen))
        ]
        described = {"properties": fields} if fields else {}
        return {"type": "object", **described, **({"required": required} if required else {})}

    def _is_nullable(self, part: Any, seen: tuple[str, ...]) -> bool:
        part = self._resolve(part, seen)[0] if isinstance(part, Mapping) else {}
        return "null" in _types_of(part) or any(map(_is_null, [*_list_of(part, "anyOf"), *_list_of(part, "oneOf")]))


def _describe(simple: Schema, part: Mapping[str, Any]) -> Schema:
    """A part with its description on one line, and the constraints that its type does not express."""
    said = one_line(part["description"], MAX_DESCRIPTION_CHARS) if isinstance(part.get("description"), str) else ""
    described = {key: part[key] for key in TOLD if key in part}
    if "enum" not in simple and _values_of(part):
        described["enum"] = _values_of(part)
    if "default" in part and part["default"] is not None:
        described["default"] = part["default"]
    if odd := [name for name in _fields_of(part) if not KEY.fullmatch(name)]:
        described["properties"] = odd
    words = one_line(json.dumps(described, ensure_ascii=False, default=str), MAX_VALUE_CHARS) if described else ""
    text = " ".join(filter(None, (said, words)))
    return {**simple, "description": text} if text else simple


def _one_of(options: Sequence[Schema]) -> Schema:
    different = list({json.dumps(option): option for option in options}.values())
    return dict(different[0]) if len(different) == 1 else {"anyOf": different}


def _types_of(part: Mapping[str, Any]) -> list[str]:
    """The types that a part names, or that its other words mean."""
    named = part.get("type")
    if isinstance(named, str | list):
        return [named] if isinstance(named, str) else [name for name in named if isinstance(name, str)]
    if values := _values_of(part):
        return list(dict.fromkeys(map(_type_of, values)))
    return [name for name, word in (("object", "properties"), ("array", "items")) if part.get(word)]


def _type_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", type(None): "null"}
    return kinds.get(type(value), "object")


def _values_of(part: Mapping[str, Any]) -> list[Any]:
    """All values that a part may have, where it says them."""
    return [part["const"]] if "const" in part else [each for each in _list_of(part, "enum") if each is not None]


def _is_null(part: Any) -> bool:
    return isinstance(part, Mapping) and (part.get("type") == "null" or part.get("const", "") is None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fields_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    found = part.get("properties")
    return found if isinstance(found, Mapping) else {}


def _list_of(part: Mapping[str, Any], key: str) -> list[Any]:
    found = part.get(key)
    return found if isinstance(found, list) else []
