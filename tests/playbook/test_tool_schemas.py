"""Schemas of arguments as every provider takes them, whatever servers and programs say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.runtime.playbook.tool_schemas import ANY, KEY, MAX_SCHEMA_CHARS, OPEN, TYPES, simplify_schema


def fields(**properties: Any) -> dict[str, Any]:
    """The schema of an object with some fields."""
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
NODE = fields(next={"$ref": "#/$defs/Node"})
LONG = {"type": "string", "description": "x" * 5_000_000}
DOUBLING = {f"n{n}": fields(**{key: {"$ref": f"#/$defs/n{n + 1}"} for key in "ab"}) for n in range(50)}
PARTS: Mapping[str, tuple[Any, Any]] = {
    "a text": (TEXT, TEXT),
    "anything": ({}, ANY),
    "no schema": (7, ANY),
    "one value": ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    "values": ({"enum": ["a", "b", None]}, {"type": "string", "enum": ["a", "b"]}),
    "numbers": ({"enum": [1, 2]}, {"type": "integer", "description": '{"enum": [1, 2]}'}),
    "or null": ({"anyOf": [TEXT, {"type": "null"}]}, TEXT),
    "a text or null": ({"type": ["string", "null"]}, TEXT),
    "several types": ({"type": ["string", "integer"]}, {"anyOf": [TEXT, {"type": "integer"}]}),
    "one of": ({"oneOf": [TEXT, {"type": "boolean"}]}, {"anyOf": [TEXT, {"type": "boolean"}]}),
    "all of": ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, {"type": "integer", "minimum": 3}),
    "a list": ({"type": "array", "items": TEXT}, {"type": "array", "items": TEXT}),
    "a list of anything": ({"type": "array"}, {"type": "array", "items": ANY}),
    "a tuple": ({"type": "array", "items": [TEXT]}, {"type": "array", "items": ANY}),
    "draft 4": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 0, "description": '{"exclusiveMinimum": true}'},
    ),
    "a format": (
        {"type": "string", "format": "uri", "title": "T", "description": "An\naddress"},
        {"type": "string", "description": 'An address {"format": "uri"}'},
    ),
    "no object": ({"type": "string", "properties": {"a": TEXT}, "required": ["a"]}, TEXT),
    "a map": ({"type": "object", "additionalProperties": TEXT}, {"type": "object"}),
    "what is not there": ({"type": "object", "required": ["a"]}, {"type": "object"}),
    "a reference into nothing": ({"$ref": "https://x.org/a"}, {"type": "object"}),
    "odd names": (fields(a=TEXT, straße=TEXT), {**fields(a=TEXT), "description": '{"properties": ["straße"]}'}),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    """What can be said of a part so that everybody takes it, and in words what cannot."""
    part, expected = PARTS[name]

    told = simplify_schema({**fields(it=part), "$schema": "x", "additionalProperties": False})

    assert fields(it=expected) == told


def test_what_is_no_object_is_open() -> None:
    """Arguments are an object; where nothing is known of its fields, there may be any."""
    assert [OPEN] * 5 == [simplify_schema(each) for each in ({}, TEXT, True, {"type": "object"}, {"$ref": "#"})]
    assert fields() == simplify_schema({**fields(), "required": []})


def test_a_schema_within_itself() -> None:
    """It is told once, and is any object where it comes again."""
    expected = {**fields(node=fields(next={"type": "object"})), "required": ["node"]}

    assert expected == simplify_schema(
        {**fields(node={"$ref": "#/$defs/Node"}), "required": ["node"], "$defs": {"Node": NODE}}
    )


def test_what_may_be_null_may_be_left_out() -> None:
    """No provider need know of null."""
    schema = {**fields(a={"type": ["string", "null"]}, b=TEXT), "required": ["a", "b"]}

    assert {**fields(a=TEXT, b=TEXT), "required": ["b"]} == simplify_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        fields(**{f"f{n}": TEXT for n in range(3000)}),
        fields(**{f"f{n}": LONG for n in range(30)}),
        {"$ref": "#/$defs/n0", "$defs": DOUBLING},
        {"allOf": [{"allOf": [{"$ref": "#/allOf/1"}] * 2000}] * 2},
    ],
    ids=["many fields", "long texts", "doubling", "all of all"],
)
def test_what_is_too_large_is_not_sent(schema: Any) -> None:
    """Nothing that a server says takes long, or fills a request."""
    told = simplify_schema(schema)

    assert told is None or len(json.dumps(told)) <= MAX_SCHEMA_CHARS


def test_a_long_text_is_shortened() -> None:
    """A description of megabytes does not cost its tool the schema."""
    told = simplify_schema(fields(a=LONG))

    assert told is not None
    assert 500 == len(told["properties"]["a"]["description"])


WORDS = (
    "type properties required items anyOf oneOf allOf $ref $defs enum const minimum default description a ü format not"
).split()
TEXTS = st.sampled_from(["string", "object", "null", "#", "#/$defs/a", "ü"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["string", "object", "null", "#", "#/$defs/a", "ü"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


def parts_of(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema that was made simple and all schemas in it."""
    yield schema
    for each in [*schema.get("anyOf", ()), *schema.get("properties", {}).values()]:
        yield from parts_of(each)
    if "items" in schema:
        yield from parts_of(schema["items"])


@given(st.dictionaries(st.sampled_from(WORDS), JSON, max_size=6))
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_says_can_be_sent(schema: Any) -> None:
    """The root is an object, each part has one type or is one of several, and nothing else stands there."""
    told = simplify_schema(schema)

    assert told is not None
    assert "object" == told["type"]
    for part in parts_of(told):
        assert ("anyOf" in part) != (part.get("type") in TYPES)
        assert set(part.get("required", ())) <= set(part.get("properties", {}))
        assert all(map(KEY.fullmatch, part.get("properties", {})))
        assert all(isinstance(each, str) for each in part.get("enum", ["text"]))
        assert isinstance(part.get("description", ""), str)
        assert ("items" in part) == (part.get("type") == "array")
