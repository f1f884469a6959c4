"""Methods of strings, against what Node gives."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.call_helpers import get, invoke, iterate
from koi_lang.js.errors import ErrorValue
from koi_lang.js.inspect_value import inspect
from koi_lang.js.regexes import regex
from koi_lang.js.undefined import undefined

METHODS: list[tuple[Any, ...]] = [
    ("abc", "at", (-1,), "'c'"),
    ("abc", "charAt", (1,), "'b'"),
    ("abc", "charAt", (9,), "''"),
    ("abc", "charCodeAt", (0,), "97"),
    ("abc", "charCodeAt", (9,), "NaN"),
    ("abc", "codePointAt", (1,), "98"),
    ("a", "concat", ("b", 1, None), "'ab1null'"),
    ("abc", "includes", ("b",), "true"),
    ("abc", "includes", ("b", 2), "false"),
    ("abc", "startsWith", ("b", 1), "true"),
    ("abc", "endsWith", ("b", 2), "true"),
    ("abcabc", "indexOf", ("c", 3), "5"),
    ("abcabc", "lastIndexOf", ("b",), "4"),
    ("abcabc", "lastIndexOf", ("b", 2), "1"),
    ("a", "localeCompare", ("B",), "-1"),
    ("a", "localeCompare", ("A",), "-1"),
    ("résumé", "localeCompare", ("resume",), "1"),
    ("item 10", "localeCompare", ("item 9", undefined, {"numeric": True}), "1"),
    ("a", "localeCompare", ("Á", undefined, {"sensitivity": "base"}), "0"),
    ("é", "normalize", (), "'é'"),
    ("7", "padStart", (3, "0"), "'007'"),
    ("abc", "padStart", (10, "12"), "'1212121abc'"),
    ("7", "padEnd", (3,), "'7  '"),
    ("ab", "repeat", (3,), "'ababab'"),
    ("ab", "repeat", (-1,), "RangeError: Invalid count value: -1"),
    ("abcdef", "slice", (-3, -1), "'de'"),
    ("abcdef", "slice", (2,), "'cdef'"),
    ("abcdef", "substring", (4, 1), "'bcd'"),
    ("abcdef", "substring", (-2, 2), "'ab'"),
    ("abcdef", "substr", (-3, 2), "'de'"),
    ("a,b,c", "split", (",",), "[ 'a', 'b', 'c' ]"),
    ("a,b,c", "split", (",", 2), "[ 'a', 'b' ]"),
    ("abc", "split", ("",), "[ 'a', 'b', 'c' ]"),
    ("abc", "split", (), "[ 'abc' ]"),
    ("", "split", (",",), "[ '' ]"),
    ("", "split", ("",), "[]"),
    ("a1b22c", "split", (regex("\\d+"),), "[ 'a', 'b', 'c' ]"),
    ("a1b2", "split", (regex("(\\d)"),), "[ 'a', '1', 'b', '2', '' ]"),
    ("Ab", "toUpperCase", (), "'AB'"),
    ("Ab", "toLowerCase", (), "'ab'"),
    ("straße", "toUpperCase", (), "'STRASSE'"),
    (" \xa0x\ufeff\n", "trim", (), "'x'"),
    (" x ", "trimStart", (), "'x '"),
    (" x ", "trimEnd", (), "' x'"),
    ("x-x", "replace", ("x", "[$&]"), "'[x]-x'"),
    ("x-x", "replaceAll", ("x", "$$"), "'$-$'"),
    ("John Smith", "replace", (regex("(\\w+)\\s(\\w+)"), "$2, $1"), "'Smith, John'"),
    ("2024-03", "replace", (regex("(?<y>\\d+)-(?<m>\\d+)"), "$<m>/$<y>"), "'03/2024'"),
    ("aBc", "replace", (regex("b", "i"), "$`|$'"), "'aa|cc'"),
    ("abc", "replaceAll", (regex("b", "g"), "x"), "'axc'"),
    ("a1b2", "match", (regex("\\d", "g"),), "[ '1', '2' ]"),
    ("a1b2", "match", (regex("[a-z](\\d)"),), "[ 'a1', '1', index: 0, input: 'a1b2', groups: undefined ]"),
    ("abc", "match", (regex("x"),), "null"),
    ("abc", "match", (regex("x", "g"),), "null"),
    ("a1b2", "search", (regex("\\d"),), "1"),
    ("abc", "search", ("c",), "2"),
    ("abc", "toString", (), "'abc'"),
]


def outcome(value: Any, method: str, args: tuple[Any, ...]) -> str:
    """What Node's inspection shows for a call, or the error it ends with."""
    try:
        return inspect(invoke(value, method, *args))
    except ErrorValue as error:
        return str(error)


@pytest.mark.parametrize(("value", "method", "args", "expected"), METHODS)
def test_methods_of_strings_give_what_javascript_gives(
    value: str, method: str, args: tuple[Any, ...], expected: str
) -> None:
    """A method of a string has the result that Node prints."""
    assert expected == outcome(value, method, args)


def test_characters_of_a_string_are_members() -> None:
    """Positions and the length can be read, anything else is undefined."""
    assert [3, "b", undefined, undefined] == [get("abc", key) for key in ("length", 1, 9, -1)]


def test_a_function_can_make_the_replacement() -> None:
    """It is called with the match, its groups, the position and the text."""
    seen: list[Any] = []

    def shout(match: str, letter: str, at: int, text: str) -> str:
        seen.append((letter, at, text))
        return match.upper()

    assert (
        invoke("a1 b2", "replace", regex(r"([a-z])\d", "g"), shout),
        seen,
    ) == ("A1 B2", [("a", 0, "a1 b2"), ("b", 3, "a1 b2")])


def test_all_matches_can_be_iterated() -> None:
    """`matchAll` gives every match with its groups and position."""
    matches = list(iterate(invoke("a1b2", "matchAll", regex(r"([a-z])(\d)", "g"))))

    assert [*matches, [get(match, "index") for match in matches]] == [["a1", "a", "1"], ["b2", "b", "2"], [0, 2]]
