"""Requests that are sent again, by the keys that their senders gave them: each is carried out once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any

from koi_lang.service.store import Database

KEPT_S = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with a key.

    Attributes:
        digest: of what it asks for.
        run: the id that its run has, or is to have; for a call in a run the id of that.
        answer: what was answered, as JSON; empty while that is not known.
    """

    digest: str
    run: str
    answer: str = ""


class IdempotencyTable:
    """The requests with keys of the last days."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "create table if not exists idempotency (user text, key text, digest text not null, run text not null,"
            " answer text not null, created real not null, primary key (user, key))"
        )

    def claim(self, user: str, key: str, digest: str, run: str) -> KeyedRequest | None:
        """Keep a request before it is carried out; gives the one that has its key already, if there is one."""
        self._database.execute("delete from idempotency where created < ?", (time.time() - KEPT_S,))
        taken = self._database.execute(
            "insert into idempotency values (?, ?, ?, ?, '', ?) on conflict do nothing returning run",
            (user, key, digest, run, time.time()),
        )
        return None if taken else self.find(user, key)

    def find(self, user: str, key: str) -> KeyedRequest | None:
        """The request of a key."""
        statement = "select digest, run, answer from idempotency where user = ? and key = ?"
        rows = self._database.execute(statement, (user, key))
        return KeyedRequest(*rows[0]) if rows else None

    def settle(self, user: str, key: str, answer: str) -> None:
        """Store an answer."""
        self._database.execute("update idempotency set answer = ? where user = ? and key = ?", (answer, user, key))

    def forget(self, user: str, key: str) -> None:
        """Have a request that was refused be carried out when it is sent again."""
        self._database.execute("delete from idempotency where user = ? and key = ?", (user, key))


def digest_of(request: Any) -> str:
    """The digest of a request, which tells it from others with its key."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
