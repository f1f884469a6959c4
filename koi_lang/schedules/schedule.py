"""Schedules: the instants at which something is due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import datetime
    import zoneinfo

    import cronsim
else:
    datetime = lazy_module("datetime")
    cronsim = lazy_module("cronsim")
    zoneinfo = lazy_module("zoneinfo")

# From where one looks for the first time at which something is due, to tell whether there is any.
LONG_AGO = (2000, 1, 1)
# Clocks were never set by more than a day, where the date line moved.
MAX_SHIFT_H = 25


class Clocks:
    """Instants, aware and in UTC, and the naive clock times of a zone."""

    def __init__(self, zone: str) -> None:
        """Raises ZoneInfoNotFoundError or ValueError when there is no such zone."""
        self._zone = zoneinfo.ZoneInfo(zone)

    def shown_at(self, instant: datetime.datetime) -> datetime.datetime:
        """The clock time at an instant."""
        return instant.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def instants_of(self, time: datetime.datetime) -> list[datetime.datetime]:
        """When the clocks show a time: once, twice, or never; ascending."""
        either = {self._instant(time, fold) for fold in (0, 1)}
        return sorted(instant for instant in either if self.shown_at(instant) == time)

    def first_at_or_behind(self, time: datetime.datetime) -> datetime.datetime:
        """When the clocks show a time first; the end of the gap where they jump over it."""
        instants = self.instants_of(time)
        # In a gap the two readings lie on its two sides.
        return instants[0] if instants else self._change_between(self._instant(time, 1), self._instant(time, 0))

    def set_back_after(self, instant: datetime.datetime) -> datetime.datetime | None:
        """The time when clocks are next set back over an instant's clock time; None where they are not."""
        later = instant + datetime.timedelta(hours=MAX_SHIFT_H)
        if self._ahead(later) >= self._ahead(instant):
            return None
        return self._change_between(instant, later)

    def _instant(self, time: datetime.datetime, fold: int) -> datetime.datetime:
        return time.replace(tzinfo=self._zone, fold=fold).astimezone(datetime.UTC)

    def _ahead(self, instant: datetime.datetime) -> datetime.timedelta:
        return instant.astimezone(self._zone).utcoffset() or datetime.timedelta()

    def _change_between(self, low: datetime.datetime, high: datetime.datetime) -> datetime.datetime:
        """The instant, to the second, from which clocks go as at the later of two instants."""
        low, high, second = low.replace(microsecond=0), high.replace(microsecond=0), datetime.timedelta(seconds=1)
        while high - low > second:
            middle = low + (high - low) // (2 * second) * second
            low, high = (middle, high) if self._ahead(middle) != self._ahead(high) else (low, middle)
        return high


class Schedule(Protocol):
    """When something is due, again and again."""

    def next_after(self, instant: datetime.datetime) -> datetime.datetime | None:
        """The first due instant behind another one, both aware and the result in UTC; None when there is none."""


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """Every so many seconds, counted from midnight UTC of the first of January 1970, so restarts move nothing."""

    seconds: int

    def next_after(self, instant: datetime.datetime) -> datetime.datetime | None:
        """The first multiple of the interval behind an instant."""
        count = int(instant.timestamp() // self.seconds) + 1
        try:
            return datetime.datetime.fromtimestamp(count * self.seconds, datetime.UTC)
        except (OverflowError, ValueError):
            return None


@dataclass(frozen=True)
class CronSchedule:
    """A schedule of lines of cron, in the time of a zone.

    A time of day that the clocks jump over is due at the first instant behind the gap, once even where several such
    times were. One that they show twice is due the first time only. Lines whose minute or hour begins with `*`
    repeat within the day and follow the clocks: they are due whenever these show such a time.

    Attributes:
        lines: valid lines of five fields each; what any of them says is due.
        zone: the name of a time zone that exists.
    """

    lines: tuple[str, ...]
    zone: str

    @cached_property
    def _clocks(self) -> Clocks:
        return Clocks(self.zone)

    def next_after(self, instant: datetime.datetime) -> datetime.datetime | None:
        """The first due instant behind another one; None when there is none in 50 years."""
        found = (due for line in self.lines for due in self._candidates(line, instant))
        return min(found, default=None)

    def _candidates(self, line: str, instant: datetime.datetime) -> Iterator[datetime.datetime]:
        """Due instants of one line behind another one, the first among them."""
        shown = self._clocks.shown_at(instant)
        if not any(field.startswith("*") for field in line.split()[:2]):
            due = (self._clocks.first_at_or_behind(time) for time in shown_times(line, shown))
            yield from islice((each for each in due if each > instant), 1)
            return
        due = (each for time in shown_times(line, shown) for each in self._clocks.instants_of(time))
        yield from islice((each for each in due if each > instant), 1)
        set_back = self._clocks.set_back_after(instant)
        if set_back is not None:
            again = shown_times(line, self._clocks.shown_at(set_back) - datetime.timedelta(seconds=1))
            due = (each for time in again for each in self._clocks.instants_of(time))
            yield from islice((each for each in due if each >= set_back), 1)


def shown_times(line: str, after: datetime.datetime) -> Iterator[datetime.datetime]:
    """The times of day that a line of cron means, behind another one; naive, ascending; none when it means none."""
    try:
        yield from cronsim.CronSim(line, after)
    except (cronsim.CronSimError, OverflowError, ValueError):
        return  # `31 February`, or the year 10,000


def fires_ever(schedule: Schedule) -> bool:
    """Whether a schedule is due at all: `31 February` never is."""
    return schedule.next_after(datetime.datetime(*LONG_AGO, tzinfo=datetime.UTC)) is not None


def due_between(schedule: Schedule, after: datetime.datetime, until: datetime.datetime) -> Iterator[datetime.datetime]:
    """The due instants behind one and up to another one, in order."""
    due = schedule.next_after(after)
    while due is not None and due <= until:
        yield due
        due = schedule.next_after(due)


def last_due(schedule: Schedule, first: datetime.datetime, until: datetime.datetime) -> datetime.datetime:
    """The last due instant up to another one, however many lie between.

    Args:
        first: a due instant, not behind `until`.
    """
    if isinstance(schedule, IntervalSchedule):
        seconds = until.timestamp() // schedule.seconds * schedule.seconds
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    back = datetime.timedelta(minutes=1)
    while until - back > first:
        found = list(due_between(schedule, until - back, until))
        if found:
            return found[-1]
        back *= 4
    return list(due_between(schedule, first - datetime.timedelta(seconds=1), until))[-1]
