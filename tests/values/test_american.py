"""Dates and times in American English with options, against what Node gives."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from koi_lang.js.call_helpers import invoke
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import ErrorValue

SUMMER, WINTER = 1748790249000, 1735086600000  # 2025-06-01T15:04:09Z, 2024-12-25T00:30:00Z
FORMS: list[tuple[int, dict[str, Any], str]] = [
    (
        WINTER,
        {
            "weekday": "long",
            "year": "numeric",
            "month": "narrow",
            "day": "numeric",
            "hour": "numeric",
            "minute": "numeric",
            "second": "numeric",
            "hourCycle": "h12",
        },
        "Wednesday, D 25, 2024, 12:30:00 AM",
    ),
    (
        WINTER,
        {
            "year": "numeric",
            "month": "narrow",
            "day": "2-digit",
            "hour": "numeric",
            "minute": "2-digit",
            "hourCycle": "h23",
        },
        "D 25, 2024, 00:30",
    ),
    (
        SUMMER,
        {
            "weekday": "short",
            "month": "numeric",
            "day": "2-digit",
            "hour": "numeric",
            "minute": "2-digit",
            "hourCycle": "h12",
        },
        "Sun, 6/01, 3:04 PM",
    ),
    (
        SUMMER,
        {
            "weekday": "narrow",
            "year": "2-digit",
            "month": "long",
            "day": "2-digit",
            "hour": "numeric",
            "hourCycle": "h23",
        },
        "S, June 01, 25 at 15",
    ),
    (
        WINTER,
        {
            "month": "long",
            "day": "numeric",
            "hour": "numeric",
            "minute": "numeric",
            "second": "numeric",
            "hourCycle": "h12",
        },
        "December 25 at 12:30:00 AM",
    ),
    (SUMMER, {"month": "narrow", "day": "numeric", "hour": "numeric"}, "J 1, 3 PM"),
    (
        WINTER,
        {
            "weekday": "narrow",
            "day": "2-digit",
            "hour": "numeric",
            "minute": "numeric",
            "second": "numeric",
            "hour12": True,
        },
        "25 W, 12:30:00 AM",
    ),
    (SUMMER, {"year": "numeric", "month": "numeric", "day": "numeric", "minute": "numeric"}, "6/1/2025, 4"),
    (
        WINTER,
        {
            "weekday": "long",
            "year": "2-digit",
            "month": "short",
            "day": "2-digit",
            "minute": "2-digit",
            "second": "2-digit",
        },
        "Wednesday, Dec 25, 24, 30:00",
    ),
    (
        SUMMER,
        {"weekday": "narrow", "year": "numeric", "month": "numeric", "day": "numeric", "hour": "numeric"},
        "S, 6/1/2025, 3 PM",
    ),
    (SUMMER, {"month": "short", "minute": "numeric"}, "Jun, 4"),
    (
        WINTER,
        {
            "weekday": "short",
            "year": "2-digit",
            "month": "short",
            "day": "numeric",
            "hour": "numeric",
            "minute": "2-digit",
            "hour12": False,
        },
        "Wed, Dec 25, 24, 24:30",
    ),
    (
        WINTER,
        {"year": "2-digit", "month": "narrow", "hour": "2-digit", "minute": "2-digit", "hourCycle": "h23"},
        "D 24, 00:30",
    ),
    (SUMMER, {"month": "2-digit", "day": "2-digit", "hour": "numeric", "minute": "2-digit"}, "06/01, 3:04 PM"),
    (SUMMER, {"year": "numeric", "month": "numeric", "hour": "numeric"}, "6/2025, 3 PM"),
    (SUMMER, {"weekday": "short", "year": "numeric", "month": "numeric", "day": "numeric"}, "Sun, 6/1/2025"),
    (
        WINTER,
        {
            "weekday": "short",
            "month": "short",
            "day": "numeric",
            "hour": "numeric",
            "minute": "numeric",
            "second": "numeric",
        },
        "Wed, Dec 25, 12:30:00 AM",
    ),
    (SUMMER, {"month": "narrow", "hour": "2-digit", "minute": "2-digit", "hour12": False}, "J, 15:04"),
    (
        WINTER,
        {"weekday": "long", "month": "numeric", "day": "numeric", "hour": "2-digit", "hourCycle": "h12"},
        "Wednesday, 12/25, 12 AM",
    ),
    (
        SUMMER,
        {"year": "numeric", "month": "numeric", "day": "numeric", "hour": "numeric", "hour12": True},
        "6/1/2025, 3 PM",
    ),
    (SUMMER, {"weekday": "narrow", "month": "2-digit", "day": "2-digit"}, "S, 06/01"),
    (
        WINTER,
        {"weekday": "short", "month": "short", "day": "2-digit", "minute": "numeric", "second": "numeric"},
        "Wed, Dec 25, 30:00",
    ),
    (SUMMER, {"month": "short", "day": "numeric", "hour": "numeric", "hour12": True}, "Jun 1, 3 PM"),
    (
        SUMMER,
        {"weekday": "narrow", "month": "short", "day": "numeric", "hour": "2-digit", "hour12": False},
        "S, Jun 1, 15",
    ),
    (WINTER, {"timeStyle": "full"}, "12:30:00 AM Coordinated Universal Time"),
    (
        WINTER,
        {"dateStyle": "full", "timeStyle": "medium", "hourCycle": "h23"},
        "Wednesday, December 25, 2024 at 00:30:00",
    ),
    (WINTER, {"dateStyle": "medium", "timeStyle": "short"}, "Dec 25, 2024, 12:30 AM"),
    (SUMMER, {"dateStyle": "medium", "timeStyle": "short"}, "Jun 1, 2025, 3:04 PM"),
    (WINTER, {"dateStyle": "medium", "hourCycle": "h12"}, "Dec 25, 2024"),
    (WINTER, {"timeStyle": "short", "hour12": True}, "12:30 AM"),
    (WINTER, {"dateStyle": "medium", "hourCycle": "h23"}, "Dec 25, 2024"),
    (WINTER, {"dateStyle": "long", "timeStyle": "medium"}, "December 25, 2024 at 12:30:00 AM"),
    (SUMMER, {"timeStyle": "short", "hour12": False}, "15:04"),
    (SUMMER, {"dateStyle": "full", "timeStyle": "medium", "hourCycle": "h23"}, "Sunday, June 1, 2025 at 15:04:09"),
]
ZONES = [
    ("UTC", "7/1/25, 12:00:00 AM Coordinated Universal Time", "12:00:00 AM UTC"),
    ("America/New_York", "6/30/25, 8:00:00 PM Eastern Daylight Time", "8:00:00 PM EDT"),
    ("Europe/London", "7/1/25, 1:00:00 AM British Summer Time", "1:00:00 AM GMT+1"),
    ("Europe/Berlin", "7/1/25, 2:00:00 AM Central European Summer Time", "2:00:00 AM GMT+2"),
    ("Asia/Kolkata", "7/1/25, 5:30:00 AM India Standard Time", "5:30:00 AM GMT+5:30"),
    ("Asia/Tokyo", "7/1/25, 9:00:00 AM Japan Standard Time", "9:00:00 AM GMT+9"),
]
REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("toLocaleString", ("de-DE",), "`de-DE` is not known here, only `en-US` is; "),
    ("toLocaleDateString", (["en-GB"],), "`en-GB` is not known here"),
    ("toLocaleDateString", ("en-US", {"timeStyle": "short"}), "`timeStyle` in a date"),
    ("toLocaleString", ("en-US", {"dateStyle": "long", "hour": "numeric"}), "`hour` beside a style"),
    ("toLocaleString", ("en-US", {"year": "long"}), '"long" is no value of `year`, only numeric, 2-digit'),
    ("toLocaleString", ("en-US", {"weekdya": "long"}), "`weekdya` is not known here; did you mean `weekday`?"),
    ("toLocaleString", ("en-US", {"timeZone": "Mars/Base"}), "Invalid time zone specified: Mars/Base"),
    ("toLocaleString", ("en-US", {"year": "numeric", "day": "numeric"}), "`year` and `day` need `month`, too"),
]


@pytest.mark.parametrize(("ms", "options", "written"), FORMS)
def test_options_choose_what_is_written(ms: int, options: dict[str, Any], written: str) -> None:
    """Each field has the width that the options give it, and stands where Americans expect it."""
    assert written == invoke(DateValue(ms), "toLocaleString", "en-US", {**options, "timeZone": "UTC"})


@pytest.mark.parametrize(("zone", "full", "long"), ZONES)
def test_time_zones_have_names(zone: str, full: str, long: str) -> None:
    """A named zone decides about the clock, and is called as in English where its name is wanted."""
    date = DateValue(1751328000000)
    styles = ({"dateStyle": "short", "timeStyle": "full"}, {"timeStyle": "long"})

    assert [full, long] == [invoke(date, "toLocaleString", "en-US", {**style, "timeZone": zone}) for style in styles]


def test_what_is_left_open_is_usual() -> None:
    """Without fields of its own a date has day, month and year, a time hours, minutes and seconds."""
    date, zone = DateValue(WINTER), {"timeZone": "UTC"}

    assert ["12/25/2024", "12:30:00 AM", "12/25/2024, 12 AM"] == [
        invoke(date, "toLocaleDateString", [], zone),
        invoke(date, "toLocaleTimeString", "en", zone),
        invoke(date, "toLocaleDateString", "en-US", {**zone, "hour": "numeric"}),
    ]


@pytest.mark.parametrize(("method", "given", "told"), REFUSED)
def test_what_is_not_known_is_refused(method: str, given: tuple[Any, ...], told: str) -> None:
    """Another language, an option or a value that is not known is an error, and no text of another form."""
    with pytest.raises(ErrorValue) as refused:
        invoke(DateValue(SUMMER), method, *given)

    assert told in refused.value.message


def test_numbers_in_other_languages_are_refused() -> None:
    """A number is not grouped as Americans do it where another language is asked for."""
    with pytest.raises(ErrorValue, match="`de-DE` is not known here"):
        invoke(1234.5, "toLocaleString", "de-DE")


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in New York."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_zone_of_the_machine_has_its_whole_name(new_york: None) -> None:
    """As a text a date names the time zone in words."""
    assert "Sun Jun 01 2025 11:04:09 GMT-0400 (Eastern Daylight Time)" == str(DateValue(SUMMER))
