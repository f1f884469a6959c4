"""The days for which a service keeps accounts: from one midnight of its time zone to the next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a time zone, by the clock on the wall: one that is set back counts for the day that it shows.

    Attributes:
        zone: its name, such as `Europe/Berlin`.
        now: seconds since the epoch.
    """

    zone: str = "UTC"
    now: Callable[[], float] = field(default=time.time)

    def today(self) -> str:
        """The day, such as `2026-11-26`."""
        return self._date().isoformat()

    def end(self) -> datetime:
        """When the day is over: the midnight behind it, also where a clock is put forward or back on it."""
        return datetime.combine(self._date() + timedelta(days=1), time_of_day(), ZoneInfo(self.zone))

    def end_text(self) -> str:
        """The same for people."""
        return f"{self.end():%Y-%m-%d %H:%M} {self.zone}"

    def _date(self) -> date:
        return datetime.fromtimestamp(self.now(), ZoneInfo(self.zone)).date()
