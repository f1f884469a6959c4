"""Schedules where clocks are set forward and back, against a walk over every minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from koi_lang.schedules.schedule import CronSchedule, due_between
from koi_lang.schedules.words import parse_schedule

MINUTE = timedelta(minutes=1)
# Days on which clocks change, of zones that do so by an hour at night, by half an hour, and at midnight.
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "UTC": ("2026-03-29", "2026-10-25"),
}
PLACES = [(zone, day) for zone, days in CHANGES.items() for day in days]


def due_locally(words: str, day: str, zone: str) -> list[str]:
    """What is due on a day, in the words of its clocks."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    found = due_between(
        parse_schedule(f"{words} {zone}"), (start - MINUTE).astimezone(UTC), start.astimezone(UTC) + timedelta(hours=23)
    )
    return [f"{each.astimezone(ZoneInfo(zone)):%H:%M %z}" for each in found]


@pytest.mark.parametrize(
    ("zone", "day", "time", "due"),
    [
        ("Europe/Berlin", "2026-03-29", "02:30", ["03:00 +0200"]),
        ("Europe/Berlin", "2026-10-25", "02:30", ["02:30 +0200"]),
        ("Europe/Berlin", "2026-10-25", "03:00", ["03:00 +0100"]),
        ("America/New_York", "2026-03-08", "02:00", ["03:00 -0400"]),
        ("America/New_York", "2026-11-01", "01:59", ["01:59 -0400"]),
        ("Australia/Lord_Howe", "2026-10-04", "02:15", ["02:30 +1100"]),
        ("Australia/Lord_Howe", "2026-04-05", "01:45", ["01:45 +1100"]),
        ("America/Havana", "2026-03-08", "00:30", ["01:00 -0400"]),
    ],
)
def test_a_time_that_is_skipped_or_shown_twice_is_due_once(zone: str, day: str, time: str, due: list[str]) -> None:
    """A time in the gap is due right behind it, one that comes twice the first time."""
    assert due == due_locally(f"daily {time}", day, zone)


def test_several_times_in_a_gap_are_due_together() -> None:
    """What the clocks jump over is due once behind the gap, not once for each time."""
    assert ["03:00 +0200"] == due_locally("daily 02:15,02:45,03:00", "2026-03-29", "Europe/Berlin")


def test_a_line_that_repeats_follows_the_clocks() -> None:
    """`*` in the minute or hour means every time that the clocks show, so both times of an hour that comes twice."""
    due = due_locally("30 * * * *", "2026-10-25", "Europe/Berlin")

    assert ["01:30 +0200", "02:30 +0200", "02:30 +0100", "03:30 +0100"] == due[1:5]


def walk(schedule: CronSchedule, after: datetime, most: timedelta) -> Iterator[datetime]:
    """The due instants behind one, found by looking at every minute and every time that the clocks show."""
    zone, now = ZoneInfo(schedule.zone), after.replace(second=0, microsecond=0)
    shown = now.astimezone(zone).replace(tzinfo=None)
    for _ in range(int(most / MINUTE)):
        now += MINUTE
        local = now.astimezone(zone)
        clock = local.replace(tzinfo=None)
        new = [clock] if local.fold == 0 else []  # fold: its times were shown before
        skipped, at = [], shown + MINUTE
        while at < clock:
            skipped.append(at)
            at += MINUTE
        shown = clock
        if any(
            says(line, clock) if repeats(line) else any(says(line, each) for each in [*skipped, *new])
            for line in schedule.lines
        ):
            yield now


def repeats(line: str) -> bool:
    """Whether a line is due at each time that clocks show."""
    return any(field.startswith("*") for field in line.split()[:2])


def says(line: str, clock: datetime) -> bool:
    """Whether a line of numbers, lists, ranges and steps means a time."""
    shown = (clock.minute, clock.hour, clock.day, clock.month, clock.isoweekday() % 7)
    lows, highs = (0, 0, 1, 1, 0), (59, 23, 31, 12, 6)
    fields = line.split()
    fits = [
        value in members(field, low, high) for field, value, low, high in zip(fields, shown, lows, highs, strict=True)
    ]
    stars = fields[2].startswith("*") or fields[4].startswith("*")
    return fits[0] and fits[1] and fits[3] and (fits[2] and fits[4] if stars else fits[2] or fits[4])


def members(field: str, low: int, high: int) -> set[int]:
    """The numbers that a field of cron stands for."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin, end = (low, high) if span == "*" else (int(first), int(last or (high if step else first)))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


minutes = st.one_of(st.sampled_from(["*", "*/7", "0", "*/15", "10-20", "5,35"]), st.integers(0, 59).map(str))
hours = st.one_of(st.sampled_from(["*", "*/2", "1-3", "0,2", "0"]), st.integers(0, 3).map(str))
days = st.sampled_from(["*", "29", "1-8", "*/2"])
weekdays = st.sampled_from(["*", "0", "1-5", "0,3"])
LINES = st.builds("{} {} {} * {}".format, minutes, hours, days, weekdays)
MOMENTS = st.tuples(st.sampled_from(PLACES), st.integers(-3 * 60, 8 * 60), st.integers(0, 59))


@settings(deadline=None, max_examples=60)
@given(LINES, MOMENTS)
@example("* 3 1-8 * 0", (("Australia/Lord_Howe", "2026-04-05"), 3, 3))
@example("*/20 2 25 10 *", (("Europe/Berlin", "2026-10-25"), 179, 0))
@example("30 2 * * *", (("Europe/Berlin", "2026-10-25"), 150, 0))
@example("10,50 2 * * *", (("Europe/Berlin", "2026-03-29"), 100, 30))
@example("*/15 2 * * *", (("Australia/Lord_Howe", "2026-10-04"), 100, 30))
def test_the_next_instant_is_that_of_a_walk(line: str, moment: tuple[tuple[str, str], int, int]) -> None:
    """Around changes of the clocks the next due instant is the one that looking at every minute finds."""
    (zone, day), minute, second = moment
    midnight = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    after = midnight + timedelta(minutes=minute, seconds=second)
    schedule, most = CronSchedule((line,), zone), timedelta(hours=27)

    due = schedule.next_after(after)

    expected = next(walk(schedule, after, most), None)
    assert expected == (due if due is not None and due <= after + most else None)
