"""The words of a schedule, as `weekdays 09:00 Europe/Berlin`, to the schedule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from koi_lang.diagnostics import nearest
from koi_lang.lazy import lazy_module
from koi_lang.schedules.days import day_fields
from koi_lang.schedules.job import ScheduleError
from koi_lang.schedules.schedule import CronSchedule, IntervalSchedule, Schedule, fires_ever

if TYPE_CHECKING:
    import datetime
    import zoneinfo

    import cronsim
else:
    zoneinfo = lazy_module("zoneinfo")
    datetime = lazy_module("datetime")
    cronsim = lazy_module("cronsim")

SHAPES = 'write an interval as "15m", days with a time as "weekdays 09:00", or the five fields of cron.'
UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
}
# What may follow a number and begins no interval.
NO_UNITS = ("", "st", "nd", "rd", "th", "am", "pm")
INTERVALS = 'write seconds, minutes or hours, as "30s", "15m" or "2h"; "daily 00:00" is once a day.'
# Zones whose names have no slash.
BARE_ZONES = ("UTC", "GMT", "CET", "EET", "WET", "EST", "MST", "HST")
MAX_S = 24 * 3600
INTERVAL = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)")
TIME = re.compile(r"(\d{1,2}):(\d{2})")
TIME_LIKE = re.compile(r"\d{1,2}([:.h]\d*)?([ap]m)?")
FIELD = re.compile(r"[\d*][\d*/,\-]*")
# What each of the five fields takes.
FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or `L` for the last"),
    ("month", "1 to 12, or `JAN` to `DEC`"),
    ("day of the week", "0 to 7, where both ends are Sunday, or `SUN` to `SAT`"),
)


def parse_schedule(words: str, local_zone: str = "UTC") -> Schedule:
    """Read the words of a schedule.

    Args:
        words: `15m`, `hourly`, `weekdays 09:00`, `mondays,thursdays 09:00,17:30 Europe/Berlin`, `1st 08:00`,
            `last day 18:00`, `first monday 09:00`, `24 December 18:00` or five fields of cron, with a time zone behind
            or without; letter case does not count.
        local_zone: the name of the time zone where the words name none.

    Raises:
        ScheduleError: the words mean nothing, or no time at all.
    """
    tokens = re.sub(r"\s*,\s*|\s+and\s+", ",", words.strip()).split()
    if not tokens:
        raise ScheduleError("the schedule is empty", SHAPES)
    zone = _zone_of(tokens)
    schedule = _interval(tokens, zone) or CronSchedule(_lines(tokens), zone or local_zone)
    if not fires_ever(schedule):
        shown = " ".join(words.split())
        raise ScheduleError(f"`{shown}` never comes", "no year has such a day; take one that the calendar has.")
    return schedule


def _zone_of(tokens: list[str]) -> str:
    """Take the time zone off the end; empty where there is none. Raises ScheduleError for an unknown one."""
    name, before = tokens[-1], tokens[:-1]
    is_behind_time = (is_cron(before) and len(before) > 4) or ":" in "".join(before[-1:])
    if (
        not before
        or not name.strip("./")[:1].isalpha()
        or not ("/" in name or name.upper() in BARE_ZONES or is_behind_time)
    ):
        return ""
    del tokens[-1]
    try:
        return zoneinfo.ZoneInfo(name if "/" in name else name.upper()).key
    except (OSError, ValueError, KeyError) as error:
        zones = zoneinfo.available_timezones()
        near = next((zone for zone in zones if zone.lower().endswith(f"/{name.lower()}")), None) or nearest(name, zones)
        help = "write its name as in `Europe/Berlin`, or `UTC`."
        raise ScheduleError(f"there is no time zone `{name}`", help, name, near) from error


def _interval(tokens: list[str], zone: str) -> IntervalSchedule | None:
    """`15m` or `2 hours`; None for anything else. Raises ScheduleError for lengths and zones that do not go."""
    text = "".join(tokens).lower()
    match = INTERVAL.fullmatch(text)
    if match is None or match[2] in NO_UNITS:
        return None
    if match[2] not in UNITS:
        near = nearest(match[2], UNITS) if len(match[2]) > 2 else None
        if near is None and len(tokens) > 1:
            return None
        text = " ".join(tokens)
        raise ScheduleError(f"`{text}` is no interval", INTERVALS, text, f"{match[1]} {near}" if near else None)
    if zone:
        raise ScheduleError(f"an interval as `{text}` has no time zone", f"leave out `{zone}`.")
    if "." in match[1]:
        raise ScheduleError(f"`{text}` is no whole number", "write it in a smaller unit, as `90m`.")
    seconds = int(match[1][:9]) * UNITS[match[2]]
    if not 0 < seconds <= MAX_S:
        raise ScheduleError(f"`{text}` is not from `1s` to `24h`", 'write days with a time, as "mondays 09:00".')
    return IntervalSchedule(seconds)


def _lines(tokens: list[str]) -> tuple[str, ...]:
    """The lines of cron that say the same; one line of cron itself. Raises ScheduleError."""
    if is_cron(tokens):
        return (check_line(tokens),)
    if [token.lower() for token in tokens] == ["hourly"]:
        return ("0 * * * *",)
    *days, times = tokens
    if not times[0].isdigit() or not TIME_LIKE.fullmatch(times.split(",")[0]):
        day_fields(tokens)  # a misspelt day is told first
        shown = " ".join(tokens)
        raise ScheduleError(f"`{shown}` says no time of day", f'write "{shown} 09:00".')
    clock = [_hour_and_minute(time) for time in times.split(",")]
    if not days:
        raise ScheduleError(f"`{times}` says no day", f'write "daily {_clock_text(clock)}".')
    return tuple(f"{minute} {hour} {fields}" for hour, minute in clock for fields in day_fields(days))


def _hour_and_minute(text: str) -> tuple[int, int]:
    match = TIME.fullmatch(text)
    hour, minute = (int(match[1]), int(match[2])) if match else (99, 99)
    if hour > 23 or minute > 59:
        raise ScheduleError(f"`{text}` is no time of day", "write hours and minutes, from `00:00` to `23:59`.")
    return hour, minute


def _clock_text(clock: list[tuple[int, int]]) -> str:
    return ",".join(f"{hour:02}:{minute:02}" for hour, minute in clock)


def is_cron(tokens: Sequence[str]) -> bool:
    """Whether words look like a line of cron: their first two are made of digits and the marks of cron."""
    return len(tokens) > 1 and all(FIELD.fullmatch(token) for token in tokens[:2])


def check_line(tokens: Sequence[str]) -> str:
    """A valid line of cron from its fields. Raises ScheduleError for an invalid one."""
    if len(tokens) != len(FIELDS):
        help = "write minute, hour, day of the month, month and day of the week, as `0 9 * * 1-5`."
        raise ScheduleError(f"a line of cron has five fields, and this one has {len(tokens)}", help)
    for place, (token, (name, range)) in enumerate(zip(tokens, FIELDS, strict=True)):
        alone = ["0", "0", "*", "*", "*"]
        alone[place] = token
        if not _is_valid(alone):
            raise ScheduleError(f"`{token}` is no {name} of cron", f"write {range}; lists, `-` and `/` go, too.")
    return " ".join(tokens)


def _is_valid(fields: Sequence[str]) -> bool:
    try:
        cronsim.CronSim(" ".join(fields), datetime.datetime(2000, 1, 1))
    except (cronsim.CronSimError, ValueError, IndexError, AssertionError):
        return False
    return True
