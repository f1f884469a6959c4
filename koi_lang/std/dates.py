"""Days as texts such as `2025-03-01` to other days, and to the ways in which people write them."""

from __future__ import annotations

import re
import zoneinfo
from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from koi_lang.errors import AgentError

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ].*)?")
LOOSE = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
DOTTED = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
NAMED = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th|\.)?\s+([a-z]{3,9})\.?,?|([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?)\s+(\d{4})"
)
TOKEN = re.compile(r"\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|dddd|ddd|DD|D|W")
MAX_DAYS = 36_600


def zone(name: str) -> tzinfo:
    """A time zone by its name, such as `Europe/Berlin`. Raises AgentError."""
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        help = "Write one such as `Europe/Berlin`; where the system knows none, install the package `tzdata`."
        raise AgentError(f"there is no time zone `{name}`", help=help) from error


def moment(milliseconds: float, name: str) -> str:
    """Milliseconds since 1970 as local time with its distance from UTC, to the second. Raises AgentError."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, zone(name)).isoformat(timespec="seconds")
    except (OverflowError, OSError, TypeError, ValueError) as error:
        raise AgentError(f"{milliseconds!r} is no moment that has a date") from error


def day(text: Any) -> date:
    """A day in the form `2025-03-01`; following text, such as the time, is ignored. Raises AgentError."""
    found = ISO.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise AgentError(f"{text!r} is no day", help="Write one such as `2025-03-01`; `parseDate` reads other forms.")
    return _make_date(text, *found.groups())


def _make_date(text: str, year: str | int, month: str | int, number: str | int) -> date:
    try:
        return date(int(year), int(month), int(number))
    except ValueError as error:
        raise AgentError(f"`{text}` is no day of the calendar") from error


def parse(text: str) -> str:
    """A day as people write it, in the form `2025-03-01`. Raises AgentError where it could be two different ones."""
    plain = " ".join(str(text).split()).lower()
    found = ISO.fullmatch(plain.upper()) or LOOSE.fullmatch(plain)
    if found is not None:
        return _make_date(text, *found.groups()).isoformat()
    if (found := DOTTED.fullmatch(plain)) is not None:
        return _make_date(text, found[3], found[2], found[1]).isoformat()
    if (found := SLASHED.fullmatch(plain)) is not None:
        return _read_slashed(text, int(found[1]), int(found[2]), found[3]).isoformat()
    if (found := NAMED.fullmatch(plain)) is not None:
        return _make_date(text, found[5], _month(text, found[2] or found[3]), found[1] or found[4]).isoformat()
    raise AgentError(f"`{text}` is no day", help="Write one such as `2025-03-01`, `1.3.2025` or `1 March 2025`.")


def _read_slashed(text: str, first: int, second: int, year: str) -> date:
    """Days before months in some countries, behind them in others; where both are possible nothing is guessed."""
    if first <= 12 and second <= 12 and first != second:
        help = f"Write `{year}-{first:02}-{second:02}` or `{year}-{second:02}-{first:02}`."
        raise AgentError(f"`{text}` can be two different days", help=help)
    return _make_date(text, year, *((second, first) if first > 12 else (first, second)))


def _month(text: str, word: str) -> int:
    for number, name in enumerate(MONTHS, 1):
        if name.lower().startswith(word) or (word == "sept" and number == 9):
            return number
    raise AgentError(f"`{text}` names no month", help="Months are read in English.")


def shift_day(text: str, days: int, months: int) -> str:
    """A day some days and months later; where a month is too short, its last day. Raises AgentError."""
    start = day(text)
    whole = _whole(start.year * 12 + start.month - 1 + _whole(months))
    year, month = divmod(whole, 12)
    try:
        number = min(start.day, monthrange(year, month + 1)[1])
        return (date(year, month + 1, number) + timedelta(days=_whole(days))).isoformat()
    except (ValueError, OverflowError) as error:
        raise _too_far(text) from error


def _too_far(text: str) -> AgentError:
    return AgentError(f"there is no day that far from `{text}`")


def _whole(number: Any) -> int:
    is_whole = number.is_integer() if isinstance(number, float) else type(number) is int
    if not is_whole:
        raise AgentError(f"days and months are counted in whole numbers, not {number!r}")
    return int(number)


def days_between(start: str, end: str) -> int:
    """How many days later the second day is; below 0 when it is earlier."""
    return (day(end) - day(start)).days


def workday(text: str, days: int, free: Sequence[str]) -> str:
    """The day some workdays later or earlier: Saturdays, Sundays and free days do not count."""
    at, left = day(text), _whole(days)
    if abs(left) > MAX_DAYS:
        raise AgentError(f"at most {MAX_DAYS:,} workdays can be counted")
    holidays, step = {day(each) for each in free}, timedelta(days=1 if left > 0 else -1)
    try:
        while left:
            at += step
            if at.weekday() < 5 and at not in holidays:
                left -= 1 if left > 0 else -1
    except OverflowError as error:
        raise _too_far(text) from error
    return at.isoformat()


def days(start: str, end: str, step: int) -> list[str]:
    """Every day, or every `step` days, from one day to another, both included."""
    first = day(start)
    count = days_between(start, end)
    width = _whole(step)
    if width < 1 or count // max(width, 1) > MAX_DAYS:
        raise AgentError(f"the step must be at least 1, and at most {MAX_DAYS:,} days are listed")
    return [(first + timedelta(days=each)).isoformat() for each in range(0, count + 1, width)]


def about(text: str) -> dict[str, Any]:
    """`year`, `month`, `day`, `weekday`, `week` (of ISO 8601, with its year), `quarter` and `dayOfYear` of a day."""
    given = day(text)
    year, week, number = given.isocalendar()
    return {
        "year": given.year,
        "month": given.month,
        "day": given.day,
        "weekday": DAYS[number - 1],
        "week": f"{year}-W{week:02}",
        "quarter": (given.month + 2) // 3,
        "dayOfYear": given.timetuple().tm_yday,
    }


def format_day(text: str, pattern: str) -> str:
    """A day in a pattern of YYYY YY MMMM MMM MM M DD D dddd ddd W; text in brackets stays."""
    given = day(text)
    month, weekday = MONTHS[given.month - 1], DAYS[given.weekday()]
    values = {
        "YYYY": f"{given.year:04}", "YY": f"{given.year % 100:02}", "MMMM": month, "MMM": month[:3],
        "MM": f"{given.month:02}", "M": str(given.month), "dddd": weekday, "ddd": weekday[:3],
        "DD": f"{given.day:02}", "D": str(given.day), "W": str(given.isocalendar().week),
    }  # fmt: skip
    return TOKEN.sub(lambda found: values.get(found[0], found[1]), pattern)
