"""The accounts of a service's runs: of each session, its user by the day, and all users by the day."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from koi_lang.errors import KoiError
from koi_lang.llm.usage import Estimate
from koi_lang.runtime.budget.limits import Budget, BudgetAccount, LimitReachedError, Reservation
from koi_lang.service.spending import SpendingTable, Taken
from koi_lang.settings.service import ServiceLimits, ServiceSettings, UserSettings

EVERYBODY, SESSION = "everybody together", "the session"
# How much of a budget was taken, in percent, when somebody is told.
Mark: TypeAlias = Literal[80, 100]
BUDGET_MARKS: tuple[Mark, ...] = (80, 100)


@dataclass(frozen=True, slots=True)
class BudgetNews:
    """That a part of a budget was taken.

    Attributes:
        mark: how much, in percent; 100 also where a request was refused because of what it would have taken.
        of: whose it is: `session`, `user` or `everybody`.
        name: id of the session, name of the user, empty for everybody.
        day: that it is for; empty where it is for a session.
        limit: what is limited, `tokens` or `usd`.
    """

    mark: Mark
    of: Literal["session", "user", "everybody"]
    name: str
    owner: str
    day: str
    limit: str
    taken: float
    most: float


Tell: TypeAlias = Callable[[BudgetNews], None]


@dataclass(slots=True, eq=False)
class WatchedAccount(BudgetAccount):
    """An account beyond runs; listeners are warned when much of its budget is used.

    Attributes:
        news: what is told, with the figures that count when it is created.
        told: what was told, by mark and limit.
    """

    news: BudgetNews = field(kw_only=True)
    tell: Tell = field(kw_only=True)
    told: set[tuple[int, str]] = field(default_factory=set, kw_only=True)

    def count(self, tokens: int, usd: float) -> None:
        """Count spending, and report reached marks."""
        BudgetAccount.count(self, tokens, usd)
        for limit, taken, most in self._figures():
            for mark in BUDGET_MARKS:
                if taken * 100 >= most * mark:
                    self._tell(mark, limit, taken, most)

    def _figures(self) -> list[tuple[str, float, float]]:
        known = (("tokens", self.tokens, self.budget.tokens), ("usd", self.usd, self.budget.usd))
        return [(limit, taken, most) for limit, taken, most in known if most is not None]

    def _tell(self, mark: Mark, limit: str, taken: float, most: float) -> None:
        if (mark, limit) not in self.told:
            self.told.add((mark, limit))
            self.tell(replace(self.news, mark=mark, limit=limit, taken=taken, most=most))

    def limit_error(self, limit: str, message: str, option: str) -> LimitReachedError:
        """The error for its limit, with when it ends."""
        for name, taken, most in self._figures():
            if name == limit:
                self._tell(100, limit, taken, most)
        error = LimitReachedError(limit, self.what, message, self.advice())
        error.is_beyond_run = True
        return error

    def advice(self) -> str:
        """When its limit ends."""
        return "The limit holds for the whole session; begin another one."


@dataclass(slots=True, eq=False)
class DayAccount(WatchedAccount):
    """The spending of a user on one day; reset at midnight.

    Attributes:
        days: says which day it is.
        read: what was taken on a day by what is kept.
    """

    days: Days = field(kw_only=True)
    read: Callable[[str], Taken] = field(kw_only=True)
    day: str = ""

    def refresh(self) -> None:
        """Read the spending of today."""
        self.day = self.days.today()
        taken = self.read(self.day)
        self.tokens, self.usd = taken.tokens, taken.usd

    def _turn_page(self) -> None:
        if self.days.today() != self.day:
            self.refresh()
            self.told.clear()
            self.news = replace(self.news, day=self.day)

    def answer_room(self, need: Estimate, *, beside_open: bool) -> float:
        """The most tokens of an answer that the day leaves."""
        self._turn_page()
        return BudgetAccount.answer_room(self, need, beside_open=beside_open)

    def count(self, tokens: int, usd: float) -> None:
        """Count spending for the day of its report."""
        self._turn_page()
        WatchedAccount.count(self, tokens, usd)

    def advice(self) -> str:
        """When its limit ends."""
        return f"The limit is that of a day, which ends at {self.days.end_text()}."


@dataclass(slots=True, eq=False)
class SessionAccount(WatchedAccount):
    """The spending of one session, stored with that of the accounts around it.

    Attributes:
        note: is told why something could not be written down.
    """

    run: str = field(kw_only=True)
    owner: str = field(kw_only=True)
    days: Days = field(kw_only=True)
    table: SpendingTable = field(kw_only=True)
    note: Callable[[str], None] = field(kw_only=True)
    numbers: dict[Reservation, int] = field(default_factory=dict)

    def keep_free(self, reservation: Reservation) -> None:
        """Write a request down before it leaves. Raises KoiError where that is not possible, so that it does not."""
        most = Taken(reservation.tokens, reservation.usd)
        self.numbers[reservation] = self.table.reserve(
            self.days.today(), self.owner, self.run, most, reservation.tokens - reservation.answer_tokens
        )
        BudgetAccount.keep_free(self, reservation)

    def settle(self, reservation: Reservation, tokens: int, usd: float) -> None:
        """Store the cost of a request."""
        self.open.discard(reservation)
        WatchedAccount.count(self, tokens, usd)
        number = self.numbers.pop(reservation)
        try:
            self.table.settle(number, self.days.today(), self.owner, self.run, Taken(tokens, usd))
        except KoiError as error:
            self.note(error.message)

    def count(self, tokens: int, usd: float) -> None:
        """Store unreserved spending, such as that of a request that a killed process has left open."""
        WatchedAccount.count(self, tokens, usd)
        try:
            was_left = self.table.count(self.days.today(), self.owner, self.run, Taken(tokens, usd))
        except KoiError as error:
            self.note(error.message)
            return
        if was_left:
            self.refresh()

    def refresh(self) -> None:
        """Read the spending of this account and of those around it."""
        taken = self.table.of_run(self.run)
        self.tokens, self.usd = taken.tokens, taken.usd
        for payer in self.payers():
            if isinstance(payer, DayAccount):
                payer.refresh()


class Accounts:
    """The accounts of a service.

    Args:
        tell: is told when much of a budget was taken; may be called again for the same one in another process.
        note: is told what goes wrong.
    """

    def __init__(
        self,
        table: SpendingTable,
        about: ServiceSettings,
        *,
        days: Days | None = None,
        tell: Tell = lambda news: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._table = table
        self._limits = about.limits
        self._settings = about.users
        self._days = days or Days(about.limits.zone)
        self._tell = tell
        self._note = note
        self._users: dict[str, DayAccount] = {}
        self._sessions: dict[str, SessionAccount] = {}
        budget = Budget(about.limits.tokens_per_day, about.limits.usd_per_day)
        self._everybody = self._day_account(budget, EVERYBODY, BudgetNews(80, "everybody", "", "", "", "", 0, 0))

    def of_session(self, run: str, owner: str, *, is_new: bool = False) -> BudgetAccount:
        """The account of a session, inside those of its user and of all users.

        Args:
            is_new: whether it has spent nothing yet.
        """
        if run in self._sessions:
            return self._sessions[run]
        had_left, taken = (False, Taken()) if is_new else (self._table.go_on(run), self._table.of_run(run))
        account = self._sessions[run] = SessionAccount(
            Budget(self._limits.tokens_per_session, self._limits.usd_per_session),
            SESSION,
            time.monotonic,
            self.of_user(owner),
            taken.tokens,
            taken.usd,
            news=BudgetNews(80, "session", run, owner, "", "", 0, 0),
            tell=self._tell,
            run=run,
            owner=owner,
            days=self._days,
            table=self._table,
            note=self._note,
        )
        if had_left:
            account.refresh()
        return account

    def forget(self, run: str) -> None:
        """Release the account of a sleeping or deleted session; its spending stays stored."""
        self._sessions.pop(run, None)

    def of_user(self, name: str) -> DayAccount:
        """The account of a user by the day."""
        if name not in self._users:
            news = BudgetNews(80, "user", name, name, "", "", 0, 0)
            budget = user_budget(self._limits, self._settings.get(name))
            self._users[name] = self._day_account(budget, f"the user `{name}`", news, self._everybody)
        return self._users[name]

    def _day_account(
        self, budget: Budget, what: str, news: BudgetNews, outer: BudgetAccount | None = None
    ) -> DayAccount:
        def read(day: str) -> Taken:
            return self._table.of_day(day, news.name)

        account = DayAccount(
            budget, what, time.monotonic, outer, news=news, tell=self._tell, days=self._days, read=read
        )
        account.refresh()
        account.news = replace(news, day=account.day)
        return account


def user_budget(limits: ServiceLimits, user: UserSettings | None) -> Budget:
    """The daily budget of a user: by their own settings, else by those for everybody."""
    tokens = user.tokens_per_day if user is not None else None
    usd = user.usd_per_day if user is not None else None
    return Budget(tokens or limits.tokens_per_user, usd or limits.usd_per_user)


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
