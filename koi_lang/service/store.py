"""The data base of a service beside the journals: one SQLite file in the project's folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError, reason
from koi_lang.system.open_folders import STATE_FOLDER, make_state_file

NAME = "service.sqlite"


class Database:
    """The file; each table is a class of its own, which makes it where it is missing."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._is_synced = True

    @classmethod
    def connect(cls, folder: Path) -> Database:
        """That of a project's folder. Raises SettingsError."""
        path = folder / STATE_FOLDER / NAME
        try:
            make_state_file(path)
            return cls(path)
        except (OSError, sqlite3.Error) as error:
            cause = reason(error) if isinstance(error, OSError) else str(error)
            raise SettingsError(f"`{path}` cannot be used: {cause}") from error

    def execute(
        self, statement: str, values: Sequence[Any] | dict[str, Any] = (), *, is_synced: bool = True
    ) -> list[tuple[Any, ...]]:
        """The rows of a statement. Raises SettingsError.

        Args:
            is_synced: whether its changes are on the disk when this returns; the system has them in any case, and the
                next synced statement takes them along.
        """
        try:
            if is_synced != self._is_synced:
                self._connection.execute(f"pragma synchronous = {'full' if is_synced else 'normal'}")
                self._is_synced = is_synced
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            help = "Look whether the disk is full."
            raise SettingsError(f"`{NAME}` cannot be used: {error}", help=help) from error

    def close(self) -> None:
        """Give the file free."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A stored session.

    Attributes:
        run: id of its run.
        owner: name of the user whose it is.
        program: name of the program.
        title: what it was begun with, for people.
        created: seconds since the epoch.
        parent: id of the run that it is a branch of; empty for none.
    """

    run: str
    owner: str
    program: str
    title: str
    created: float
    parent: str = ""


NAMES = [field.name for field in fields(SessionRow)]
COLUMNS, VALUES = ", ".join(NAMES), attrgetter(*NAMES)
ADD = f"insert or replace into sessions ({COLUMNS}) values ({', '.join('?' for _ in NAMES)})"


class SessionTable:
    """Whose sessions there are."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "create table if not exists sessions (run text primary key, owner text not null, program text not null,"
            " title text not null, created real not null, parent text not null)"
        )

    def add(self, row: SessionRow, *, is_synced: bool = True) -> None:
        """Store a session; see `Database.execute`."""
        self._database.execute(ADD, VALUES(row), is_synced=is_synced)

    def find(self, run: str) -> SessionRow | None:
        """The session of a run."""
        rows = self._database.execute(f"select {COLUMNS} from sessions where run = ?", (run,))
        return SessionRow(*rows[0]) if rows else None

    def all(self, owner: str | None = None) -> list[SessionRow]:
        """The sessions of a user, or of everybody, newest first."""
        where, values = ("", ()) if owner is None else (" where owner = ?", (owner,))
        order = " order by created desc, run"
        return [
            SessionRow(*row) for row in self._database.execute(f"select {COLUMNS} from sessions{where}{order}", values)
        ]

    def remove(self, run: str) -> None:
        """Forget a session."""
        self._database.execute("delete from sessions where run = ?", (run,))
