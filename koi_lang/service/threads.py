"""Conversations by protocols of others: how clients call them, to the sessions that they are."""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.service.store import Database


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A conversation of a client.

    Attributes:
        protocol: by which it is held, with the program where there are several.
        thread: what the client calls it.
        owner: name of the user whose it is.
        run: id of its session.
        told: the number of the last entry that the client was told.
    """

    protocol: str
    thread: str
    owner: str
    run: str
    told: int = 0


class ThreadTable:
    """Which conversations there are."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "create table if not exists threads (protocol text not null, thread text not null, owner text not null,"
            " run text not null, told integer not null, primary key (protocol, thread, owner))"
        )

    def find(self, protocol: str, thread: str, owner: str) -> ThreadRow | None:
        """The conversation that a user calls so."""
        where = "protocol = ? and thread = ? and owner = ?"
        rows = self._database.execute(
            f"select protocol, thread, owner, run, told from threads where {where}", (protocol, thread, owner)
        )
        return ThreadRow(*rows[0]) if rows else None

    def keep(self, row: ThreadRow) -> None:
        """Keep a conversation, and how far its client was told."""
        values = (row.protocol, row.thread, row.owner, row.run, row.told)
        self._database.execute("insert or replace into threads values (?, ?, ?, ?, ?)", values)
