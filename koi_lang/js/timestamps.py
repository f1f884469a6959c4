"""The text of a moment to milliseconds, and back."""

from __future__ import annotations

import re

from koi_lang.js.calendar_days import DateParts, clip, join, offset_ms, part, to_utc
from koi_lang.js.number_format import NAN
from koi_lang.js.zones import local_name

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ISO = re.compile(
    r"(\d{4}|[+-]\d{6})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?",
    re.ASCII,
)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3})\d*)?)?\s*([ap]m)?", re.IGNORECASE | re.ASCII)
_SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d\d)\b|(\d{4})[/-](\d{1,2})[/-](\d{1,2})", re.ASCII)
_ZONE = re.compile(r"(?:\b(?:GMT|UTC|Z)\b)?\s*([+-])(\d\d):?(\d\d)\b|\b(?:GMT|UTC|Z)\b", re.IGNORECASE | re.ASCII)
_LIMITS = ((1, 12), (1, 31), (0, 24), (0, 59), (0, 59))


def iso(ms: int) -> str:
    """`2024-03-07T10:00:00.000Z`."""
    at = part(ms)
    year = f"{at.year:04}" if 0 <= at.year <= 9999 else f"{'-' if at.year < 0 else '+'}{abs(at.year):06}"
    return f"{year}-{at.month + 1:02}-{at.day:02}T{clock(at)}.{at.millisecond:03}Z"


def clock(at: DateParts) -> str:
    """`10:00:00`."""
    return f"{at.hour:02}:{at.minute:02}:{at.second:02}"


def day_text(at: DateParts) -> str:
    """`Thu Mar 07 2024`."""
    return f"{_DAYS[at.weekday]} {_MONTHS[at.month]} {at.day:02} {_year(at.year)}"


def zoned_clock(ms: int) -> str:
    """`10:00:00 GMT+0000 (Coordinated Universal Time)`, in the local time zone."""
    minutes = offset_ms(ms) // 60_000
    sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
    return f"{clock(part(ms + offset_ms(ms)))} GMT{sign}{minutes // 60:02}{minutes % 60:02} ({local_name(ms)})"


def utc_text(ms: int) -> str:
    """`Thu, 07 Mar 2024 10:00:00 GMT`."""
    at = part(ms)
    return f"{_DAYS[at.weekday]}, {at.day:02} {_MONTHS[at.month]} {_year(at.year)} {clock(at)} GMT"


def _year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04}"


def parse(text: str) -> int | float:
    """A date in ISO form, or as it is written in English, to milliseconds; NaN when it is neither."""
    found = _ISO.fullmatch(text.strip())
    if found:
        return _from_iso(found)
    return _from_words(text)


def _from_iso(found: re.Match[str]) -> int | float:
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    numbers = [int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)]
    in_range = all(low <= n <= high for n, (low, high) in zip(numbers, _LIMITS, strict=True))
    if year == "-000000" or not in_range or (numbers[2] == 24 and any(numbers[3:])):
        return NAN
    numbers[0] -= 1
    ms = join([int(year), *numbers, int((fraction or "0").ljust(3, "0")[:3])])
    if hour is None or zone == "Z":
        return clip(ms)
    return clip(to_utc(ms) if zone is None else ms - _minutes(zone[0], zone[1:3], zone[4:6]) * 60_000)


def _minutes(sign: str, hours: str, minutes: str) -> int:
    return (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)


def _from_words(text: str) -> int | float:
    """`March 7, 2024 10:00 PM GMT+0100`, `7 Mar 2024`, `3/7/2024`: the local time zone unless one is named."""
    text = re.sub(r"\([^)]*\)", " ", text)
    moment = _TIME.search(text)
    hours = _hours(moment)
    rest = _TIME.sub(" ", text, count=1)
    day = _SLASHED.search(rest)
    zone = None if day else _ZONE.search(rest)
    date = _read_slashed(day) if day else _read_worded(_ZONE.sub(" ", rest, count=1))
    if date is None or hours is None:
        return NAN
    zone = zone or (_ZONE.search(_SLASHED.sub(" ", rest)) if day else None)
    ms = join([*date, *hours])
    if zone is None:
        return clip(to_utc(ms))
    return clip(ms - (_minutes(zone[1], zone[2], zone[3]) * 60_000 if zone[1] else 0))


def _hours(moment: re.Match[str] | None) -> list[int] | None:
    if moment is None:
        return [0, 0, 0, 0]
    hour = int(moment[1])
    minute = int(moment[2])
    second = int(moment[3] or 0)
    half = (moment[5] or "").lower()
    if hour > (12 if half else 24) or minute > 59 or second > 59:
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    return [hour, minute, second, int((moment[4] or "0").ljust(3, "0"))]


def _read_slashed(day: re.Match[str]) -> list[int] | None:
    month, date, year = (day[1], day[2], day[3]) if day[1] else (day[5], day[6], day[4])
    full = int(year) + (0 if len(year) > 2 else 2000 if int(year) < 50 else 1900)
    return [full, int(month) - 1, int(date)] if 1 <= int(month) <= 12 and 1 <= int(date) <= 31 else None


def _read_worded(text: str) -> list[int] | None:
    """A month's name with a day and a year around it; names of weekdays are skipped."""
    words = re.findall(r"[A-Za-z]+|\d+", re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text))
    names = [word[:3].title() for word in words if word.isalpha()]
    numbers = [int(word) for word in words if word.isdigit()]
    months = [_MONTHS.index(name) for name in names if name in _MONTHS]
    if len(months) != 1 or any(name not in _MONTHS and name not in _DAYS for name in names) or not numbers:
        return None
    day, year = (
        (numbers[0], numbers[1]) if len(numbers) > 1 else (1, numbers[0]) if numbers[0] > 31 else (numbers[0], 2001)
    )
    return [year, months[0], day] if 1 <= day <= 31 else None
