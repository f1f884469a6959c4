"""Every global, against what Node gives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from koi_lang.js.call_helpers import call, get, invoke, new, put
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.number_format import INFINITY, NAN
from koi_lang.js.operators import same, type_of
from koi_lang.js.undefined import undefined

_LOADED_LATER = (
    "AbortController", "AbortSignal", "DOMException", "TextDecoder", "TextEncoder", "Uint8Array", "URL",
    "URLSearchParams",
)  # fmt: skip
CALLS: list[tuple[Any, ...]] = [
    (
        "Intl.NumberFormat",
        ("de-DE",),
        "RangeError: `de-DE` is not known here, only `en-US` is; put the text together yourself, or import a Python "
        "module that knows it",
    ),
    ("Object.keys", ({"b": 1, "2": 2, "1": 3},), "[ '1', '2', 'b' ]"),
    ("Object.values", ({"a": 1},), "[ 1 ]"),
    ("Object.entries", (["x"],), "[ [ '0', 'x' ] ]"),
    ("Object.keys", (None,), "TypeError: Cannot convert undefined or null to object"),
    ("Object.assign", ({"a": 1}, {"b": 2}, None, "xy"), "{ '0': 'x', '1': 'y', a: 1, b: 2 }"),
    ("Object.fromEntries", ([["a", 1]],), "{ a: 1 }"),
    ("Object.is", (NAN, NAN), "true"),
    ("Object.is", (0, -0.0), "false"),
    ("Object.hasOwn", ({"a": 1}, "a"), "true"),
    ("Object.freeze", ({"a": 1},), "{ a: 1 }"),
    ("Object", (None,), "{}"),
    ("Array.isArray", ([1],), "true"),
    ("Array.isArray", ("a",), "false"),
    ("Array.of", (1, 2), "[ 1, 2 ]"),
    ("Array.from", ("ab",), "[ 'a', 'b' ]"),
    ("Array.from", ({"length": 2},), "[ undefined, undefined ]"),
    ("Array.from", (5,), "[]"),
    ("Array", (1, 2), "[ 1, 2 ]"),
    ("String", (None,), "'null'"),
    ("String.fromCharCode", (72, 105), "'Hi'"),
    ("String.fromCharCode", (-2, 65601, 0xD83D, 0xDE00), "'\ufffeA😀'"),
    ("Math.sinh", (-710.9,), "-Infinity"),
    ("String.fromCodePoint", (128512,), "'😀'"),
    ("Number", ("0x10",), "16"),
    ("Number", (), "0"),
    ("Number.isInteger", (5.0,), "true"),
    ("Number.isInteger", ("5",), "false"),
    ("Number.isSafeInteger", (9007199254740992,), "false"),
    ("Number.isFinite", ("5",), "false"),
    ("Number.isNaN", ("x",), "false"),
    ("Number.parseFloat", ("1.5x",), "1.5"),
    ("Boolean", ("",), "false"),
    ("Boolean", ([],), "true"),
    ("Math.abs", (-5,), "5"),
    ("Math.abs", (None,), "0"),
    ("Math.ceil", (-0.5,), "-0"),
    ("Math.floor", (-1.5,), "-2"),
    ("Math.round", (2.5,), "3"),
    ("Math.round", (-2.5,), "-2"),
    ("Math.round", (0.49999999999999994,), "0"),
    ("Math.trunc", (-4.7,), "-4"),
    ("Math.sign", (-3,), "-1"),
    ("Math.max", (1, "3", 2), "3"),
    ("Math.max", (), "-Infinity"),
    ("Math.min", (1, undefined), "NaN"),
    ("Math.min", (), "Infinity"),
    ("Math.sqrt", (16,), "4"),
    ("Math.sqrt", (-1,), "NaN"),
    ("Math.cbrt", (27,), "3"),
    ("Math.pow", (2, 0.5), "1.4142135623730951"),
    ("Math.hypot", (3, 4), "5"),
    ("Math.hypot", (1, 1.5), "1.8027756377319948"),
    ("Math.log", (0,), "-Infinity"),
    ("Math.log", (-1,), "NaN"),
    ("Math.log2", (8,), "3"),
    ("Math.log10", (1000,), "3"),
    ("Math.log1p", (0,), "0"),
    ("Math.exp", (1,), "2.718281828459045"),
    ("Math.expm1", (0,), "0"),
    ("Math.exp", (1000,), "Infinity"),
    ("Math.sin", (0,), "0"),
    ("Math.cos", (0,), "1"),
    ("Math.tan", (0,), "0"),
    ("Math.asin", (2,), "NaN"),
    ("Math.acos", (1,), "0"),
    ("Math.atan", (1,), "0.7853981633974483"),
    ("Math.atan2", (1, 1), "0.7853981633974483"),
    ("Math.sinh", (0,), "0"),
    ("Math.cosh", (1000,), "Infinity"),
    ("Math.tanh", (1,), "0.7615941559557649"),
    ("Math.asinh", (1,), "0.881373587019543"),
    ("Math.acosh", (1,), "0"),
    ("Math.atanh", (1,), "Infinity"),
    ("Math.fround", (5.5,), "5.5"),
    ("Math.clz32", (1,), "31"),
    ("Math.imul", (4294967295, 5), "-5"),
    ("Math.imul", (2147483647, 2147483647), "1"),
    ("parseInt", ("12px",), "12"),
    ("parseFloat", ("1.5em",), "1.5"),
    ("isNaN", ("abc",), "true"),
    ("isNaN", (undefined,), "true"),
    ("isFinite", ("12",), "true"),
    ("isFinite", (INFINITY,), "false"),
    ("encodeURIComponent", ("a b&c/é~'()*!",), '"a%20b%26c%2F%C3%A9~\'()*!"'),
    ("encodeURI", ("http://x/a b?q=é#h",), "'http://x/a%20b?q=%C3%A9#h'"),
    ("decodeURIComponent", ("%E6%97%A5%2F",), "'日/'"),
    ("decodeURI", ("%2F%20",), "'%2F '"),
    ("decodeURIComponent", ("%",), "URIError: URI malformed"),
    ("btoa", ("hello",), "'aGVsbG8='"),
    ("atob", ("aGVsbG8=",), "'hello'"),
    ("structuredClone", ({"a": [1, {"b": None}]},), "{ a: [ 1, { b: null } ] }"),
    ("structuredClone", (DateValue(0),), "1970-01-01T00:00:00.000Z"),
    ("JSON.stringify", ({"a": [1, undefined], "b": undefined},), "'{\"a\":[1,null]}'"),
    ("JSON.parse", ('{"a":1.0}',), "{ a: 1 }"),
    ("Date.UTC", (2024, 1, 29), "1709164800000"),
    ("Date.parse", ("2024-03-07T10:00:00Z",), "1709805600000"),
    ("RegExp", ("a+", "g"), "/a+/g"),
]
VALUES: list[tuple[Any, ...]] = [
    ("Math.PI", "3.141592653589793"),
    ("Math.E", "2.718281828459045"),
    ("Math.LN2", "0.6931471805599453"),
    ("Math.LN10", "2.302585092994046"),
    ("Math.LOG2E", "1.4426950408889634"),
    ("Math.LOG10E", "0.4342944819032518"),
    ("Math.SQRT2", "1.4142135623730951"),
    ("Math.SQRT1_2", "0.7071067811865476"),
    ("Number.MAX_SAFE_INTEGER", "9007199254740991"),
    ("Number.MIN_SAFE_INTEGER", "-9007199254740991"),
    ("Number.MAX_VALUE", "1.7976931348623157e+308"),
    ("Number.MIN_VALUE", "5e-324"),
    ("Number.EPSILON", "2.220446049250313e-16"),
    ("Number.POSITIVE_INFINITY", "Infinity"),
    ("Number.NaN", "NaN"),
    ("NaN", "NaN"),
    ("Infinity", "Infinity"),
    ("undefined", "undefined"),
    ("Map", "[Function: Map]"),
    ("Set", "[Function: Set]"),
    ("Promise", "[Function: Promise]"),
    ("Error.name", "'Error'"),
    ("TypeError", "[Function: TypeError]"),
    ("RangeError", "[Function: RangeError]"),
    ("SyntaxError", "[Function: SyntaxError]"),
    ("ReferenceError", "[Function: ReferenceError]"),
    ("URIError", "[Function: URIError]"),
    ("AggregateError", "[Function: AggregateError]"),
    ("parseInt", "[Function: parseInt]"),
    ("queueMicrotask", "[Function: queueMicrotask]"),
    ("structuredClone", "[Function: structuredClone]"),
    ("Object", "[Function: Object]"),
    *((name, f"[Function: {name}]") for name in _LOADED_LATER),
    ("Array", "[Function: Array]"),
    ("Date", "[Function: Date]"),
    ("RegExp", "[Function: RegExp]"),
    ("Math.max.name", "'max'"),
    ("Math.max", "[Function: max]"),
    ("console.log.name", "'log'"),
    ("Array.isArray", "[Function: isArray]"),
]


# Globals that do something rather than give something; their tests are in files of their own.
ACTIVE = {
    "clearImmediate", "clearInterval", "clearTimeout", "console", "crypto", "fetch", "performance", "process",
    "setImmediate", "setInterval", "setTimeout",
}  # fmt: skip


def named(path: str) -> Any:
    """The value of a global, or of a member of one."""
    first, *rest = path.split(".")
    value = GLOBALS[first]
    for name in rest:
        value = get(value, name)
    return value


def outcome(path: str, args: tuple[Any, ...]) -> str:
    """What Node's inspection shows for a call, or the error it ends with."""
    try:
        return inspect(call(named(path), *args))
    except ErrorValue as error:
        return str(error)


@pytest.mark.parametrize(("path", "args", "expected"), CALLS)
def test_functions_of_the_globals_give_what_javascript_gives(path: str, args: tuple[Any, ...], expected: str) -> None:
    """A call has the result that Node prints."""
    assert expected == outcome(path, args)


@pytest.mark.parametrize(("path", "expected"), VALUES)
def test_values_of_the_globals_are_those_of_javascript(path: str, expected: str) -> None:
    """A constant or a function prints as in Node."""
    assert expected == inspect(named(path))


def test_every_global_has_a_line_here() -> None:
    """A global that is added without a test is noticed."""
    tested = {path.split(".")[0] for path, *_ in [*CALLS, *VALUES]}

    assert set(GLOBALS) == tested | ACTIVE


def test_random_numbers_and_clocks_stay_in_their_range() -> None:
    """`Math.random` is below 1; clocks do not run backward."""
    numbers = [invoke(GLOBALS["Math"], "random") for _ in range(20)]
    times = [invoke(GLOBALS["performance"], "now") for _ in range(2)]

    assert [
        all(0 <= number < 1 for number in numbers),
        times[0] <= times[1],
        invoke(GLOBALS["Date"], "now") > 1_600_000_000_000,
    ] == [True, True, True]


def test_random_identifiers_differ() -> None:
    """`crypto.randomUUID` gives a new identifier each time."""
    first, second = (invoke(GLOBALS["crypto"], "randomUUID") for _ in range(2))

    assert (len(first), first == second) == (36, False)


def test_grouping_by_what_a_callback_gives() -> None:
    """`Object.groupBy` collects items under the text of a key, `Map.groupBy` under the key itself."""
    grouped = invoke(GLOBALS["Map"], "groupBy", [1, 2, 3], lambda n: n % 2 == 1)

    assert (
        invoke(GLOBALS["Object"], "groupBy", [1, 2, 3], lambda n: "odd" if n % 2 else "even"),
        invoke(grouped, "get", True),
    ) == ({"odd": [1, 3], "even": [2]}, [1, 3])


def test_a_clone_shares_nothing_and_keeps_its_shape() -> None:
    """What occurs twice, or inside itself, does so in the copy."""
    inner = [1]
    value: dict[str, Any] = {"a": inner, "b": inner, "map": new(GLOBALS["Map"], [[inner, 1]])}
    value["self"] = value
    clone = call(GLOBALS["structuredClone"], value)

    assert [
        clone["self"] is clone, clone["a"] is clone["b"] and invoke(clone["map"], "has", clone["a"]), clone is value,
    ] == [True, True, False]  # fmt: skip


def test_functions_cannot_be_cloned() -> None:
    """`structuredClone` names what it refuses."""
    with pytest.raises(ErrorValue, match="DataCloneError: the function `parseInt` could not be cloned"):
        call(GLOBALS["structuredClone"], {"f": GLOBALS["parseInt"]})


def test_the_process_shows_the_machine_and_cannot_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`process.env` has the variables of the environment; writing to it is refused."""
    monkeypatch.setenv("KOI_TEST_VARIABLE", "seen")
    environment = named("process.env")
    with pytest.raises(TypeErrorValue, match="Cannot set property 'A'"):
        put(environment, "A", "1")

    assert ["seen", undefined, sys.platform] == [
        get(environment, "KOI_TEST_VARIABLE"), get(environment, "KOI_MISSING"), named("process.platform"),
    ]  # fmt: skip


def test_constructors_that_need_new_say_so() -> None:
    """A Map is not made by a plain call."""
    with pytest.raises(TypeErrorValue, match="Class constructor Map cannot be invoked without 'new'"):
        call(GLOBALS["Map"])


def test_constructors_are_functions_and_one_value_each() -> None:
    """`typeof Map` is a function, and `Map === Map`."""
    assert (type_of(GLOBALS["Map"]), same(GLOBALS["Map"], named("Map"))) == ("function", True)


def test_importing_the_globals_loads_no_network_code() -> None:
    """What only some programs need is imported when it is used."""
    heavy = ("httpx2", "datetime", "random", "decimal", "uuid", "urllib.parse")
    code = "import asyncio, sys; known = set(sys.modules); import koi_lang.js.globals; "
    code += f"print([name for name in {heavy!r} if name in sys.modules and name not in known])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_fetch_is_asynchronous() -> None:
    """`fetch` is a coroutine function, so that calls of it give promises."""
    assert asyncio.iscoroutinefunction(GLOBALS["fetch"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dateStyle": "medium", "timeStyle": "short"}, "Jan 1, 1970, 12:00 AM"),
        ({"dateStyle": "full", "timeStyle": "long"}, "Thursday, January 1, 1970 at 12:00:00 AM UTC"),
        ({"timeStyle": "medium"}, "12:00:00 AM"),
        ({"dateStyle": "short"}, "1/1/70"),
        ({"hour": "numeric", "minute": "2-digit"}, "12:00 AM"),
        ({"month": "short", "day": "numeric", "hour": "numeric"}, "Jan 1, 12 AM"),
        ({"hour12": False}, "1/1/1970"),
        ({}, "1/1/1970"),
    ],
)
def test_a_date_format_has_the_fields_of_its_options(options: dict[str, Any], text: str) -> None:
    """Days and times together, as Node writes them; without any field it is the day."""
    form = new(get(GLOBALS["Intl"], "DateTimeFormat"), "en-US", {"timeZone": "UTC", **options})

    assert text == invoke(form, "format", 0).replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_options_of_a_date_format_are_looked_at_when_it_is_made() -> None:
    """As Node does."""
    with pytest.raises(TypeErrorValue):
        new(get(GLOBALS["Intl"], "DateTimeFormat"), "en-US", {"dateStyle": "short", "hour": "numeric"})


@pytest.mark.parametrize(("n", "written"), [(1e-16, "1E-16"), (1e-300, "1E-300"), (1.5e-15, "1.5E-15"), (0, "0E0")])
def test_small_numbers_have_a_negative_exponent(n: float, written: str) -> None:
    """However small."""
    kind = get(GLOBALS["Intl"], "NumberFormat")

    assert written == invoke(new(kind, "en-US", {"notation": "scientific"}), "format", n)


def test_formats_of_intl_are_those_of_to_locale_string() -> None:
    """They are made once and may be passed on; a date is one, or milliseconds."""
    intl = GLOBALS["Intl"]
    number = new(get(intl, "NumberFormat"), "en-US", {"minimumIntegerDigits": 6, "maximumFractionDigits": 1})
    plain = call(get(intl, "NumberFormat"), undefined, {"useGrouping": False})
    date = new(get(intl, "DateTimeFormat"), "en-US", {"timeZone": "UTC", "month": "long", "day": "numeric"})

    assert ["001,234.6", "-000,005", "1234567", "January 1", "January 1"] == [
        invoke(number, "format", 1234.56), call(get(number, "format"), -5), invoke(plain, "format", 1234567),
        invoke(date, "format", DateValue(0)), invoke(date, "format", 5),
    ]  # fmt: skip
