"""The text of a moment to milliseconds, and back."""

from __future__ import annotations

import re

from koi_lang.js.calendar_days import DateParts, clip, join, offset_ms, part, to_utc
from koi_lang.js.number_format import NAN
from koi_lang.js.zones import local_name

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = r"(\d{4}|[+-]\d{6})(?!\d)(?:-(0[1-9]|1[0-2])(?!\d)(?:-(0[1-9]|[12]\d|3[01])(?!\d))?)?"
_ISO = re.compile(
    rf"(?!-000000){_DAY}(?:T(?P<hour>[01]\d|2[0-3]|24(?!:\d*[1-9]|:00:\d*[1-9]|:00:00\.\d*[1-9])):(?P<minute>[0-5]\d)"
    r"(?::(?P<second>[0-5]\d)(?:\.(?P<fraction>\d+))?)?(?P<zone>Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_DAY = re.compile(rf"(?!-000000){_DAY}", re.ASCII)
# The pieces of a date in words; letters and all signs behind them in ASCII make a word.
_PIECE = re.compile(r"(?P<number>[0-9]+)|(?P<word>[^\0-@\s]+)|.", re.DOTALL)
_ZONES = {
    **dict.fromkeys(("ut", "utc", "z", "gmt"), 0), "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6,
    "pst": -8, "pdt": -7,
}  # fmt: skip
_MAX_DIGITS = 9  # of a number; more of them count for nothing


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
    """A date in ISO form, or as it is written in English, to milliseconds; NaN when it is neither.

    What the standard leaves open goes by the rules of Node: `Jan 5 2024 10:00 EST`, `2024.01.05`, `05-Jan-2024`.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        day = _ISO_DAY.match(text)
        if day is not None and text[day.end() : day.end() + 1] in ("T", "t"):
            return NAN
        reader = _WordedDate(text, day)
        return reader.milliseconds() if reader.can_read() else NAN
    parts = [int(found[1]), int(found[2] or 1) - 1, int(found[3] or 1)]
    clock_parts = [int(found[part] or 0) for part in ("hour", "minute", "second")]
    ms = join([*parts, *clock_parts, _fraction_ms(found["fraction"] or "0")])
    zone = found["zone"] or ("" if found["hour"] else "Z")
    if not zone:
        return clip(to_utc(ms))
    minutes = 0 if zone in "Zz" else int(zone[1:3]) * 60 + int(zone[-2:])
    return clip(ms - minutes * (-60_000 if zone[0] == "-" else 60_000))


def _fraction_ms(digits: str) -> int:
    """The digits behind the dot of seconds, of which three count."""
    return int(digits.ljust(3, "0")[:3])


class _WordedDate:
    """A date that is not in ISO form: numbers in turn, around names of months and zones, in the order of their coming.

    Attributes:
        day: up to three numbers that are no part of a time.
        time: hour, minute, second and millisecond, as far as they have been read.
        zone: sign, hours and minutes of the difference to UTC; minutes that are still to come are None.
    """

    def __init__(self, text: str, begun: re.Match[str] | None) -> None:
        """`begun`: the date in ISO form that the text begins with."""
        self.day = [int(part) for part in begun.groups() if part is not None] if begun else []
        rest = text[begun.end() :] if begun else text
        rest = rest.removeprefix("-") if len(self.day) in (1, 2) else rest
        self._pieces = list(_PIECE.finditer(_without_comments(rest)))
        self.time: list[int] = []
        self.zone: tuple[int, int, int | None] | None = None
        self.month: int | None = None
        self.half_day: int | None = None
        self._has_number = begun is not None
        self._at = 0

    def can_read(self) -> bool:
        """Read all pieces; whether each has a place in a date."""
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            self._at += 1
            if piece["number"] is not None:
                fits = self._number(_value(piece[0]))
            elif piece["word"] is not None:
                fits = self._word(piece["word"].lower())
            elif piece[0] in "+-" and (self.time or (self.zone is not None and self.zone[1:] == (0, 0))):
                fits = self._offset(-1 if piece[0] == "-" else 1)
            else:
                fits = piece[0] not in ("+", "-", ")") or not self._has_number
            if not fits:
                return False
        return True

    def milliseconds(self) -> int | float:
        """The moment that was read; NaN where a part is out of its range. Without a zone it is in the local one."""
        date = self._date()
        hour, *others = [*self.time, 0, 0, 0, 0][:4]
        if date is None or (self.half_day is not None and hour > 12):
            return NAN
        hour = hour if self.half_day is None else hour % 12 + self.half_day
        is_time = hour < 24 and others[0] < 60 and others[1] < 60 and others[2] < 1000
        if not is_time and (hour != 24 or any(others)):
            return NAN
        ms = join([*date, hour, *others])
        if self.zone is None:
            return clip(to_utc(ms))
        return clip(ms - self.zone[0] * (self.zone[1] * 60 + (self.zone[2] or 0)) * 60_000)

    def _next(self) -> str:
        return self._pieces[self._at][0] if self._at < len(self._pieces) else ""

    def _skip(self, mark: str) -> bool:
        is_there = self._next() == mark
        self._at += is_there
        return is_there

    def _number(self, value: int) -> bool:
        self._has_number = True
        if self._skip(":"):
            if self._skip(":"):
                return not self.time and self._add_time(value, 0)
            return self._add_time(value) and (self._skip(".") or True)
        is_second = len(self.time) in (1, 2) and value < 60
        is_time = is_second or (len(self.time) == 3 and value < 1000)
        if self._skip(".") and is_time:
            fraction = self._next()
            self._at += 1
            return fraction.isdecimal() and self._add_time(value, _fraction_ms(fraction), is_last=True)
        if self.zone is not None and self.zone[2] is None and value < 60:
            self.zone = (*self.zone[:2], value)
            return True
        if is_time:
            follows = self._next().lower()
            return self._add_time(value, is_last=True) and (follows in ("", "z", "+", "-") or follows.isspace())
        self.day.append(value)
        self._skip("-")
        return len(self.day) <= 3

    def _add_time(self, *values: int, is_last: bool = False) -> bool:
        """Add parts of the time; behind the last one the others are 0. False for more parts than there are."""
        self.time += values
        if is_last:
            self.time = [*self.time, 0, 0, 0][:4]
        return len(self.time) <= 4

    def _word(self, word: str) -> bool:
        if word in ("am", "pm") and self.time:
            self.half_day = 12 if word == "pm" else 0
        elif word[:3].title() in _MONTHS:
            self.month = _MONTHS.index(word[:3].title())
            self._skip("-")
        elif word in _ZONES and self._has_number:
            self.zone = (-1 if _ZONES[word] < 0 else 1, abs(_ZONES[word]), 0)
        else:  # other words stand before all numbers
            return not self._has_number and not self._next().isdecimal()
        return True

    def _offset(self, sign: int) -> bool:
        digits = self._next() if self._next().isdecimal() else ""
        self._at += bool(digits)
        self._has_number = True
        value = _value(digits or "0")
        if self._next() == ":":
            self.zone = (sign, value, None)
        elif len(digits) in (1, 2):
            self.zone = (sign, value, 0)
        else:
            self.zone = (sign, value // 100, value % 100)
        return self._next() == ":" or 1 <= len(digits) <= 4

    def _date(self) -> list[int] | None:
        """Year, month from 0 and day; None where one of them is none."""
        if not self.day:
            return None
        numbers = [*self.day, 1, 1][:3]
        # A number that is no day is a year; else the year is written last, or behind the day.
        year = numbers.pop(0 if not 1 <= numbers[0] <= 31 else 2 if self.month is None else 1)
        month = numbers.pop(0) - 1 if self.month is None else self.month
        date = numbers[0]
        full = year + (2000 if 0 <= year < 50 else 1900 if 50 <= year < 100 else 0)
        return [full, month, date] if 0 <= month < 12 and 1 <= date <= 31 else None


def _value(digits: str) -> int:
    return int(digits.lstrip("0")[:_MAX_DIGITS] or "0")


def _without_comments(text: str) -> str:
    """A text with a comma for each part in parentheses; one that is never closed takes the rest."""
    kept, depth = list[str](), 0
    for character in text:
        depth += (character == "(") - (character == ")" and depth > 0)
        if depth == 0:
            kept.append("," if character == ")" and kept[-1:] == ["("] else character)
        elif depth == 1 and character == "(":
            kept.append("(")
    return "".join(kept)
