"""The clocks of a time zone: which times of day they jump over, and which they show twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import datetime
    import zoneinfo
else:
    datetime = lazy_module("datetime")
    zoneinfo = lazy_module("zoneinfo")

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
