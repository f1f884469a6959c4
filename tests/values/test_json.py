"""JSON, against what Node reads and writes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue, SyntaxErrorValue, TypeErrorValue
from koi_lang.js.inspect_value import inspect
from koi_lang.js.json_text import parse, parse_exactly, stringify, stringify_exactly
from koi_lang.js.keyed_collections import new_map
from koi_lang.js.number_format import NAN
from koi_lang.js.undefined import undefined

WRITTEN: list[tuple[Any, ...]] = [
    (1, (), "'1'"),
    ("a", (), "'\"a\"'"),
    (None, (), "'null'"),
    (undefined, (), "undefined"),
    (True, (), "'true'"),
    (NAN, (), "'null'"),
    (-0.0, (), "'0'"),
    (1e21, (), "'1e+21'"),
    ([], (), "'[]'"),
    ({}, (), "'{}'"),
    ([undefined, 1, NAN], (), "'[null,1,null]'"),
    ({"a": undefined, "b": [1, {"c": None}]}, (), '\'{"b":[1,{"c":null}]}\''),
    (DateValue(0), (), "'\"1970-01-01T00:00:00.000Z\"'"),
    ('é\u2028"\\\n\x01', (), '\'"é\u2028\\\\"\\\\\\\\\\\\n\\\\u0001"\''),
    ("\ud800", (), "'\"\\\\ud800\"'"),
    ({"2": 1, "a": 2, "1": 3}, (), '\'{"1":3,"2":1,"a":2}\''),
    (
        {"a": [1, {"b": 2}], "c": []},
        (None, 2),
        '\'{\\n  "a": [\\n    1,\\n    {\\n      "b": 2\\n    }\\n  ],\\n  "c": []\\n}\'',
    ),
    ([1, [2]], (None, "--"), "'[\\n--1,\\n--[\\n----2\\n--]\\n]'"),
    ({"a": 1, "b": {"a": 2, "c": 3}}, (["a", "b"],), '\'{"a":1,"b":{"a":2}}\''),
    ([1], (None, 20), "'[\\n          1\\n]'"),
    ({"a": 1}, (None, "0123456789abc"), "'{\\n0123456789\"a\": 1\\n}'"),
]
READ: list[tuple[Any, ...]] = [
    ("1", "1"),
    ("1.0", "1"),
    ("1e5", "100000"),
    ("-0", "-0"),
    ('"a"', "'a'"),
    ('{"a":[1,2,{"b":null}]}', "{ a: [ 1, 2, { b: null } ] }"),
    (" [1 , 2] ", "[ 1, 2 ]"),
    ('{"a":1,"a":2}', "{ a: 2 }"),
    ('"\\u0041\\n"', "'A\\n'"),
    ("12345678901234567890", "12345678901234567000"),
    ('{"b":1,"1":2}', "{ '1': 2, b: 1 }"),
    ("", "SyntaxError: Unexpected end of JSON input"),
    ('{"a":}', 'SyntaxError: Unexpected token \'}\', "{"a":}" is not valid JSON'),
    ("[1,]x", "SyntaxError: Unexpected token ']', \"[1,]x\" is not valid JSON"),
    ("tru}", "SyntaxError: Unexpected token '}', \"tru}\" is not valid JSON"),
    ("nul", "SyntaxError: Unexpected end of JSON input"),
    ('{"a":1}x', "SyntaxError: Unexpected non-whitespace character after JSON at position 7"),
    ("'a'", "SyntaxError: Unexpected token ''', \"'a'\" is not valid JSON"),
]


@pytest.mark.parametrize(("value", "more", "expected"), WRITTEN)
def test_values_are_written_as_in_javascript(value: Any, more: tuple[Any, ...], expected: str) -> None:
    """`JSON.stringify` gives the text that Node gives."""
    assert expected == inspect(stringify(value, *more))


@pytest.mark.parametrize(("source", "expected"), READ)
def test_texts_are_read_as_in_javascript(source: str, expected: str) -> None:
    """`JSON.parse` gives the value, or the first words of the error, that Node gives."""
    try:
        result = inspect(parse(source))
    except ErrorValue as error:
        result = str(error)

    assert expected == result


def test_functions_are_left_out() -> None:
    """A member that is a function is dropped, an item becomes null."""
    assert stringify({"a": len, "b": [len]}) == '{"b":[null]}'


def test_objects_can_say_what_they_are_in_json() -> None:
    """`toJSON` is called with the name of the member; a Map has no members of its own."""
    value = {"a": {"toJSON": lambda key: f"as {key}"}, "map": new_map([[1, 2]])}

    assert stringify(value) == '{"a":"as a","map":{}}'


def test_a_replacer_sees_every_member_and_may_drop_it() -> None:
    """It is called from the outside in; what it returns undefined for goes."""
    seen: list[str] = []

    def replace(key: str, value: Any) -> Any:
        seen.append(key)
        return undefined if key == "secret" else value

    assert (stringify({"a": {"b": 1, "secret": 2}}, replace), seen) == ('{"a":{"b":1}}', ["", "a", "b", "secret"])


def test_a_reviver_works_from_the_inside_out() -> None:
    """It replaces values, and removes members by returning undefined."""

    def revive(key: str, value: Any) -> Any:
        return undefined if key == "drop" else value * 2 if isinstance(value, int) else value

    assert parse('{"a":[1,2],"drop":1}', revive) == {"a": [2, 4]}


def test_what_contains_itself_cannot_be_written() -> None:
    """A cycle is a TypeError; the same object twice is none."""
    value: dict[str, Any] = {}
    value["self"] = value
    shared = [1]
    with pytest.raises(TypeErrorValue, match="Converting circular structure to JSON"):
        stringify(value)

    assert stringify([shared, shared]) == "[[1],[1]]"


def test_an_error_shows_the_text_around_it() -> None:
    """In a long text only the surroundings are quoted."""
    source = '{"looooooooooooooooooooooooooong":1,"b":oops,"cccccccccccccccccccc":2}'

    with pytest.raises(SyntaxErrorValue) as failure:
        parse(source)

    assert failure.value.message == """Unexpected token 'o', ..."ng":1,"b":oops,"cccc"... is not valid JSON"""


@pytest.mark.parametrize("value", [2**53 + 1, 725653563933458433, -(2**64), 10**300])
def test_whole_numbers_can_be_written_and_read_exactly(value: int) -> None:
    """For models, stores and other programs; `JSON` itself rounds them to doubles, as in Node."""
    written = stringify_exactly({"a": [value, undefined], "d": DateValue(0), "b": True})

    assert f'{{"a":[{value},null],"d":"1970-01-01T00:00:00.000Z","b":true}}' == written
    assert [value, value] == [parse_exactly(written)["a"][0], parse_exactly(str(value))]
    assert str(value) != stringify(value) or abs(value) == 2**64


def test_what_no_double_holds_either_is_read_as_one() -> None:
    """No number is too long to be read."""
    assert [math.inf, 0] == [parse_exactly("9" * 5000), parse_exactly("-0")]
