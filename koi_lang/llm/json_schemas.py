"""Checks of a JSON Schema before it is sent to a provider."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

SAYS_SOMETHING = frozenset({"type", "enum", "const", "anyOf", "$ref"})
# What may leave something open, and what providers that keep to every word do not know.
LOOSE = frozenset(
    "allOf oneOf not if then else patternProperties propertyNames dependentSchemas unevaluatedProperties prefixItems "
    "contains unevaluatedItems definitions $dynamicRef".split()
)
DEFINED = "#/$defs/"
BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
# llama.cpp makes a rule of a grammar for each repetition, and refuses grammars of more than 2,000.
MAX_REPETITIONS = 1000
# LLGuidance (vLLM, some builds of llama.cpp) lets a model write blanks between tokens for ever unless told not to.
COMPACT = {"x-guidance": {"whitespace_flexible": False}}


def can_be_sent(schema: Mapping[str, Any] | None) -> bool:
    """Whether providers can be told to keep to a schema: it is of an object, or of one of several.

    OpenAI refuses several at the root, local servers take them.
    """
    options = [] if schema is None else schema.get("anyOf", [schema])
    return schema is not None and all(option.get("type") == "object" for option in options) and is_strict(schema)


def bounds_of(schema: Mapping[str, Any]) -> dict[str, float]:
    """The bounds that a schema sets itself, without those of its parts."""
    return {word: schema[word] for word in BOUNDS if word in schema}


def keep_bounds(schema: Any, words: Container[str]) -> Any:
    """The schema with only those of its bounds that a provider takes, and that are no long repetition."""
    if isinstance(schema, list):
        return [keep_bounds(each, words) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    bounds = {word: bound for word, bound in bounds_of(schema).items() if isinstance(bound, int | float)}
    long = {word for word, bound in bounds.items() if word.endswith(("Length", "Items")) and bound > MAX_REPETITIONS}
    left_out = [word for word in bounds if word not in words or word in long]
    return {name: keep_bounds(part, words) for name, part in schema.items() if name not in left_out}


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a provider can be told to keep to every word of it.

    That takes a type everywhere, and objects which list all of their fields and require each; a schema that leaves
    something open (`{}`, an object with any fields) would be refused or, worse, closed.
    """
    defined = schema.get("$defs", {})
    return all(_is_closed(part, defined) for part in _parts(schema))


def _is_closed(part: Mapping[str, Any], defined: Mapping[str, Any]) -> bool:
    if LOOSE.intersection(part) or not SAYS_SOMETHING.intersection(part):
        return False
    if "$ref" in part:
        return str(part["$ref"]).removeprefix(DEFINED) in defined
    types = part.get("type")
    types = types if isinstance(types, list) else [types]
    if "array" in types and not isinstance(part.get("items"), Mapping):
        return False
    return "object" not in types or _is_closed_object(part)


def _is_closed_object(part: Mapping[str, Any]) -> bool:
    fields = set(part.get("properties", ()))
    return part.get("additionalProperties") is False and set(part.get("required", ())) == fields


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and all schemas in it."""
    yield schema
    inner = [*schema.get("anyOf", ()), *schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    if isinstance(schema.get("items"), Mapping):
        inner.append(schema["items"])
    for each in inner:
        yield from _parts(each)
