"""Milliseconds since 1970 to the parts of a date, and back."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from typing import NamedTuple

DAY_MS = 86_400_000
FARTHEST_MS = 8.64e15
_STARTS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


class DateParts(NamedTuple):
    """A date as people count it, but months and weekdays begin with 0 (January, Sunday)."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    millisecond: int

    @property
    def weekday(self) -> int:
        """0 is Sunday."""
        return (_day_number(self.year, self.month) + self.day + 3) % 7


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _year_start(year: int) -> int:
    """The number of the first of January; 0 is that of 1970."""
    return 365 * (year - 1970) + (year - 1969) // 4 - (year - 1901) // 100 + (year - 1601) // 400


def _month_start(month: int, leap: bool) -> int:
    return _STARTS[month] + (leap and month > 1)


def _day_number(year: int, month: int) -> int:
    """The number of the first day of a month; months below 0 and above 11 belong to other years."""
    year, month = year + month // 12, month % 12
    return _year_start(year) + _month_start(month, _leap(year))


def join(numbers: list[int]) -> int:
    """The numbers of `Parts`, of any size, to milliseconds in the same time zone."""
    year, month, day, hour, minute, second, millisecond = numbers
    days = _day_number(year, month) + day - 1
    return days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond


def part(ms: int) -> DateParts:
    """Milliseconds to parts in the same time zone."""
    days, rest = divmod(ms, DAY_MS)
    year = 1970 + math.floor(days / 365.2425)
    year += (_year_start(year + 1) <= days) - (_year_start(year) > days)
    in_year, leap = days - _year_start(year), _leap(year)
    month = bisect_right([_month_start(month, leap) for month in range(12)], in_year) - 1
    seconds, millisecond = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    return DateParts(year, month, in_year - _month_start(month, leap) + 1, *divmod(minutes, 60), second, millisecond)


def _zone(ms: int) -> time.struct_time | None:
    try:
        return time.localtime(ms // 1000)
    except (OverflowError, OSError, ValueError):
        return None


def offset_ms(ms: int) -> int:
    """How far local time is ahead of UTC at a moment."""
    zone = _zone(ms)
    return zone.tm_gmtoff * 1000 if zone else 0


def zone_name(ms: int) -> str:
    """The short name of the local time zone at a moment."""
    zone = _zone(ms)
    return zone.tm_zone if zone else "UTC"


def to_utc(local_ms: int) -> int:
    """Milliseconds of local time to UTC; a time that occurs twice is the first, one that is skipped counts on."""
    before, after = offset_ms(local_ms - DAY_MS), offset_ms(local_ms + DAY_MS)
    later = local_ms - after
    if offset_ms(local_ms - before) != before and offset_ms(later) == after:
        return later
    return local_ms - before


def clip(ms: float) -> int | float:
    """A moment as dates keep it: whole, NaN beyond 100 million days from 1970."""
    return int(ms) if abs(ms) <= FARTHEST_MS else math.nan
