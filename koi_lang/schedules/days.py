"""The days that a schedule names, as the last three fields of lines of cron."""

from __future__ import annotations

import re
from collections.abc import Sequence

from koi_lang.diagnostics import nearest
from koi_lang.schedules.job import ScheduleError

WEEK = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
YEAR = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
GROUPS = {"daily": "*", "weekdays": "1-5", "weekends": "0,6"}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": 0}
NUMBERED = re.compile(r"(\d{1,2})(st|nd|rd|th)?")
DAY_WORDS = ("hourly", *GROUPS, *(f"{day}s" for day in WEEK), *YEAR, *ORDINALS)
MAX_MONTH_DAYS = 31
MAX_WEEKS = 5


def day_fields(words: Sequence[str]) -> list[str]:
    """The fields for the day of the month, the month and the day of the week; one text for each line of cron.

    Args:
        words: at least one, as `weekdays`, `mondays,thursdays`, `1st,15th`, `last day`, `first monday` or
            `24 December`; commas without blanks.

    Raises:
        ScheduleError: these are no days.
    """
    first, *rest = [word.lower() for word in words]
    items = first.split(",")
    of_week = [_days_of_week(item) for item in items]
    if any(of_week):
        odd = [item for item, days in zip(items, of_week, strict=True) if not days]
        if odd or rest:
            raise unknown_day(odd[0] if odd else " ".join(words))
        return [f"* * {days}" for days in of_week]
    numbers = [_ordinal(item) for item in items]
    match rest:
        case [] | ["day"]:
            return [f"{number or 'L'} * *" for number in numbers]
        case [word] if (weekday := _weekday(word)) is not None:
            return [f"* * {_week_of_month(weekday, number, word)}" for number in numbers]
        case [word] if word in ("weekday", "workday") and numbers == [0]:
            return ["LW * *"]
        case [word] | ["of", word] | ["day", "of", word]:
            months = [_month(item) for item in word.split(",")]
            return [f"{number or 'L'} {month} *" for number in numbers for month in months]
    raise unknown_day(" ".join(words))


def _week_of_month(weekday: int, number: int, word: str) -> str:
    if number > MAX_WEEKS:
        raise ScheduleError(f"no month has a `{number}th {word}`", "count from `first` to `fifth`, or write `last`.")
    return f"{weekday}#{number}" if number else f"{weekday}L"


def _ordinal(word: str) -> int:
    """The day of a month, or which week of it; 0 is the last. Raises ScheduleError."""
    if word in ORDINALS:
        return ORDINALS[word]
    match = NUMBERED.fullmatch(word)
    if match is None:
        raise unknown_day(word)
    if not 1 <= int(match[1]) <= MAX_MONTH_DAYS:
        raise ScheduleError(
            f"no month has a day `{word}`", f"write a day from `1st` to `{MAX_MONTH_DAYS}st`, or `last day`."
        )
    return int(match[1])


def _days_of_week(word: str) -> str:
    """`1-5` for `weekdays`, `1` for `mondays`; empty for anything else."""
    place = _weekday(word)
    return GROUPS.get(word, "" if place is None else str(place))


def _weekday(word: str) -> int | None:
    """0 for Sunday; `mondays`, `monday` and `mon` are the same."""
    return _place(word.removesuffix("s") if len(word) > 4 else word, WEEK)


def _month(word: str) -> int:
    place = _place(word, YEAR)
    if place is None:
        raise unknown_day(word)
    return place + 1


def _place(word: str, names: Sequence[str]) -> int | None:
    """Where a name stands that is written out or cut to three letters or more."""
    return next((at for at, name in enumerate(names) if len(word) > 2 and name.startswith(word)), None)


def unknown_day(word: str) -> ScheduleError:
    """A word that says no day."""
    near = nearest(word.lower(), DAY_WORDS) if " " not in word else None
    shapes = "write days as `daily`, `weekdays`, `mondays,thursdays`, `1st`, `last day` or `24 December`."
    return ScheduleError(f"`{word}` is no day", shapes, word, near)
