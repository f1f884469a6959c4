"""The words of schedules: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.schedules.job import ScheduleError
from koi_lang.schedules.schedule import CronSchedule, IntervalSchedule, due_between, last_due
from koi_lang.schedules.triggers import parse_trigger
from koi_lang.schedules.words import parse_schedule

# A Thursday.
NOW = datetime(2026, 11, 26, 14, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        ("15m", "2026-11-26 14:45", "2026-11-26 15:00"),
        ("2 hours", "2026-11-26 16:00", "2026-11-26 18:00"),
        ("hourly", "2026-11-26 15:00", "2026-11-26 16:00"),
        ("weekdays 09:00 Europe/Berlin", "2026-11-27 08:00", "2026-11-30 08:00"),
        ("Weekends 9:00", "2026-11-28 09:00", "2026-11-29 09:00"),
        ("daily 07:30,19:30", "2026-11-26 19:30", "2026-11-27 07:30"),
        ("mondays, thursdays 09:00", "2026-11-30 09:00", "2026-12-03 09:00"),
        ("mon and fri 09:00 UTC", "2026-11-27 09:00", "2026-11-30 09:00"),
        ("1st 08:00 America/New_York", "2026-12-01 13:00", "2027-01-01 13:00"),
        ("1st,15th 08:00", "2026-12-01 08:00", "2026-12-15 08:00"),
        ("last day 18:00", "2026-11-30 18:00", "2026-12-31 18:00"),
        ("31st 18:00", "2026-12-31 18:00", "2027-01-31 18:00"),
        ("first monday 09:00", "2026-12-07 09:00", "2027-01-04 09:00"),
        ("last friday 17:00", "2026-11-27 17:00", "2026-12-25 17:00"),
        ("last weekday 17:00", "2026-11-30 17:00", "2026-12-31 17:00"),
        ("24 December 18:00", "2026-12-24 18:00", "2027-12-24 18:00"),
        ("29 February 12:00", "2028-02-29 12:00", "2032-02-29 12:00"),
        ("0 9 * * 1-5", "2026-11-27 09:00", "2026-11-30 09:00"),
        ("0 9 * * MON Europe/Berlin", "2026-11-30 08:00", "2026-12-07 08:00"),
        ("0 0 29 2 *", "2028-02-29 00:00", "2032-02-29 00:00"),
    ],
)
def test_words_mean_instants(words: str, first: str, second: str) -> None:
    """Each form of a schedule says when it is due, in its own time zone."""
    schedule = parse_schedule(words)

    due = schedule.next_after(NOW)

    assert due is not None
    after = schedule.next_after(due)
    assert after is not None
    assert [first, second] == [f"{due:%Y-%m-%d %H:%M}", f"{after:%Y-%m-%d %H:%M}"]


@pytest.mark.parametrize(
    ("words", "message", "help"),
    [
        ("", "the schedule is empty", "write an interval"),
        ("31 February 08:00", "never comes", "no year has such a day"),
        ("30 feb 08:00", "never comes", "no year"),
        ("31 April 08:00", "never comes", "no year"),
        ("0 0 31 2 *", "never comes", "no year"),
        ("0 0 30,31 2 *", "never comes", "no year"),
        ("wekdays 09:00", "`wekdays` is no day", "did you mean `weekdays`?"),
        ("monday,tusday 09:00", "`tusday` is no day", "did you mean `t"),
        ("24 Decembre 18:00", "`decembre` is no day", "did you mean `december`?"),
        ("@daily", "`@daily` is no day", "did you mean `daily`?"),
        ("weekdays", "`weekdays` says no time of day", 'write "weekdays 09:00"'),
        ("09:00", "`09:00` says no day", 'write "daily 09:00"'),
        ("weekdays 24:00", "`24:00` is no time of day", "from `00:00` to `23:59`"),
        ("weekdays 9am", "`9am` is no time of day", "hours and minutes"),
        ("daily 09:00 Europe/Berln", "no time zone `Europe/Berln`", "did you mean `Europe/Berlin`?"),
        ("daily 09:00 Berlin", "no time zone `Berlin`", "did you mean `Europe/Berlin`?"),
        ("daily 09:00 ../etc/passwd", "no time zone `../etc/passwd`", "Europe/Berlin"),
        ("15m Europe/Berlin", "has no time zone", "leave out `Europe/Berlin`"),
        ("1d", "`1d` is no interval", '"daily 00:00" is once a day'),
        ("15 minuts", "`15 minuts` is no interval", "did you mean `15 minutes`?"),
        ("1.5h", "no whole number", "in a smaller unit"),
        ("0m", "not from `1s` to `24h`", "days with a time"),
        ("99999999999999h", "not from `1s` to `24h`", "days with a time"),
        ("0 25 * * *", "`25` is no hour of cron", "0 to 23"),
        ("0 9 * * FUNDAY", "`FUNDAY` is no day of the week of cron", "`SUN` to `SAT`"),
        ("0 9 * *", "has five fields, and this one has 4", "0 9 * * 1-5"),
        ("*/0 * * * *", "`*/0` is no minute of cron", "0 to 59"),
        ("32nd 08:00", "no month has a day `32nd`", "`last day`"),
        ("sixth monday 09:00", "`sixth` is no day", "did you mean"),
        ("6th monday 09:00", "no month has a `6th monday`", "`last`"),
    ],
)
def test_wrong_words_are_explained(words: str, message: str, help: str) -> None:
    """What means no time says why, and what to write."""
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(words)

    assert message in str(caught.value)
    assert help in caught.value.help


def test_the_zone_of_here_counts_where_none_is_named() -> None:
    """Words without a time zone are read by the clocks of the machine, those with one are not."""
    here = parse_schedule("daily 09:00", "Asia/Tokyo").next_after(NOW)

    assert datetime(2026, 11, 27, 0, 0, tzinfo=UTC) == here
    assert parse_schedule("daily 09:00 UTC", "Asia/Tokyo") == parse_schedule("daily 09:00")


def test_due_instants_lie_in_their_span() -> None:
    """What is due within a span is listed in order, its end included and its beginning not."""
    start, end = datetime(2026, 11, 26, 15, 0, tzinfo=UTC), datetime(2026, 11, 26, 16, 0, tzinfo=UTC)

    due = list(due_between(parse_schedule("20m"), start, end))

    assert [20, 40, 0] == [each.minute for each in due]


@pytest.mark.parametrize("words", ["15m", "1s", "* * * * *", "weekdays 09:00 Europe/Berlin", "29 February 12:00"])
def test_the_last_due_instant_is_found(words: str) -> None:
    """It is the one behind which none is due up to the end, over a minute as over years."""
    schedule = parse_schedule(words)
    first = schedule.next_after(NOW)
    assert first is not None

    for later in (timedelta(0), timedelta(seconds=59), timedelta(hours=5), timedelta(days=3000)):
        last, after = last_due(schedule, first, first + later), schedule.next_after(first + later)

        assert first <= last <= first + later
        assert schedule.next_after(last) == after


PIECES = [
    "daily",
    "weekdays",
    "mon",
    "1st",
    "31",
    "february",
    "last",
    "day",
    "09:00",
    "9",
    "24:61",
    "*",
    "*/0",
    "1-",
    "L",
]
PIECES += [
    "15m",
    "h",
    ",",
    "and",
    "Europe/Berlin",
    "Europe/",
    "../x",
    "UTC",
    "\0",
    "é",
    "１",
    "#",
    "/",
    "file",
    "hook",
    "**",
]


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join)))
def test_any_words_mean_something_or_are_explained(words: str) -> None:
    """Whatever is written, it is due at some time, or one sentence says what is wrong."""
    meant = [understand(parse, words) for parse in (parse_schedule, parse_trigger)]

    assert all(each.help.endswith((".", "?")) for each in meant if isinstance(each, ScheduleError))
    schedules = [each for each in meant if isinstance(each, CronSchedule | IntervalSchedule)]
    assert None not in [schedule.next_after(NOW) for schedule in schedules]


def understand(parse: Callable[[str], object], words: str) -> object:
    """What words mean, or what is wrong with them."""
    try:
        return parse(words)
    except ScheduleError as error:
        return error
