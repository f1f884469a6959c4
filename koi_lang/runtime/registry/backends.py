"""The registry part of `.koi-config.json` to an open registry.

Every change is one transaction in write-ahead mode, so a process may be killed at any moment: what was acknowledged is
there, what was not is absent or complete. A power cut may cost the last changes, never the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Any, cast

from koi_lang.errors import RegistryError, SettingsError
from koi_lang.runtime.registry.registry import Registry
from koi_lang.runtime.registry.store import IdempotencyKey, MemoryStore, RegistryStore, T
from koi_lang.runtime.registry.v1_import import JsonFile, KeyvTable, Legacy
from koi_lang.system.open_folders import STATE_FOLDER, make_state_file

FOLDER = f"{STATE_FOLDER}/registry"
FILE = "registry.sqlite"
NAMESPACE = "koi"


def open_registry(folder: Path, config: Mapping[str, Any] | None) -> Registry:
    """The registry of a working directory; nothing on disk is touched before its first use.

    Args:
        folder: the working directory, relative paths start there.
        config: all of `.koi-config.json`; None or no member `registry` means the `local` backend.

    Raises:
        SettingsError: the backend is unknown or an option has the wrong type.
    """
    section = _object(config or {}, "registry", "registry")
    backend = _text(section, "backend", "local")
    build = _BACKENDS.get(backend)
    if build is None:
        known = ", ".join(f"`{name}`" for name in _BACKENDS)
        raise SettingsError(f"unknown registry backend `{backend}`", help=f"Set `registry.backend` to one of {known}.")
    return Registry(build(folder, _object(section, "options", "registry.options")), backend=backend)


def _local(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    place = folder / _text(options, "path", FOLDER)
    return DurableStore(place / FILE, NAMESPACE, JsonFile(place / "data.json"))


def _keyv_sqlite(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    file = folder / _text(options, "path", f"{FOLDER}/{FILE}")
    namespace = _text(options, "namespace", NAMESPACE)
    return DurableStore(file, namespace, KeyvTable(namespace))


def _memory(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    return MemoryStore()


_BACKENDS: Mapping[str, Callable[[Path, Mapping[str, Any]], RegistryStore]] = {
    "local": _local,
    "memory": _memory,
    "keyv-sqlite": _keyv_sqlite,
}


def _object(parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    found = parent.get(name)
    if found is None:
        return {}
    if isinstance(found, Mapping):
        return found
    raise SettingsError(f"`{path}` in `.koi-config.json` must be an object, not {found!r}")


def _text(parent: Mapping[str, Any], name: str, default: str) -> str:
    found = parent.get(name)
    if found is None:
        return default
    if isinstance(found, str) and found:
        return found
    raise SettingsError(f"the registry's `{name}` in `.koi-config.json` must be text, not {found!r}")


LAYOUT = 1
BUSY_TIMEOUT_S = 10.0

_TABLES = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
    " UNIQUE (namespace, key))",
    "CREATE TABLE imports (name TEXT PRIMARY KEY)",
    f"PRAGMA user_version = {LAYOUT}",
)
# Made when the first key is kept; an older version that does not know the table does not need it either.
_KEYS = (
    "CREATE TABLE IF NOT EXISTS idempotency_keys (run TEXT NOT NULL, place TEXT NOT NULL, outcome TEXT NOT NULL,"
    " PRIMARY KEY (run, place)) WITHOUT ROWID"
)
_NAMED = "idempotency_keys WHERE run = ? AND place = ?"
_WRITE = (
    "INSERT INTO entries (namespace, key, value) VALUES (?, ?, ?)"
    " ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"
)


class DurableStore:
    """The entries of one namespace in one SQLite file.

    An older registry is taken over once, when it is first seen; entries that exist already win over it.
    """

    def __init__(self, file: Path, namespace: str, legacy: Legacy) -> None:
        self._path = file
        self._namespace = namespace
        self._legacy = legacy
        self._connection: Connection | None = None
        self._has_keys = False

    @property
    def file(self) -> str:
        """The path of the database."""
        return str(self._path)

    def read(self, key: str) -> str | None:
        """The text of an entry; None when there is none."""
        rows = self._rows("SELECT value FROM entries WHERE namespace = ? AND key = ?", key)
        return rows[0][0] if rows else None

    def write(self, key: str, text: str) -> None:
        """Add an entry, or replace its text in its old place."""
        self._change(_WRITE, key, text)

    def remove(self, key: str) -> bool:
        """Forget an entry; says whether it was there."""
        return self._change("DELETE FROM entries WHERE namespace = ? AND key = ?", key) > 0

    def keys(self) -> list[str]:
        """All keys."""
        return [key for (key,) in self._rows("SELECT key FROM entries WHERE namespace = ? ORDER BY id")]

    def entries(self) -> list[tuple[str, str]]:
        """All keys with their texts."""
        return self._rows("SELECT key, value FROM entries WHERE namespace = ? ORDER BY id")

    def clear(self) -> int:
        """Forget every entry of the namespace; says how many there were."""
        return self._change("DELETE FROM entries WHERE namespace = ?")

    def atomically(self, change: Callable[[], T]) -> T:
        """Carry out a change in one transaction."""
        with _explain_errors(self._path), _transaction(self._open()):
            return change()

    def once(self, key: IdempotencyKey, change: Callable[[], T]) -> T:
        """Carry out a change and store its result, in one transaction; a known key returns the stored result."""
        connection = self._open()
        names = (key.run, key.place)
        with _explain_errors(self._path), _transaction(connection):
            self._make_keys(connection)
            known = connection.execute(f"SELECT outcome FROM {_NAMED}", names).fetchone()
            if known is not None:
                return cast(T, json.loads(known[0]))
            outcome = change()
            connection.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?)", (*names, json.dumps(outcome)))
        return outcome

    def forget(self, keys: Collection[IdempotencyKey]) -> None:
        """Keep some keys no longer."""
        names = [(key.run, key.place) for key in keys]
        with _explain_errors(self._path), _transaction(connection := self._open()):
            self._make_keys(connection)
            connection.executemany(f"DELETE FROM {_NAMED}", names)

    def forget_run(self, run: str) -> None:
        """Keep no key of a run any longer."""
        with _explain_errors(self._path), _transaction(connection := self._open()):
            self._make_keys(connection)
            connection.execute("DELETE FROM idempotency_keys WHERE run = ?", (run,))

    def _make_keys(self, connection: Connection) -> None:
        if not self._has_keys:
            connection.execute(_KEYS)
            self._has_keys = True

    def count(self) -> int:
        """How many entries the namespace has."""
        return int(self._rows("SELECT count(*) FROM entries WHERE namespace = ?")[0][0])

    def size(self) -> int:
        """Bytes of the file and of the log that belongs to it."""
        self._open()
        log = self._path.with_name(self._path.name + "-wal")
        with _explain_errors(self._path):
            return sum(file.stat().st_size for file in (self._path, log) if file.exists())

    def close(self) -> None:
        """Release the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._has_keys = False

    def _rows(self, query: str, *parameters: str) -> list[Any]:
        connection = self._open()
        with _explain_errors(self._path):
            return connection.execute(query, (self._namespace, *parameters)).fetchall()

    def _change(self, statement: str, *parameters: str) -> int:
        connection = self._open()
        with _explain_errors(self._path):
            return connection.execute(statement, (self._namespace, *parameters)).rowcount

    def _open(self) -> Connection:
        if self._connection is None:
            with _explain_errors(self._path):
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        make_state_file(self._path)  # its log has the same mode
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        with ExitStack() as undo:
            undo.callback(connection.close)
            self._prepare(connection)
            undo.pop_all()
        return connection

    def _prepare(self, connection: Connection) -> None:
        if self._is_incomplete(connection):
            with _transaction(connection):
                self._complete(connection)
        _log_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    def _is_incomplete(self, connection: Connection) -> bool:
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout > LAYOUT:
            raise RegistryError(
                f"the registry file `{self._path}` was written by a newer version of Koi",
                help="Update koi-lang, or name another `path` in `.koi-config.json`.",
            )
        return layout < LAYOUT or (self._legacy.exists(connection) and not self._is_imported(connection))

    def _complete(self, connection: Connection) -> None:
        """Create the tables and take over the older registry, where another process has not just done so."""
        if connection.execute("PRAGMA user_version").fetchone()[0] < LAYOUT:
            for statement in _TABLES:
                connection.execute(statement)
        if not self._legacy.exists(connection) or self._is_imported(connection):
            return
        rows = [(self._namespace, key, text) for key, text in self._legacy.entries(connection)]
        connection.executemany("INSERT OR IGNORE INTO entries (namespace, key, value) VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO imports (name) VALUES (?)", (self._legacy.name,))

    def _is_imported(self, connection: Connection) -> bool:
        found = connection.execute("SELECT 1 FROM imports WHERE name = ?", (self._legacy.name,)).fetchone()
        return found is not None


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    """All of the block is written, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    with ExitStack() as undo:
        undo.callback(connection.execute, "ROLLBACK")
        yield
        undo.pop_all()
    connection.execute("COMMIT")


def _log_ahead(connection: Connection) -> None:
    """Switch the file to write-ahead mode; while another process uses the file it is left for the next opening."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise


@contextmanager
def _explain_errors(file: Path) -> Iterator[None]:
    """Errors of the database and the disk inside the block become a RegistryError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _explain(error, file) from error


def _explain(error: Exception, file: Path) -> RegistryError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or isinstance(error, UnicodeError):
        return RegistryError(
            f"the registry file `{file}` is damaged: {error}",
            help="Nothing in it was changed. Restore a copy, or move it elsewhere to start with an empty registry.",
        )
    if code == sqlite3.SQLITE_BUSY:
        return RegistryError(
            f"the registry file `{file}` is in use: another process has held it for {BUSY_TIMEOUT_S:.0f} s",
            help="End the process that holds it, or try again.",
        )
    return RegistryError(
        f"the registry file `{file}` cannot be used: {error}",
        help="Check that the folder exists, may be written and has room, or set another `path` in `.koi-config.json`.",
    )
