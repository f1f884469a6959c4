"""Sessions that were put to sleep while they waited for somebody: what they had asked."""

from __future__ import annotations

import json
from typing import Any

from koi_lang.service.store import Database


class SleeperTable:
    """What sleeping sessions wait for; those that are awake have no row."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute("create table if not exists sleepers (run text primary key, requests text not null)")

    def put(self, run: str, requests: list[Any]) -> None:
        """Keep the questions and approvals of a session that goes to sleep."""
        self._database.execute("insert or replace into sleepers values (?, ?)", (run, json.dumps(requests)))

    def all(self) -> dict[str, list[dict[str, Any]]]:
        """The requests of all of them, by run."""
        return {run: json.loads(requests) for run, requests in self._database.execute("select * from sleepers")}

    def remove(self, run: str) -> None:
        """Forget one that wakes."""
        self._database.execute("delete from sleepers where run = ?", (run,))
