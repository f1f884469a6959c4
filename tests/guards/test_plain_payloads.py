"""The quick look at payloads agrees with the one that tells what is wrong."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from koi_lang.js.undefined import undefined
from koi_lang.runtime.schema import is_plainly_fitting, problems

VALUES: list[Any] = ["a", "", 1, -1, 0, 1.0, 0.5, float("nan"), True, False, None, undefined, [], [1], {}, {"a": 1}]
TYPES: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}, {},
    {"type": "array", "items": {"type": "string"}}, {"const": 1}, {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
]  # fmt: skip


@pytest.mark.parametrize("required", [["x"], [], ["x", "y"]])
def test_what_plainly_fits_has_no_problems(required: list[str]) -> None:
    """No payload is taken at once that has a problem, whatever its fields are."""
    for (value, of_field), extra in product(product(VALUES, TYPES), ({}, {"y": 1}, {"y": undefined})):
        schema = {"type": "object", "properties": {"x": of_field}, "required": required}
        for payload in ({"x": value, **extra}, extra, value):
            assert not is_plainly_fitting(payload, schema) or not list(problems(payload, schema)), (payload, schema)


def test_simple_types_fit_at_once() -> None:
    """The usual payload is not looked into any further."""
    fields = {"a": {"type": "number"}, "b": {"type": "string"}, "c": {"type": "boolean"}}
    schema = {"type": "object", "properties": fields, "required": ["a", "b", "c"]}

    assert is_plainly_fitting({"a": 1, "b": "x", "c": True, "more": None}, schema)
    assert not is_plainly_fitting({"a": True, "b": "x", "c": True}, schema)
