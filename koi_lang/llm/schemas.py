"""What providers must know about a JSON Schema before they are given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SAYS_SOMETHING = frozenset({"type", "enum", "const", "anyOf", "$ref"})


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whether the answer is an object, the only thing providers let a schema begin with."""
    return schema.get("type") == "object"


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a provider can be told to keep to every word of it.

    That takes a type everywhere, and objects which list all of their fields and require each; a schema that leaves
    something open (`{}`, an object with any fields) would be refused or, worse, closed.
    """
    return all(map(_is_closed, _parts(schema)))


def _is_closed(part: Mapping[str, Any]) -> bool:
    if not SAYS_SOMETHING.intersection(part):
        return False
    if part.get("type") == "array":
        return "items" in part
    if part.get("type") != "object":
        return True
    return part.get("additionalProperties") is False and set(part.get("required", ())) == set(
        part.get("properties", ())
    )


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas in it."""
    yield schema
    inner = [*schema.get("anyOf", ()), *schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    if isinstance(schema.get("items"), Mapping):
        inner.append(schema["items"])
    for each in inner:
        yield from _parts(each)
