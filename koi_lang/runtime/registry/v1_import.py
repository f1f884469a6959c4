"""Registries that the JavaScript implementation wrote to entries of this one; the originals are only read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from koi_lang.errors import RegistryError
from koi_lang.runtime.registry.entries import key_text, value_text

if TYPE_CHECKING:
    from sqlite3 import Connection


class Legacy(Protocol):
    """One older registry; `name` tells it from others in the list of those already taken over."""

    @property
    def name(self) -> str:
        """The same name whenever the same older registry is meant."""

    def exists(self, connection: Connection) -> bool:
        """Whether there is anything to take over."""

    def entries(self, connection: Connection) -> list[tuple[str, str]]:
        """Keys with JSON texts. Raises RegistryError when the older registry is damaged."""


class JsonFile:
    """The `data.json` of the `local` backend: one object, key to value."""

    name = "data.json"

    def __init__(self, file: Path) -> None:
        self._file = file

    def exists(self, connection: Connection) -> bool:
        """Whether the file is there."""
        return self._file.is_file()

    def entries(self, connection: Connection) -> list[tuple[str, str]]:
        """Every member of the file's object, in its order; an empty file has none."""
        try:
            text = self._file.read_text("utf-8-sig")
            found = json.loads(text) if text.strip() else {}
            if isinstance(found, dict):
                return [(key_text(key), value_text(key, value)) for key, value in found.items()]
        except (OSError, ValueError, RecursionError, RegistryError) as error:
            raise self._unusable(str(error)) from error
        raise self._unusable("it holds no JSON object")

    def _unusable(self, reason: str) -> RegistryError:
        return RegistryError(
            f"the registry file `{self._file}` cannot be taken over: {reason}",
            help="Repair the file, or move it elsewhere to start without its entries; nothing was changed.",
        )


class KeyvTable:
    """The `keyv` table of the `keyv-sqlite` backend: rows `namespace:key` with JSON envelopes."""

    def __init__(self, namespace: str) -> None:
        self.name = f"keyv:{namespace}"
        self._prefix = f"{namespace}:"

    def exists(self, connection: Connection) -> bool:
        """Whether the database has the table."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'keyv'"
        return connection.execute(query).fetchone() is not None

    def entries(self, connection: Connection) -> list[tuple[str, str]]:
        """The rows of this namespace that have not expired."""
        rows = connection.execute("SELECT key, value FROM keyv ORDER BY rowid").fetchall()
        return list(self._convert(rows))

    def _convert(self, rows: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        now_ms = time.time() * 1000
        for name, text in rows:
            if not name.startswith(self._prefix):
                continue
            envelope = self._open(name, text)
            if (envelope.get("expires") or now_ms) >= now_ms:
                key = name.removeprefix(self._prefix)
                yield key_text(key), value_text(key, _unescape(envelope.get("value")))

    def _open(self, name: str, text: str) -> dict[str, Any]:
        try:
            envelope = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._unusable(name) from error
        if not isinstance(envelope, dict):
            raise self._unusable(name)
        return envelope

    def _unusable(self, name: str) -> RegistryError:
        return RegistryError(
            f"the row `{name}` of the `keyv` table cannot be taken over: it holds no JSON object",
            help="Delete that row, or name another file as `path` in `.koi-config.json`; nothing was changed.",
        )


def _unescape(value: Any) -> Any:
    """A value without the colon that the key-value library puts before texts starting with one."""
    if isinstance(value, str):
        return value[1:] if value.startswith(":") and not value.startswith(":base64:") else value
    if isinstance(value, list):
        return [_unescape(item) for item in value]
    if isinstance(value, dict):
        return {name: _unescape(item) for name, item in value.items()}
    return value
