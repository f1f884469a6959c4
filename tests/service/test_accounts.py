"""Budgets beyond a run hold for many sessions at once, over midnight, restarts and killed processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from koi_lang.errors import capture
from koi_lang.llm.messages import Delta, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.models import cost_usd
from koi_lang.llm.usage import Calibration, Candidate, Estimate, tokens_of
from koi_lang.program import declarations
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.budget.reservations import Reservations
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.service.accounts import Accounts, BudgetNews, Days
from koi_lang.service.spending import SpendingTable, Taken
from koi_lang.settings.service import read_service
from tests.playbook.playing import done
from tests.projects import Project

PROGRAM = """
    role Worker { can think }
    agent Main : Worker { amnesia = true
      on go(args) { playbook \"\"\"Say something.\"\"\" } }
    """
NAME = "gpt-4o-mini"


@dataclass(slots=True)
class Clock:
    """A clock on a wall in Berlin."""

    time: datetime = datetime(2026, 11, 26, 23, 0, tzinfo=ZoneInfo("Europe/Berlin"))

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self.time.timestamp()

    def set(self, *day_and_time: int) -> None:
        """Set it, in either direction."""
        self.time = datetime(*day_and_time, tzinfo=ZoneInfo("Europe/Berlin"))  # type: ignore[misc, arg-type]


@dataclass(slots=True)
class Service:
    """The accounts of a folder, as often as a process is started there."""

    folder: Path
    limits: Mapping[str, Any]
    users: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    news: list[BudgetNews] = field(default_factory=list)

    def start(self) -> Accounts:
        """A new process; the one before was killed, since nothing is closed."""
        about = read_service({"limits": {"zone": "Europe/Berlin", **self.limits}, "users": self.users})
        days = Days("Europe/Berlin", self.clock)
        return Accounts(SpendingTable(self.folder), about, days=days, tell=self.news.append)

    def taken(self, day: str = "2026-11-26", owner: str = "") -> Taken:
        """What is written of a day, by what the process left that was killed last."""
        with closing(SpendingTable(self.folder)) as table:
            return table.of_day(day, owner)


class Counting:
    """A model that keeps to what a request says, takes some time, and reports what it has taken.

    Attributes:
        busiest: how many requests were on their way at once.
        usage: of all requests.
    """

    provider, model, candidates = "counting", NAME, (Candidate(NAME, 500),)

    def __init__(self, written: int = 400) -> None:
        self._written, self._open = written, 0
        self.usage: list[Usage] = []
        self.busiest = 0

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Answer after a while."""
        self._open += 1
        self.busiest = max(self.busiest, self._open)
        for _ in range(7):
            await asyncio.sleep(0)
        written = min(self._written, request.max_tokens or self._written)
        self.usage.append(Usage(tokens_of(request.messages, request.system), written))
        self._open -= 1
        yield TextDelta(json.dumps(done(ok=True)))
        yield StreamEnd(self.usage[-1], "stop")

    async def aclose(self) -> None:
        """Nothing is held."""

    @property
    def tokens(self) -> int:
        """Of all requests."""
        return sum(usage.input_tokens + usage.output_tokens for usage in self.usage)

    @property
    def usd(self) -> float:
        """What they cost."""
        return sum(cost_usd(NAME, usage) or 0.0 for usage in self.usage)


async def calls(module: ModuleType, model: Counting, accounts: Accounts, run: str, owner: str) -> list[Exception]:
    """What three calls of a session fail with."""
    services = Services(
        connect=lambda llm: model,
        teams=lambda: declarations.teams_of(module),
        config={"registry": {"backend": "memory"}},
        evaluate=evaluate,
        id=run,
        payer=accounts.of_session(run, owner),
    )
    errors = []
    async with Run(services) as live:
        for _ in range(3):
            ended = await capture(live.call(module.Main, "go", {}))
            errors += [ended.error] if isinstance(ended.error, Exception) else []
    return errors


async def sessions(
    module: ModuleType, model: Counting, accounts: Accounts, number: int, owners: tuple[str, ...] = ("ada",)
) -> list[Exception]:
    """What three calls in each of some sessions fail with, all at the same time."""
    names = [(f"{n:012x}", owners[n % len(owners)]) for n in range(number)]
    failed = await asyncio.gather(*(calls(module, model, accounts, *name) for name in names))
    return [error for errors in failed for error in errors]


@pytest.mark.parametrize("limits", [{"tokens_per_user": 20_000}, {"usd_per_user": 0.006}])
def test_forty_sessions_do_not_overspend_together(project: Project, limits: Mapping[str, Any]) -> None:
    """Whatever is on its way at once, a user takes no more than the limit and most of it, and the account is right."""
    service, model = Service(project.folder, limits), Counting()
    accounts = service.start()

    errors = asyncio.run(sessions(project.load("a.koi", PROGRAM), model, accounts, 40))
    (limit, most), taken = *limits.items(), {"tokens_per_user": model.tokens, "usd_per_user": model.usd}

    assert 0.8 * most < taken[limit] <= most
    assert 3 * 40 == len(model.usage) + len(errors)
    assert all(isinstance(error, LimitReachedError) and "the user `ada`" in str(error) for error in errors)
    assert model.tokens == service.taken().tokens
    assert pytest.approx(model.usd) == service.taken().usd
    assert [] == [account.what for account in accounts.of_session("0" * 12, "ada").payers() if account.open]
    assert model.busiest > 3


def test_a_refusal_says_the_limit_and_when_it_ends(project: Project) -> None:
    """The person reads whose limit it is, what was used of it, and the midnight that ends it."""
    accounts = Service(project.folder, {"tokens_per_user": 300}, {"bob": {"token": f"sha256:{'b' * 64}"}}).start()
    (error, *_) = asyncio.run(sessions(project.load("a.koi", PROGRAM), Counting(), accounts, 1, ("bob",)))

    assert isinstance(error, LimitReachedError)
    assert "the user `bob` has used 0 of its 300 tokens, and the next request takes about" in error.message
    assert error.help == "The limit is that of a day, which ends at 2026-11-27 00:00 Europe/Berlin."
    assert error.is_final()


def test_everybody_together_has_a_limit_too(project: Project) -> None:
    """The limit of the day holds for several users, and for each of them their own."""
    users = {"ada": {"token": f"sha256:{'a' * 64}", "tokens_per_day": 4_000}}
    service, model = Service(project.folder, {"tokens_per_day": 12_000}, users), Counting()

    asyncio.run(sessions(project.load("a.koi", PROGRAM), model, service.start(), 20, ("ada", "bob")))

    assert 9_000 < model.tokens <= 12_000
    assert 2_000 < service.taken(owner="ada").tokens <= 4_000
    assert service.taken().tokens == model.tokens


def test_a_session_has_a_limit_over_restarts(project: Project) -> None:
    """What it took in an earlier process counts."""
    service, model = Service(project.folder, {"tokens_per_session": 1_500}), Counting()
    module = project.load("a.koi", PROGRAM)

    first = asyncio.run(sessions(module, model, service.start(), 1))
    before = len(model.usage)
    second = asyncio.run(sessions(module, model, service.start(), 1))

    assert (1 <= before < 3, before) == (True, len(model.usage))
    assert (3 - before, 3) == (len(first), len(second))
    assert "the session has used" in str(second[0])


# ---------------------------------------------------------------- days


def reserve(accounts: Accounts, tokens: int, run: str = "1") -> int:
    """How many tokens of an answer a request may have that reads 10 and is never settled; -1 where it is refused."""
    payer = accounts.of_session(run, "ada")
    try:
        return asyncio.run(Reservations(Calibration()).reserve(payer, Estimate(10, tokens, 10))).answer_tokens
    except LimitReachedError:
        return -1


def test_what_a_killed_process_left_open_counts(project: Project) -> None:
    """A request that had left may have been answered, so it counts in full, until its run goes on and asks again."""
    service = Service(project.folder, {"tokens_per_user": 1000})
    assert 700 == reserve(service.start(), 700)

    accounts = service.start()
    assert 280 == reserve(accounts, 700, "2")  # 1000, without 710 that are open and 10 that are read
    accounts = service.start()
    assert -1 == reserve(accounts, 700, "3")

    accounts.of_session("1", "ada")
    assert 290 + 10 == accounts.of_user("ada").tokens
    accounts.of_session("1", "ada").spend(15, None)
    assert 290 + 15 == accounts.of_user("ada").tokens == service.taken().tokens
    assert 685 == reserve(accounts, 700)


def test_a_day_begins_at_midnight_of_the_zone(project: Project) -> None:
    """A user has a new budget then, also in a process that goes on; a clock that is set back has the old day again."""
    service = Service(project.folder, {"tokens_per_user": 1000})
    accounts = service.start()
    accounts.of_session("1", "ada").spend(900, None)
    seen = [accounts.of_user("ada").tokens]
    for time in ((2026, 11, 26, 23, 59, 59), (2026, 11, 27), (2026, 11, 26, 23, 59, 59)):
        service.clock.set(*time)
        accounts.of_session("1", "ada").spend(10, None)
        seen.append(accounts.of_user("ada").tokens)

    assert [900, 910, 10, 920] == seen
    assert (920, 10) == (service.taken("2026-11-26").tokens, service.taken("2026-11-27").tokens)


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        ((2026, 3, 29, 1, 0), "2026-03-30 00:00 Europe/Berlin"),
        ((2026, 10, 25, 2, 30), "2026-10-26 00:00 Europe/Berlin"),
        ((2026, 12, 31, 23, 59, 59), "2027-01-01 00:00 Europe/Berlin"),
    ],
)
def test_days_with_another_length_end_at_midnight(now: tuple[int, ...], ends: str) -> None:
    """A day with 23 or 25 hours ends when the next one begins."""
    clock = Clock()
    clock.set(*now)

    assert ends == Days("Europe/Berlin", clock).end_text()


def test_marks_of_a_budget_are_told_once(project: Project) -> None:
    """Who wants to know hears of 80 % and of 100 %, for each day once."""
    service = Service(project.folder, {"tokens_per_user": 1000})
    payer = service.start().of_session("1", "ada")
    for tokens in (700, 100, 100, 100, 5):
        payer.spend(tokens, None)
    service.clock.set(2026, 11, 27)
    payer.spend(900, None)

    assert [(80, "2026-11-26", 800), (100, "2026-11-26", 1000), (80, "2026-11-27", 900)] == [
        (each.mark, each.day, each.taken) for each in service.news
    ]
    assert {("user", "ada", "tokens", 1000)} == {(each.of, each.name, each.limit, each.most) for each in service.news}


def test_a_request_that_cannot_be_written_down_does_not_leave(project: Project) -> None:
    """Where accounts fail a session stops with the reason, and nobody keeps room for a request that was not made."""
    service, model = Service(project.folder, {"tokens_per_user": 10_000}), Counting()
    accounts = service.start()
    accounts.of_session("0" * 12, "ada")
    SpendingTable(project.folder)._database.execute("drop table reservations")

    errors = asyncio.run(sessions(project.load("a.koi", PROGRAM), model, accounts, 1))

    assert (0, 3) == (len(model.usage), len(errors))
    assert "`service.sqlite` cannot be used" in str(errors[0])
    assert not accounts.of_user("ada").open


def test_a_killed_process_is_one_that_was_killed(project: Project) -> None:
    """What a process had reserved and settled when SIGKILL ended it is known to the next one."""
    service = Service(project.folder, {"tokens_per_user": 1000})
    process = os.fork()
    if not process:
        try:
            accounts = service.start()
            accounts.of_session("2", "ada").spend(50, None)
            reserve(accounts, 700)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)

    assert -signal.SIGKILL == os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert 230 == reserve(service.start(), 700, "3")


def test_a_second_connection_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Another process that reads the file and goes does not take itself for the last one, and no row is lost."""
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('select tokens from spending'))"
    words = [sys.executable, "-c", f"{look}; c.close()", str(tmp_path / ".koi/service.sqlite")]
    with closing(SpendingTable(tmp_path)) as first, closing(SpendingTable(tmp_path)):
        told = []
        for number in range(3):
            first.settle(first.reserve("d", "ada", "run", Taken(9), 1), "d", "ada", f"run{number}", Taken(number + 1))
            told.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    assert ["(1,)\n", "(1,) (2,)\n", "(1,) (2,) (3,)\n"] == told
