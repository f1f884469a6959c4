"""Jobs that are due, with a clock that tests set: missed ones, ones that take long, kills, and changes of the clock."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from koi_lang.service import job_table
from koi_lang.service.job_table import JobProgress
from tests.schedules.service import Runs, SetClock, job, serving, settle


def test_a_job_begins_when_it_is_due(tmp_path: Path) -> None:
    """Neither before its time nor twice at it."""

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 08:00"), Runs(), job("daily 09:00")) as service:
            assert [0, 1, 1] == [await service.at(f"2026-11-26 {time}") for time in ("08:59", "09:00", "09:01")]
            assert [("Reporter.daily", {"top": 3})] == list(service.runs.begun.values())
            await service.runs.end()
            assert 2 == await service.at("2026-11-27 09:00")

    asyncio.run(play())


@pytest.mark.parametrize(("missed", "begun", "states"), [("once", 1, ["started"]), ("never", 0, ["skipped"])])
def test_what_was_missed_is_made_up_for_once_or_never(
    missed: str, begun: int, states: list[str], tmp_path: Path
) -> None:
    """A week without the service is one start, or none; a new job has missed nothing."""

    async def play() -> None:
        clock, daily = SetClock("2026-11-01 08:00"), job("daily 09:00", missed=missed)
        async with serving(tmp_path, clock, Runs(), daily):
            pass
        clock.set("2026-11-08 12:00")
        async with serving(tmp_path, clock, Runs(), daily) as service:
            assert begun == await service.at("2026-11-08 12:00")
            assert states == service.states(daily)
            await service.runs.end()
            assert begun + 1 == await service.at("2026-11-09 09:00")

    asyncio.run(play())


def test_a_job_of_other_words_is_a_new_one(tmp_path: Path) -> None:
    """What the program says now was not missed before it said so."""

    async def play() -> None:
        clock = SetClock("2026-11-01 08:00")
        async with serving(tmp_path, clock, Runs(), job("daily 09:00")):
            pass
        clock.set("2026-11-08 12:00")
        async with serving(tmp_path, clock, Runs(), job("daily 10:00")) as service:
            assert 0 == await service.at("2026-11-08 12:00")

    asyncio.run(play())


@pytest.mark.parametrize(
    ("overlap", "states", "afterwards"),
    [
        (None, ["started", "skipped", "skipped"], 1),
        ("skip", ["started", "skipped", "skipped"], 1),
        ("wait", ["started", "waiting", "skipped"], 2),
        ("together", ["started", "started", "started"], 3),
    ],
)
def test_a_job_that_takes_long(overlap: Any, states: list[str], afterwards: int, tmp_path: Path) -> None:
    """One at a time, unless something else is said: left out, begun afterwards, or begun beside it."""

    async def play() -> None:
        often = job("15m", overlap=overlap)
        async with serving(tmp_path, SetClock("2026-11-26 08:50"), Runs(), often) as service:
            for time in ("09:00", "09:15", "09:30"):
                await service.at(f"2026-11-26 {time}")
            assert states == service.states(often)
            await service.runs.end()
            assert afterwards == await service.at("2026-11-26 09:31")

    asyncio.run(play())


def test_a_clock_that_is_set_back_repeats_nothing(tmp_path: Path) -> None:
    """Within three hours what was begun is not begun again; a clock that is set back by more is believed."""

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 08:00"), Runs(), job("hourly")) as service:
            seen = []
            for time in ("09:00", "10:00", "08:30", "09:00", "10:00", "10:59", "11:00"):
                seen.append(await service.at(f"2026-11-26 {time}"))
                await service.runs.end()
            assert [1, 2, 2, 2, 2, 2, 3] == seen
            assert 3 == await service.at("2026-11-26 07:30")
            assert ["the clock was set back; `desk/report` goes by it"] == service.lines
            assert 4 == await service.at("2026-11-26 11:00")

    asyncio.run(play())


@pytest.mark.parametrize("words", ["* * * * *", "1s"])
def test_a_clock_that_is_set_forward_begins_one_run(words: str, tmp_path: Path) -> None:
    """Ten years of minutes are one start, found in a moment."""

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 08:00"), Runs(), job(words)) as service:
            assert 1 == await service.at("2036-11-26 08:00:00")
            await service.runs.end()
            assert 1 == await service.at("2036-11-26 08:00:00")

    asyncio.run(play())


def test_a_kill_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Killed before, while and after a run begins, the same run goes on, and no other."""

    async def play() -> None:
        clock, runs, daily = SetClock("2026-11-26 08:00"), Runs(), job("daily 09:00")
        async with serving(tmp_path, clock, runs, daily) as service:
            service.scheduler._begin_waiting = lambda job, now: 30.0  # type: ignore[method-assign]
            await service.at("2026-11-26 09:00")  # due, not begun
        async with serving(tmp_path, clock, runs, daily) as service:
            assert ["waiting"] == service.states(daily)
            service.table.set_state(service.table.of_state(daily.id, "waiting")[0].run, "starting")
        async with serving(tmp_path, clock, runs, daily) as service:
            assert 1 == await service.at("2026-11-26 09:01")
        async with serving(tmp_path, clock, runs, daily) as service:
            assert ["started"] == service.states(daily)
            await runs.end()
            assert ["ended"] == service.states(daily)
            assert 1 == await service.at("2026-11-26 09:02")
        assert 1 == len(set(runs.asked))

    asyncio.run(play())


def test_a_kill_between_a_start_and_its_note_doubles_nothing(tmp_path: Path) -> None:
    """Where the start was kept and the time up to which was looked was not, the same due time begins no second run."""

    async def play() -> None:
        clock, runs, daily = SetClock("2026-11-26 08:00"), Runs(), job("daily 09:00")
        async with serving(tmp_path, clock, runs, daily) as service:
            await service.at("2026-11-26 09:00")
            await runs.end()
            service.table.set_progress(daily.id, daily.job.words, JobProgress(clock.now() - 3600))
        async with serving(tmp_path, clock, runs, daily) as service:
            assert 1 == await service.at("2026-11-26 09:00")
            assert ["ended"] == service.states(daily)

    asyncio.run(play())


def test_jitter_puts_a_start_off(tmp_path: Path) -> None:
    """By less than it says, as much after a kill as before it."""

    async def play() -> None:
        clock, runs, late = SetClock("2026-11-26 08:50"), Runs(), job("hourly", jitter_s=600.0)
        async with serving(tmp_path, clock, runs, late) as service:
            assert 0 == await service.at("2026-11-26 09:00")
            first = service.table.of_state(late.id, "waiting")[0].begins - clock.now()
        async with serving(tmp_path, clock, runs, late) as service:
            assert first == service.table.of_state(late.id, "waiting")[0].begins - clock.now()
            assert 1 == await service.at("2026-11-26 09:10")
        assert 0 < first < 600

    asyncio.run(play())


def test_a_run_that_cannot_begin(tmp_path: Path) -> None:
    """Where there is no room it is begun later; what is refused is told, and the next one is tried."""

    async def play() -> None:
        hourly = job("hourly")
        async with serving(tmp_path, SetClock("2026-11-26 08:50"), Runs(), hourly) as service:
            service.runs.is_full = True
            assert 0 == await service.at("2026-11-26 09:00")
            service.runs.is_full = False
            assert [0, 1] == [await service.at(f"2026-11-26 {time}") for time in ("09:00:29", "09:00:30")]
            await service.runs.end("no model")
            service.runs.refusal = "`desk` has errors"
            await service.at("2026-11-26 10:00")
            assert ["failed", "failed"] == service.states(hourly)
            assert ["error: `desk/report` was not started: `desk` has errors"] == service.lines
            service.runs.refusal = ""
            assert 2 == await service.at("2026-11-26 11:00")

    asyncio.run(play())


def test_a_full_disk_stops_nothing_else(tmp_path: Path) -> None:
    """Nothing begins that cannot be written down; it is told once, and made up for when there is room again."""

    async def play() -> None:
        hourly = job("hourly")
        async with serving(tmp_path, SetClock("2026-11-26 08:50"), Runs(), hourly) as service:
            service.database.execute("pragma query_only = on")
            for time in ("09:00", "09:01"):
                service.clock.set(f"2026-11-26 {time}")
                assert 30.0 == service.scheduler.try_to_look()
                await settle()
            assert {} == service.runs.begun
            assert 1 == len(service.lines)
            assert "error: jobs wait, since nothing can be written down: " in service.lines[0]
            service.database.execute("pragma query_only = off")
            assert 1 == await service.at("2026-11-26 09:02")

    asyncio.run(play())


def test_what_breaks_one_job_is_nothing_to_others(tmp_path: Path) -> None:
    """A mistake of ours in beginning a run is told as its failure."""

    async def play() -> None:
        hourly = job("hourly")
        async with serving(tmp_path, SetClock("2026-11-26 08:50"), Runs(), hourly) as service:
            del service.runs.refusal
            await service.at("2026-11-26 09:00")
            assert ["failed"] == service.states(hourly)
            assert "has no attribute" in service.lines[0]

    asyncio.run(play())


def test_messages_wait_for_each_other(tmp_path: Path) -> None:
    """Each begins one run, in their order; one that comes again begins none."""

    async def play() -> None:
        hook = job("hook /github")
        async with serving(tmp_path, SetClock("2026-11-26 09:00"), Runs(), hook) as service:
            taken = [service.scheduler.take_event(hook, {"n": key}, key) for key in ("a", "b", "a")]
            await service.at("2026-11-26 09:00")
            assert [("Reporter.daily", {"n": "a"})] == list(service.runs.begun.values())
            await service.runs.end()
            assert 2 == await service.at("2026-11-26 09:01")
            assert taken[0] is not None
            assert taken[0] == taken[2]

    asyncio.run(play())


def test_old_starts_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table keeps the newest of each job, without what they were given, and all that is still open."""
    monkeypatch.setattr(job_table, "MAX_KEPT", 20)

    async def play() -> None:
        often = job("1m")
        async with serving(tmp_path, SetClock("2026-11-26 08:59"), Runs(), often) as service:
            for number in range(30):
                await service.at(f"2026-11-26 09:{number:02}")
                await service.runs.end()
            kept = service.table.of_state(often.id, "ended")
            assert (20, {None}) == (len(kept), {start.payload for start in kept})

    asyncio.run(play())


HOUR_S, MOST_SET_BACK_S = 3600, 3 * 3600
# By how many minutes the clock is moved between two looks, in each life of a service.
LIVES = st.lists(st.lists(st.integers(-300, 600), max_size=5), max_size=5)


@settings(deadline=None, max_examples=25)
@given(LIVES)
@example([[61, -100, 61], [50], [-200, 30, 30, 600]])
@example([[-181, 31]])
def test_clocks_and_kills_lose_and_double_nothing(lives: list[list[int]]) -> None:
    """However the clock is set and the service is killed, the last full hour of each look has begun one run.

    It begins none where one of that hour or a later one had begun before.
    """

    async def play(folder: Path) -> None:
        clock, runs, hourly = SetClock("2026-11-26 08:30"), Runs(), job("1h")
        last, expected = clock.now(), 0
        for life in lives:
            async with serving(folder, clock, runs, hourly) as service:
                for minutes in life:
                    clock.move(minutes)
                    last = clock.now() if last - clock.now() > MOST_SET_BACK_S else last
                    hour = clock.now() // HOUR_S * HOUR_S
                    expected += hour > last
                    last = max(last, hour)
                    service.scheduler.look()
                    await settle()
                    await runs.end()
                    assert expected == len(runs.begun)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))
