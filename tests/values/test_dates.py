"""Dates, against what Node gives."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from koi_lang.js.call_helpers import call, invoke, new
from koi_lang.js.dates import DATE
from koi_lang.js.errors import ErrorValue
from koi_lang.js.inspect_value import inspect
from koi_lang.js.number_format import NAN
from koi_lang.js.operators import add, less, subtract
from koi_lang.js.undefined import undefined

METHODS: list[tuple[Any, ...]] = [
    ("2024-03-07T10:05:09.007Z", "getFullYear", (), "2024"),
    ("2024-03-07T10:05:09.007Z", "getMonth", (), "2"),
    ("2024-03-07T10:05:09.007Z", "getDate", (), "7"),
    ("2024-03-07T10:05:09.007Z", "getDay", (), "4"),
    ("2024-03-07T10:05:09.007Z", "getHours", (), "10"),
    ("2024-03-07T10:05:09.007Z", "getMinutes", (), "5"),
    ("2024-03-07T10:05:09.007Z", "getSeconds", (), "9"),
    ("2024-03-07T10:05:09.007Z", "getMilliseconds", (), "7"),
    ("2024-03-07T10:05:09.007Z", "getTime", (), "1709805909007"),
    ("2024-03-07T10:05:09.007Z", "valueOf", (), "1709805909007"),
    ("2024-03-07T10:05:09.007Z", "getTimezoneOffset", (), "0"),
    ("2024-03-07T10:05:09.007Z", "getUTCFullYear", (), "2024"),
    ("2024-03-07T10:05:09.007Z", "getUTCMonth", (), "2"),
    ("2024-03-07T10:05:09.007Z", "getUTCDate", (), "7"),
    ("2024-03-07T10:05:09.007Z", "getUTCDay", (), "4"),
    ("2024-03-07T10:05:09.007Z", "getUTCHours", (), "10"),
    ("2024-03-07T10:05:09.007Z", "getUTCMinutes", (), "5"),
    ("2024-03-07T10:05:09.007Z", "getUTCSeconds", (), "9"),
    ("2024-03-07T10:05:09.007Z", "getUTCMilliseconds", (), "7"),
    ("2024-03-07T10:05:09.007Z", "toISOString", (), "'2024-03-07T10:05:09.007Z'"),
    ("2024-03-07T10:05:09.007Z", "toJSON", (), "'2024-03-07T10:05:09.007Z'"),
    ("2024-03-07T10:05:09.007Z", "toString", (), "'Thu Mar 07 2024 10:05:09 GMT+0000 (Coordinated Universal Time)'"),
    ("2024-03-07T10:05:09.007Z", "toDateString", (), "'Thu Mar 07 2024'"),
    ("2024-03-07T10:05:09.007Z", "toTimeString", (), "'10:05:09 GMT+0000 (Coordinated Universal Time)'"),
    ("2024-03-07T10:05:09.007Z", "toUTCString", (), "'Thu, 07 Mar 2024 10:05:09 GMT'"),
    ("2024-03-07T10:05:09.007Z", "toLocaleDateString", (), "'3/7/2024'"),
    ("2024-03-07T10:05:09.007Z", "toLocaleTimeString", (), "'10:05:09 AM'"),
    ("2024-03-07T10:05:09.007Z", "toLocaleString", (), "'3/7/2024, 10:05:09 AM'"),
    ("2024-03-07T10:05:09.007Z", "setFullYear", (2023, 1, 29), "1677665109007"),
    ("2024-03-07T10:05:09.007Z", "setMonth", (14,), "1741341909007"),
    ("2024-03-07T10:05:09.007Z", "setDate", (0,), "1709201109007"),
    ("2024-03-07T10:05:09.007Z", "setHours", (25, 61), "1709863269007"),
    ("2024-03-07T10:05:09.007Z", "setMinutes", (-1,), "1709805549007"),
    ("2024-03-07T10:05:09.007Z", "setSeconds", (5, 5), "1709805905005"),
    ("2024-03-07T10:05:09.007Z", "setMilliseconds", (1500,), "1709805910500"),
    ("2024-03-07T10:05:09.007Z", "setTime", (0,), "0"),
    ("2024-03-07T10:05:09.007Z", "setUTCHours", (1, 2, 3, 4), "1709773323004"),
    ("2024-03-07T10:05:09.007Z", "setMonth", (NAN,), "NaN"),
    ("nonsense", "getTime", (), "NaN"),
    ("nonsense", "getMonth", (), "NaN"),
    ("nonsense", "toString", (), "'Invalid Date'"),
    ("nonsense", "toJSON", (), "null"),
    ("nonsense", "toISOString", (), "RangeError: Invalid time value"),
    ("nonsense", "toLocaleDateString", (), "'Invalid Date'"),
    ("-000001-01-01", "toISOString", (), "'-000001-01-01T00:00:00.000Z'"),
    ("-000001-01-01", "toDateString", (), "'Fri Jan 01 -0001'"),
]
TEXTS: list[tuple[Any, ...]] = [
    ("2024-03-07", "1709769600000"),
    ("2024-03", "1709251200000"),
    ("2024", "1704067200000"),
    ("2024-03-07T10:00", "1709805600000"),
    ("2024-03-07T10:00:00.5+02:00", "1709798400500"),
    ("2024-02-30", "1709251200000"),
    ("2024-13-01", "NaN"),
    ("2024-03-07T24:00", "1709856000000"),
    ("2024-03-07 10:00", "1709805600000"),
    ("Thu, 07 Mar 2024 10:00:00 GMT", "1709805600000"),
    ("March 7, 2024", "1709769600000"),
    ("7 Mar 2024 10:00 PM", "1709848800000"),
    ("3/7/2024", "1709769600000"),
    ("1/2/03", "1041465600000"),
    ("2024/03/07", "1709769600000"),
    ("Thu Mar 07 2024 10:00:00 GMT+0100 (CET)", "1709802000000"),
    ("2024-01-05T10", "NaN"),
    ("2024-01-05Tgarbage", "NaN"),
    ("2024-01-05 foo", "NaN"),
    ("2024-01-05T10:2", "NaN"),
    ("2024-01-05T10:20+2", "NaN"),
    ("2024-01-05T10:20+0200", "1704442800000"),
    ("2024-01-05T10:20:30EST", "NaN"),
    ("2024-01-05T10:20 PM", "NaN"),
    ("2024-01-05T10:20:30,5Z", "NaN"),
    ("2024-01-05T10:20:30.123456789012Z", "1704450030123"),
    ("2024-01-05t10:20z", "1704450000000"),
    ("2024-01-05T24:01", "NaN"),
    ("2024-01-05 10:20Z", "1704450000000"),
    ("2024-01-05 25:00", "NaN"),
    ("2024-01-05 12:00 am", "1704412800000"),
    ("2024-01-05 10:00 -0530", "1704468600000"),
    ("2024-01-05-", "NaN"),
    ("2024-1-5", "1704412800000"),
    (" 2024-01-05", "1704412800000"),
    ("2410:20:30.5", "NaN"),
    ("05-Jan-2024", "1704412800000"),
    ("2024.01.05", "1704412800000"),
    ("Jan 5", "978652800000"),
    ("Jan 5th 2024", "NaN"),
    ("Jan 5 2024 10:00 EST", "1704466800000"),
    ("Jan 5 2024 10:00 GMT-8", "1704477600000"),
    ("Sept 5 2024 (noon (UTC)) 12:00 UTC", "1725537600000"),
    ("10:20:30.5 1/2/49", "2493195630500"),
    ("1/2/50", "-631065600000"),
    ("13/1/2024", "NaN"),
    ("12:00", "NaN"),
    ("hello", "NaN"),
    ("", "NaN"),
]
BUILT: list[tuple[Any, ...]] = [
    ((2024, 0), "2024-01-01T00:00:00.000Z"),
    ((2024, 0, 31), "2024-01-31T00:00:00.000Z"),
    ((2024, 1, 30, 12, 30, 15, 99), "2024-03-01T12:30:15.099Z"),
    ((99, 0), "1999-01-01T00:00:00.000Z"),
    ((2024, 12), "2025-01-01T00:00:00.000Z"),
    ((2024, undefined), "Invalid Date"),
    ((0,), "1970-01-01T00:00:00.000Z"),
    ((1.9,), "1970-01-01T00:00:00.001Z"),
    ((None,), "1970-01-01T00:00:00.000Z"),
    ((undefined,), "Invalid Date"),
    (("2024-01-01",), "2024-01-01T00:00:00.000Z"),
    ((8640000000000001.0,), "Invalid Date"),
]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Another local time zone while a test runs: the one it names, UTC otherwise."""
    monkeypatch.setenv("TZ", getattr(request, "param", "UTC"))
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(("source", "method", "args", "expected"), METHODS)
def test_methods_of_dates_give_what_javascript_gives(
    source: str, method: str, args: tuple[Any, ...], expected: str
) -> None:
    """A method of a date has the result that Node prints in UTC."""
    try:
        result = inspect(invoke(new(DATE, source), method, *args))
    except ErrorValue as error:
        result = str(error)

    assert expected == result


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(("source", "expected"), TEXTS)
def test_texts_are_read_as_in_javascript(source: str, expected: str) -> None:
    """ISO forms and the usual English ones are read, others are NaN."""
    assert expected == inspect(invoke(DATE, "parse", source))


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(("args", "expected"), BUILT)
def test_dates_are_made_of_what_javascript_makes_them_of(args: tuple[Any, ...], expected: str) -> None:
    """`new Date(…)` takes a moment, a text, or the numbers of a date."""
    assert expected == inspect(new(DATE, *args))


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((2024, 0, 1), "2024-01-01T05:00:00.000Z"),
        ((2024, 6, 1), "2024-07-01T04:00:00.000Z"),
        ((2024, 2, 10, 2, 30), "2024-03-10T07:30:00.000Z"),
        ((2024, 10, 3, 1, 30), "2024-11-03T05:30:00.000Z"),
    ],
)
def test_local_time_knows_summer_time(numbers: tuple[int, ...], expected: str) -> None:
    """A skipped hour counts on from before it, one that occurs twice is the first, as in Node."""
    assert expected == invoke(new(DATE, *numbers), "toISOString")


def test_dates_count_and_compare_as_numbers() -> None:
    """The difference of two dates is in milliseconds; adding joins texts."""
    early, late = new(DATE, 0), new(DATE, 1500)

    assert [subtract(late, early), less(early, late), add("", add(late, "x"))[-1]] == [1500, True, "x"]


def test_a_copy_of_a_date_is_another_date() -> None:
    """`new Date(date)` shares nothing with the date."""
    first = new(DATE, 0)
    second = new(DATE, first)
    invoke(second, "setTime", 5)

    assert [invoke(date, "getTime") for date in (first, second)] == [0, 5]


def test_a_call_without_new_is_the_text_of_now() -> None:
    """`Date()` gives a text, `new Date()` the present moment."""
    before = time.time() * 1000

    assert isinstance(call(DATE), str)
    assert before - 1 <= invoke(new(DATE), "getTime") <= time.time() * 1000
