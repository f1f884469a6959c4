"""What `console.log` prints, against what Node prints."""

from __future__ import annotations

import datetime
import decimal
import pathlib
from typing import Any

import pytest

from koi_lang.js.call_helpers import invoke, put
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import AggregateErrorValue, ErrorValue, TypeErrorValue, caught
from koi_lang.js.inspect_value import console_text, inspect
from koi_lang.js.keyed_collections import new_map, new_set
from koi_lang.js.number_format import NAN
from koi_lang.js.regexes import regex
from koi_lang.js.undefined import undefined

VALUES: list[tuple[Any, ...]] = [
    (1, "1"),
    (-0.0, "-0"),
    (NAN, "NaN"),
    (True, "true"),
    (None, "null"),
    (undefined, "undefined"),
    ([], "[]"),
    ({}, "{}"),
    ([1, 2], "[ 1, 2 ]"),
    ({"a": 1, "b-c": 2, "2": 3}, "{ '2': 3, a: 1, 'b-c': 2 }"),
    (
        ["it's", 'say "x"', "a'b\"c", "line\nbreak", "\x1b\\"],
        "[ \"it's\", 'say \"x\"', `a'b\"c`, 'line\\nbreak', '\\x1B\\\\' ]",
    ),
    ([[[[1]]]], "[ [ [ [Array] ] ] ]"),
    ({"a": {"b": {"c": {"d": 1}}}}, "{ a: { b: { c: [Object] } } }"),
    ({"a": {"b": {"c": {}}}}, "{ a: { b: { c: {} } } }"),
    ([[[[]]]], "[ [ [ [] ] ] ]"),
    ([0, 1, 2, 3, 4, 5, 6], "[\n  0, 1, 2, 3,\n  4, 5, 6\n]"),
    (
        list(range(30)),
        "[\n   0,  1,  2,  3,  4,  5,  6,  7,  8,\n   9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "  18, 19, 20, 21, 22, 23, 24, 25, 26,\n  27, 28, 29\n]",
    ),
    (
        list(range(101)),
        "[\n   0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11,\n"
        "  12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,\n"
        "  24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n"
        "  36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,\n"
        "  48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59,\n"
        "  60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,\n"
        "  72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83,\n"
        "  84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95,\n  96, 97, 98, 99,\n  ... 1 more item\n]",
    ),
    ([1.5, 100, -3, 22.25, 7, 8, 9, 10], "[\n    1.5, 100, -3,\n  22.25,   7,  8,\n      9,  10\n]"),
    (
        ["apple", "fig", "banana", "kiwi", "cherry", "plum", "pear"],
        "[\n  'apple',  'fig',\n  'banana', 'kiwi',\n  'cherry', 'plum',\n  'pear'\n]",
    ),
    (
        [
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ],
        "[\n  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n"
        "  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n"
        "  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',\n"
        "  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'\n]",
    ),
    (["a", "a", "a", "a", "a", "a", "a", "a", {"k": 1}], "[ 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', { k: 1 } ]"),
    (
        {"k": "x" * 100},
        "{\n  k: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxx'\n}",
    ),
    (
        {"k": ("one line that is long enough to be broken\nand a second one that is longer still\n")},
        "{\n  k: 'one line that is long enough to be broken\\n' +\n    'and a second one that is longer still\\n'\n}",
    ),
    (
        {
            "name": "Ada",
            "roles": ["admin", "author"],
            "address": {"city": "London", "tags": ["a", "b"]},
            "active": True,
        },
        "{\n  name: 'Ada',\n  roles: [ 'admin', 'author' ],\n"
        "  address: { city: 'London', tags: [ 'a', 'b' ] },\n  active: true\n}",
    ),
    (
        {"alpha": "aaaaaaaaaaaaaaaaaaaa", "beta": "bbbbbbbbbbbbbbbbbbbb", "gamma": "cccccccccccccccccccc"},
        "{\n  alpha: 'aaaaaaaaaaaaaaaaaaaa',\n  beta: 'bbbbbbbbbbbbbbbbbbbb',\n  gamma: 'cccccccccccccccccccc'\n}",
    ),
    ([{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "[ { id: 1, name: 'one' }, { id: 2, name: 'two' } ]"),
    ([[1, 2, [3, 4, [5]]], {"a": {"b": {"c": 1}}}], "[ [ 1, 2, [ 3, 4, [Array] ] ], { a: { b: [Object] } } ]"),
    (["日本語", "é", ""], "[ '日本語', 'é', '' ]"),
    ([undefined, None, [undefined]], "[ undefined, null, [ undefined ] ]"),
    ({"a": [1, 2, 3, 4, 5, 6, 7], "b": "text"}, "{\n  a: [\n    1, 2, 3, 4,\n    5, 6, 7\n  ],\n  b: 'text'\n}"),
    (DateValue(0), "1970-01-01T00:00:00.000Z"),
    ([DateValue(NAN)], "[ Invalid Date ]"),
    (regex("a\\/b", "gi"), "/a\\/b/gi"),
    ([regex("x")], "[ /x/ ]"),
    ([{"a": [{"b": [1]}]}], "[ { a: [ [Object] ] } ]"),
    (
        [
            "w",
            "ww",
            "www",
            "wwww",
            "wwwww",
            "wwwwww",
            "wwwwwww",
            "wwwwwwww",
            "wwwwwwwww",
            "wwwwwwwwww",
            "wwwwwwwwwww",
            "wwwwwwwwwwww",
        ],
        "[\n  'w',           'ww',\n  'www',         'wwww',\n  'wwwww',       'wwwwww',\n"
        "  'wwwwwww',     'wwwwwwww',\n  'wwwwwwwww',   'wwwwwwwwww',\n"
        "  'wwwwwwwwwww', 'wwwwwwwwwwww'\n]",
    ),
]
LINES: list[tuple[Any, ...]] = [
    (("plain",), "plain"),
    (("a", 1, "b"), "a 1 b"),
    (("%s is %d years", "Bob", 42.5), "Bob is 42.5 years"),
    (("%i %f", "42.9px", "1.5x"), "42 1.5"),
    (("%j", {"a": [1]}), '{"a":[1]}'),
    (("%o", [1, {"a": 2}]), "[ 1, { a: 2 }, [length]: 2 ]"),
    (("%O", {"a": {"b": {"c": {}}}}), "{ a: { b: { c: {} } } }"),
    (("%s", {"a": {"b": 1}}), "{ a: [Object] }"),
    (("%s %s", None, undefined), "null undefined"),
    (("%s", -0.0), "-0"),
    (("%d", {}), "NaN"),
    (("100%", 5), "100% 5"),
    (("%s",), "%s"),
    (("%% %s", 1), "% 1"),
    (("%c styled", "css"), " styled"),
    (("a", "%s", 1), "a %s 1"),
    ((5, "%s", 1), "5 %s 1"),
    (("%x", 1), "%x 1"),
    (([1], "a", None), "[ 1 ] a null"),
    (("%s", "a", {"b": 1}), "a { b: 1 }"),
    ((), ""),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values_are_written_as_node_writes_them(value: Any, expected: str) -> None:
    """Quotes, line breaks, columns and depth are those of Node's inspection."""
    assert expected == inspect(value)


@pytest.mark.parametrize(("values", "expected"), LINES)
def test_lines_are_put_together_as_node_does(values: tuple[Any, ...], expected: str) -> None:
    """Texts come raw, placeholders of the first one are filled, the rest follows after spaces."""
    assert expected == console_text(*values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (new_map([["a", 1], [{"x": 1}, [1, 2]]]), "Map(2) { 'a' => 1, { x: 1 } => [ 1, 2 ] }"),
        (new_set(["a", 1]), "Set(2) { 'a', 1 }"),
        (new_map(), "Map(0) {}"),
        ([new_map([["a", {"b": {"c": 1}}]])], "[ Map(1) { 'a' => { b: [Object] } } ]"),
        ({"a": {"b": {"c": new_map([[1, 2]]), "d": new_set([1])}}}, "{ a: { b: { c: [Map], d: [Set] } } }"),
        (new_map([["a", 1]]).keys(), "[Map Iterator] { 'a' }"),
        (new_map([["a", 1]]).entries(), "[Map Entries] { [ 'a', 1 ] }"),
        (invoke([1], "values"), "Object [Array Iterator] {}"),
    ],
)
def test_collections_show_their_size_and_content(value: Any, expected: str) -> None:
    """Maps and sets print as in Node, also inside other objects."""
    assert expected == inspect(value)


async def waits() -> None:
    """An asynchronous function to print."""


def works() -> None:
    """A function to print."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (works, "[Function: works]"),
        (waits, "[AsyncFunction: waits]"),
        (lambda: 1, "[Function (anonymous)]"),
        ({"f": works}, "{ f: [Function: works] }"),
        (ErrorValue, "[class ErrorValue]"),
        (len, "[Function: len]"),
    ],
)
def test_functions_show_their_kind_and_name(value: Any, expected: str) -> None:
    """Functions print in brackets."""
    assert expected == inspect(value)


def test_errors_show_their_message_and_what_was_added() -> None:
    """An error stands in brackets inside other values; causes and added members follow."""
    error = TypeErrorValue("bad", ErrorValue("inner"))
    put(error, "code", 5)

    assert [
        inspect(ErrorValue("x")), inspect([ErrorValue("x")]), inspect({"e": error}),
    ] == ["Error: x", "[ [Error: x] ]", "{ e: [TypeError: bad] { code: 5, [cause]: [Error: inner] } }"]  # fmt: skip


def test_an_aggregate_error_shows_its_errors() -> None:
    """The errors it is made of follow its message."""
    assert inspect([AggregateErrorValue([1, 2], "all")]) == "[ [AggregateError: all] { [errors]: [ 1, 2 ] } ]"


def test_a_python_exception_shows_no_cause_of_its_own() -> None:
    """What stands for a Python exception prints like any error."""
    assert inspect(caught(ValueError("bad"))) == "ValueError: bad"


def test_what_contains_itself_is_marked() -> None:
    """Every object that occurs inside itself gets a number."""
    value: dict[str, Any] = {"a": {"b": {}}}
    value["a"]["b"]["c"] = value["a"]
    value["d"] = value
    items: list[Any] = [1]
    items.append(items)

    assert [inspect(value), inspect(items)] == [
        "<ref *2> { a: <ref *1> { b: { c: [Circular *1] } }, d: [Circular *2] }",
        "<ref *1> [ 1, [Circular *1] ]",
    ]


def test_a_long_set_is_cut_after_a_hundred() -> None:
    """Sets are not set in columns and say how much was left out."""
    lines = inspect(new_set(range(102))).split("\n")

    assert [*lines[:2], *lines[-3:]] == ["Set(102) {", "  0,", "  99,", "  ... 2 more items", "}"]


def test_python_objects_print_themselves() -> None:
    """What comes from a Python module prints as Python prints it."""
    assert inspect([1j]) == "[ 1j ]"


def test_functions_without_a_name_are_anonymous() -> None:
    """What the compiler calls a function that has no name is not shown as its name."""

    def anonymous_2() -> None: ...

    def named() -> None: ...

    assert "[ [Function (anonymous)], [Function: named] ]" == inspect([anonymous_2, named])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({1, 2}, "Set(2) { 1, 2 }"),
        ({"a": frozenset({"x"})}, "{ a: Set(1) { 'x' } }"),
        (set(), "Set(0) {}"),
        (datetime.datetime(2025, 6, 1, 15, 4), "2025-06-01T15:04:00"),
        ([datetime.date(2025, 6, 1), datetime.time(1, 2)], "[ 2025-06-01, 01:02:00 ]"),
        (datetime.timedelta(days=1, seconds=5), "1 day, 0:00:05"),
        (decimal.Decimal("1.50"), "1.50"),
        (b"ab", "<Buffer 61 62>"),
        (b"", "<Buffer >"),
        (bytes(52), f"<Buffer {' '.join(['00'] * 50)} ... 2 more bytes>"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
    ],
)
def test_values_of_python_have_a_form_of_their_own(value: Any, shown: str) -> None:
    """What Python modules give is shown as the kindred value of Koi or Node, and not as Python writes it."""
    assert shown == inspect(value)
