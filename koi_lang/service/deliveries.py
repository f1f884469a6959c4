"""Deliveries of webhooks: stored before they are sent, until they have arrived or are given up."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from koi_lang.service.store import Database

DeliveryState: TypeAlias = Literal["waiting", "sending", "delivered", "failed"]
DAY_S = 86_400.0
# Seconds to wait behind each try that failed; the last one is a day behind the first.
PAUSES_S = (60.0, 600.0, 7_200.0, DAY_S - 7_860.0)
TRIES = len(PAUSES_S) + 1
# How long it is known what has arrived, and what was given up.
KEPT_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message for one address.

    Attributes:
        id: names it for the receiver, the same in every try.
        body: JSON, without secrets.
        run: id of the run that it is about; empty for none.
        created: seconds since the epoch; so `due`, when it is tried next.
        tries: that were made before.
        problem: why the last one has failed.
    """

    id: str
    event: str
    address: str
    body: str
    run: str
    created: float
    due: float
    tries: int = 0
    state: DeliveryState = "waiting"
    problem: str = ""

    def as_data(self) -> dict[str, Any]:
        """The JSON form, without the body."""
        return {name: value for name, value in asdict(self).items() if name != "body"}


COLUMNS = ", ".join(field.name for field in fields(Delivery))
PLACES = ", ".join(f":{field.name}" for field in fields(Delivery))


class DeliveryTable:
    """All deliveries; those of a killed process are sent again, under their old ids."""

    def __init__(self, database: Database) -> None:
        self._execute = database.execute
        self._execute(
            "create table if not exists deliveries (id text primary key, event text not null, address text not null,"
            " body text not null, run text not null, created real not null, due real not null, tries integer not null,"
            " state text not null, problem text not null, about text not null, unique (about, address))"
        )
        self._execute("create index if not exists deliveries_by_due on deliveries (state, due)")

    def begin(self, now: float, addresses: Collection[str]) -> None:
        """Take over the deliveries of an earlier process, and forget old ones.

        Args:
            addresses: those of the hooks; what waits for others, which may have come with the folder, is given up.
        """
        self._execute(
            "update deliveries set state = 'failed', problem = 'no hook has this address' where state in ('waiting',"
            " 'sending') and address not in (select value from json_each(?))",
            (json.dumps([*addresses]),),
        )
        self._execute("update deliveries set state = 'waiting', due = ? where state = 'sending'", (now,))
        self._execute("delete from deliveries where state in ('delivered', 'failed') and created < ?", (now - KEPT_S,))

    def add(self, delivery: Delivery, about: str) -> bool:
        """Keep a delivery, unless its address was or is to be told of the same thing; says whether it is new."""
        rows = self._execute(
            f"insert into deliveries ({COLUMNS}, about) values ({PLACES}, :about)"
            " on conflict (about, address) do nothing returning id",
            {**asdict(delivery), "about": about},
        )
        return bool(rows)

    def next(self, now: float, busy: Sequence[str]) -> Delivery | None:
        """The next delivery, to none of some addresses; None where nothing is due."""
        places = ", ".join("?" * len(busy))
        found = self._where(
            f"state = 'waiting' and due <= ? and address not in ({places}) order by due, created limit 1", now, *busy
        )
        return found[0] if found else None

    def next_due(self, now: float) -> float | None:
        """When something is due that is not due yet; None where nothing is."""
        ((due,),) = self._execute("select min(due) from deliveries where state = 'waiting' and due > ?", (now,))
        return None if due is None else float(due)

    def begin_try(self, id: str) -> None:
        """Note that a delivery is being sent."""
        self._execute("update deliveries set state = 'sending', tries = tries + 1 where id = ?", (id,))

    def end_try(self, id: str, state: DeliveryState, due: float, problem: str = "") -> None:
        """Note the result of an attempt."""
        self._execute("update deliveries set state = ?, due = ?, problem = ? where id = ?", (state, due, problem, id))

    def all(self, *, undelivered: bool = False) -> list[Delivery]:
        """Those that are known, the newest first; perhaps only those that have not arrived."""
        where = "state <> 'delivered'" if undelivered else "1"
        return self._where(f"{where} order by created desc, id limit 1000")

    def _where(self, condition: str, *values: Any) -> list[Delivery]:
        return [Delivery(*row) for row in self._execute(f"select {COLUMNS} from deliveries where {condition}", values)]


class WatchedRuns:
    """Up to which entry of a run others were told, and which runs are awake; so that nothing is missed.

    What is awake when a process begins was left by one that was killed, and is looked through.
    """

    def __init__(self, database: Database) -> None:
        self._execute = database.execute
        self._execute(
            "create table if not exists watched_runs"
            " (run text primary key, last integer not null, is_awake integer not null)"
        )

    def awake(self) -> dict[str, int]:
        """The runs that are awake, with the entry up to which others were told."""
        rows = self._execute("select run, last from watched_runs where is_awake")
        return {str(run): int(last) for run, last in rows}

    def note(self, run: str, *, last: int = 0, is_awake: bool = True) -> None:
        """Note whether a run is awake, and up to which entry others were told."""
        self._execute(
            "insert into watched_runs values (?, ?, ?) on conflict (run) do update"
            " set last = max(last, excluded.last), is_awake = excluded.is_awake",
            (run, last, is_awake),
        )


def new_id() -> str:
    """The name of a delivery."""
    return f"dlv_{os.urandom(12).hex()}"
