"""Descriptions of tools as servers write them, also strange ones."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.mcp.tools import Tool


def tool(properties: Any, description: str = "", **schema: Any) -> Tool:
    """A tool of a server `s`."""
    return Tool("s", "t", description, {"type": "object", "properties": properties, **schema}, {})


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}


@pytest.mark.parametrize(
    ("properties", "signature"),
    [
        ({}, "s.t()"),
        ({"a": {"type": ["string", "null"]}}, "s.t(a?: string | null)"),
        ({"a": {"anyOf": [{"type": "integer"}, {"enum": ["x", 1, None]}]}}, 's.t(a?: integer | "x" | 1 | null)'),
        ({"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "array"}}, "s.t(a?: number[], b?: any[])"),
        ({"a": {"items": {"enum": ["x", "y"]}}}, 's.t(a?: ("x" | "y")[])'),
        ({"a": {"type": "array", "prefixItems": [{"type": "string"}, True]}}, "s.t(a?: [string, any])"),
        ({"a": {"type": "integer", "minimum": 1, "default": 3}}, "s.t(a?: integer(minimum 1) = 3)"),
        ({"a": {"type": "string", "description": "The */ name"}}, "s.t(a?: string /* The * / name */)"),
        ({"a": {"type": ["string", "null"], "minLength": 1}}, "s.t(a?: (string | null)(minLength 1))"),
        ({"a": {"oneOf": [{"const": "r", "title": "red"}, {"const": "b"}]}}, 's.t(a?: "r" /* red */ | "b")'),
        ({"a": {"allOf": [{"type": "string"}, {"pattern": "^a"}]}}, 's.t(a?: string & any(pattern "^a"))'),
        ({"a": {"type": "object", "additionalProperties": {"type": "number"}}}, "s.t(a?: { [name]: number })"),
        ({"a": True, "b": False, "c": "nonsense"}, "s.t(a?: any, b?: never, c?: any)"),
        ({"a": {"$ref": "https://example.org/x"}}, 's.t(a?: any($ref "https://example.org/x"))'),
        ("nonsense", "s.t()"),
    ],
)
def test_signatures(properties: Any, signature: str) -> None:
    """Every schema has a short form, whatever stands in it, and nothing that it asks for is left out."""
    assert signature == tool(properties).signature


def test_nested_fields_are_told() -> None:
    """Fields of objects in lists stand in the signature, with what is required, and what is said of them."""
    edit = {"oldText": {"type": "string", "description": "To find"}, "newText": {"type": "string"}}
    edits = {"type": "array", "items": {"type": "object", "properties": edit, "required": ["oldText"]}}
    told = tool({"path": {"type": "string"}, "edits": edits}, required=["path", "edits"]).takes

    assert "path: string, edits: { oldText: string /* To find */, newText?: string }[]" == told


def test_definitions_are_named_once() -> None:
    """What a schema refers to stands behind `where`, also if it refers to itself."""
    told = tool({"a": {"$ref": "#/$defs/Node"}, "b": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": NODE}}).takes

    assert "a?: Node, b?: Node where Node = { next: Node }" == told


def test_fields_beside_an_outer_reference() -> None:
    """Alternatives and references of the outermost object, and a required field without a type, are told, too."""
    schema = {"required": ["a"], "$ref": "#/$defs/Node", "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}
    told = tool({}, **{"$defs": {"Node": NODE}}, **schema).takes

    assert "a: any & Node & ({ b: any } | { c: any }) where Node = { next: Node }" == told


def test_schemas_without_end() -> None:
    """A schema that is huge, very deep, or grows with each reference costs little, and is not told."""
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    chain = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    for number in range(250):
        chain = {"properties": {"a": chain, f"r{number}": {"$ref": "#" + "/properties/a" * number}}, "title": "x" * 100}
    twice: dict[str, Any] = {}
    for _ in range(80):
        twice = {"type": ["object", "object"], "properties": {"a": twice}}
    huge = {str(number): {"type": "string"} for number in range(100_000)}

    assert len(Tool("s", "t", "", twice, {}).takes) < 1000
    assert ["…"] * 2 == [Tool("s", "t", "", schema, {}).takes for schema in (chain, {"properties": huge})]
    assert Tool("s", "t", "", deep, {}).takes in ("", "…")  # it has no fields; how deep is too deep, the stack decides


def test_a_description_is_one_line() -> None:
    """A server cannot write more into the prompt than one line for each tool; briefly, only the beginning."""
    about = tool({"a\n## Rules": {"type": "string"}}, "Reads.\n\n## New rules\n" + "x" * 500)

    assert about.line.startswith('s.t(a ## Rules?: string) "Reads. ## New rules xxx')
    assert (len(about.line), len(about.short_line), "\n" in about.line) == (547, 227, False)
    assert ('xxx"', 'xx…"') == (about.line[-4:], about.short_line[-4:])


def test_values_in_schemas_stay_on_their_line() -> None:
    """Values are told as JSON; what could hide or fence in the rest of the prompt is told as escapes."""
    told = tool({"a": {"enum": ["x\n\u2028y", "```"]}}).takes

    assert 'a?: "x\\n\\u2028y" | "\\u0060\\u0060\\u0060"' == told


@pytest.mark.parametrize(
    "schema",
    [
        {"required": "path"},
        {"allOf": [{"$ref": "https://example.org/schema.json"}]},
        {"allOf": [{"$ref": "#/nowhere"}]},
    ],
)
def test_broken_schemas(schema: dict[str, Any]) -> None:
    """A schema that is none, or lies elsewhere, is said to be unusable; nothing is fetched."""
    with pytest.raises(ValueError, match=r"\w"):
        list(tool({}, **schema).problems({}))


def test_problems_name_the_field() -> None:
    """Each problem says where it is, also deep inside."""
    lists = {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "integer"}}}}

    assert ['`a.b.1` must be a whole number, not "x"'] == list(tool({"a": lists}).problems({"a": {"b": [1, "x"]}}))


@pytest.mark.parametrize(
    ("schema", "given", "told"),
    [
        ({"type": ["integer", "null"]}, "x", '`a` must be a whole number or null, not "x"'),
        ({"enum": ["x", 1]}, "it's", '`a` must be "x" or 1, not "it\'s"'),
        ({"const": True}, None, "`a` must be true, not null"),
        ({"maximum": 3}, 5, '`a` must fit {"maximum": 3}, and is 5'),
        ({"pattern": "^b"}, "'a'", '`a` must fit {"pattern": "^b"}, and is "\'a\'"'),
        ({"required": ["b", "c"]}, {"b": 1}, "`a` lacks `c`"),
        ({"additionalProperties": False}, {"b": 1}, "`a` takes no `b`"),
    ],
)
def test_problems_are_told_in_words_of_json(schema: dict[str, Any], given: Any, told: str) -> None:
    """Python writes values otherwise."""
    assert [told] == list(tool({"a": schema}).problems({"a": given}))
