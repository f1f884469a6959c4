"""Spending by day, user and run, with reservations, stored so that a killed process forgets nothing.

A request is written down before it leaves, with the most that it can take, and again with what it has taken when it is
answered. What a process that was killed has left open counts in full until its run goes on; then what it has read
counts alone, as the run itself counts it, so that it has room to ask again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.service.store import Database

SUMS = "coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0)"
ADD = (
    "insert into spending (day, owner, run, tokens, usd) values (?, ?, ?, ?, ?) on conflict (day, owner, run)"
    " do update set tokens = tokens + excluded.tokens, usd = usd + excluded.usd"
)


@dataclass(frozen=True, slots=True)
class Taken:
    """Tokens, and US dollars."""

    tokens: int = 0
    usd: float = 0.0


class SpendingTable:
    """The accounts of a service; a connection of its own, since a power cut may cost it the last second.

    What earlier processes left open is told apart from what this one opens.
    """

    def __init__(self, folder: Path) -> None:
        self._database = Database.connect(folder)
        self._execute = execute = self._database.execute
        execute("pragma synchronous = normal")
        execute(
            "create table if not exists spending (day text not null, owner text not null, run text not null,"
            " tokens integer not null, usd real not null, primary key (day, owner, run)) without rowid"
        )
        execute(
            "create table if not exists reservations (id integer primary key, day text not null, owner text not null,"
            " run text not null, tokens integer not null, usd real not null, read integer not null,"
            " is_left integer not null)"
        )
        execute("create index if not exists spending_by_run on spending (run)")
        execute("update reservations set is_left = 1")

    def close(self) -> None:
        """Give the file free."""
        self._database.close()

    # ------------------------------------------------------------ sums

    def of_day(self, day: str, owner: str = "") -> Taken:
        """The spending of a user on a day, of everybody without one, with the open reservations."""
        return self._sum("day = ?" + (" and owner = ?" if owner else ""), day, *([owner] if owner else []))

    def of_run(self, run: str) -> Taken:
        """The spending of a run on all days, with the open reservations."""
        return self._sum("run = ?", run)

    def _sum(self, where: str, *values: str) -> Taken:
        ((tokens, usd),) = self._execute(
            f"select {SUMS} from (select tokens, usd from spending where {where}"
            f" union all select tokens, usd from reservations where is_left and {where})",
            (*values, *values),
        )
        return Taken(tokens, usd)

    # ------------------------------------------------------------ requests

    def reserve(self, day: str, owner: str, run: str, most: Taken, read: int) -> int:
        """Write down a request that is to leave, and the tokens that it reads; gives its number."""
        rows = self._execute(
            "insert into reservations (day, owner, run, tokens, usd, read, is_left) values (?, ?, ?, ?, ?, ?, 0)"
            " returning id",
            (day, owner, run, most.tokens, most.usd, read),
        )
        return int(rows[0][0])

    def go_on(self, run: str) -> bool:
        """Note that a run goes on and repeats its open requests; returns whether there were any."""
        rows = self._execute(
            "update reservations set usd = usd * read / tokens, tokens = read"
            " where is_left and run = ? and tokens > read returning id",
            (run,),
        )
        return bool(rows)

    def settle(self, number: int, day: str, owner: str, run: str, taken: Taken) -> None:
        """Store the cost of a request in place of its reservation."""
        with self._transaction():
            self._execute("delete from reservations where id = ?", (number,))
            if taken != Taken():
                self._execute(ADD, (day, owner, run, taken.tokens, taken.usd))

    def count(self, day: str, owner: str, run: str, taken: Taken) -> bool:
        """Store unreserved spending; it settles the oldest open reservation of its run.

        Returns:
            Whether there was such a thing, so that sums have to be read again.
        """
        with self._transaction():
            left: list[Any] = self._execute(
                "delete from reservations where id = (select min(id) from reservations where is_left and run = ?)"
                " returning id",
                (run,),
            )
            self._execute(ADD, (day, owner, run, taken.tokens, taken.usd))
        return bool(left)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of the block is written, or none of it."""
        self._execute("begin immediate")
        with ExitStack() as undo:
            undo.callback(self._execute, "rollback")
            yield
            undo.pop_all()
        self._execute("commit")
