"""Schemas that servers write to keep whoever checks arguments busy."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.mcp.validation import Checks

SLOW = "^(a+)+$"
TEXT = "a" * 60 + "!"


def nested(levels: int) -> dict[str, Any]:
    """A schema of objects in objects."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """A schema each of whose parts mentions the one before it twice."""
    parts: dict[str, Any] = {"part0": {"type": "string"}}
    for level in range(1, levels):
        parts[f"part{level}"] = {"allOf": [{"$ref": f"#/$defs/part{level - 1}"}] * 2}
    return {"$defs": parts, "properties": {"x": {"$ref": f"#/$defs/part{levels - 1}"}}}


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (SLOW, TEXT, False),
        (SLOW, "aaa", True),
        ("^(?=a)b", "c", False),
        ("(?P<x>a)", "c", True),
        (r"^\d+$", "x", False),
    ],
)
def test_a_pattern_does_not_stop_the_run(pattern: str, text: str, fits: bool) -> None:
    """It is matched in time that grows with the text only; one that cannot be is left to the server."""
    checks = Checks({"properties": {"a": {"type": "string", "pattern": pattern}}})

    assert fits == (not list(checks.problems({"a": text})))


def test_a_pattern_of_names_does_not_stop_the_run() -> None:
    """They are matched as values are; what a pattern may mean that cannot be is left to the server."""
    integer = {"type": "integer"}
    checks = Checks({"patternProperties": {SLOW: integer}, "additionalProperties": False})
    unreadable = Checks({"patternProperties": {"(?P<x>a)": integer}, "additionalProperties": False})

    assert [f"it takes no `{TEXT}`"] == list(checks.problems({TEXT: 1}))
    assert ['`aaa` must be a whole number, not "s"'] == list(checks.problems({"aaa": "s"}))
    assert [] == list(unreadable.problems({"c": "s"}))


def test_other_names_have_the_type_of_others() -> None:
    """Those that are neither named nor fit a pattern."""
    schema = {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": {"type": "string"}}

    assert ["`b` must be a text, not 1"] == list(Checks(schema).problems({"a": 1, "xy": 1, "b": 1, "c": ""}))


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"format": "date"}, "2025-02-30", False),
        ({"format": "date"}, "2025-02-28", True),
        ({"format": "uuid"}, "xx", False),
        ({"format": "ipv6"}, "::1", True),
        ({"format": "email"}, 5, True),
        ({"format": "made-up"}, "xx", True),
    ],
)
def test_formats_are_checked_where_that_is_asked_for(schema: dict[str, Any], value: Any, fits: bool) -> None:
    """A server only notes them."""
    assert [] == list(Checks(schema).problems(value))
    assert fits == (not list(Checks(schema, has_formats=True).problems(value)))


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (doubling(40), "it follows more than 10,000 references"),
        ({"$ref": "#"}, "it refers to itself without end"),
        (nested(5000), "it is nested too deeply"),
    ],
)
def test_a_schema_without_end_is_broken(schema: dict[str, Any], told: str) -> None:
    """References that multiply, circles and depth are said to be a fault of the schema."""
    with pytest.raises(ValueError, match=told):
        list(Checks(schema).problems({"x": "1"}))
