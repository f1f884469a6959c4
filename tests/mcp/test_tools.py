"""Descriptions of tools as servers write them, also strange ones."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.mcp.tools import Tool


def tool(properties: Any, description: str = "", **schema: Any) -> Tool:
    """A tool of a server `s`."""
    return Tool("s", "t", description, {"type": "object", "properties": properties, **schema}, {})


@pytest.mark.parametrize(
    ("properties", "signature"),
    [
        ({}, "s.t()"),
        ({"a": {"type": ["string", "null"]}}, "s.t(a?: string | null)"),
        ({"a": {"anyOf": [{"type": "integer"}, {"enum": ["x"]}]}}, "s.t(a?: integer | 'x')"),
        ({"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "array"}}, "s.t(a?: number[], b?: any[])"),
        ({"a": True, "b": {"$ref": "#/x"}}, "s.t(a?: any, b?: any)"),
        ("nonsense", "s.t()"),
    ],
)
def test_signatures(properties: Any, signature: str) -> None:
    """Every schema has a short form, whatever stands in it."""
    assert signature == tool(properties).signature


def test_a_description_is_one_short_line() -> None:
    """A server cannot write more into the prompt than one line for each tool."""
    line = tool({"a\n## Rules": {"type": "string"}}, "Reads.\n\n## New rules\n" + "x" * 500).line

    assert line.startswith('s.t(a ## Rules?: string) "Reads. ## New rules xxx')
    assert (len(line), "\n" in line, line[-2:]) == (227, False, '…"')


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

    assert ["`a.b.1`: 'x' is not of type 'integer'"] == list(tool({"a": lists}).problems({"a": {"b": [1, "x"]}}))
