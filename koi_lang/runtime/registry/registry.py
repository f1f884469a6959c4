"""The object `registry` of Koi programs: keys and JSON values to and from a store."""

from __future__ import annotations

from typing import Any, ClassVar

from koi_lang.runtime.registry.entries import key_text, value_of, value_text
from koi_lang.runtime.registry.query import compile_query
from koi_lang.runtime.registry.store import Store


class Registry:
    """Entries that all agents of a run share; keys keep the order in which they were first set.

    Every method raises RegistryError when the store cannot be read or written.
    """

    __koi_members__: ClassVar[dict[str, str]] = {
        name: name for name in ("get", "set", "delete", "has", "keys", "search", "clear", "stats")
    }

    def __init__(self, store: Store, *, backend: str) -> None:
        self._store = store
        self._backend = backend

    async def get(self, key: str) -> Any:
        """The value of a key as it was set, a fresh copy each time; None when there is none."""
        name = key_text(key)
        text = self._store.read(name)
        return None if text is None else value_of(name, text)

    async def set(self, key: str, value: object) -> None:
        """Keep a JSON value under a key; it is on disk when this returns.

        Raises:
            RegistryError: the value is not JSON; the message names the part that is not.
        """
        name = key_text(key)
        self._store.write(name, value_text(name, value))

    async def delete(self, key: str) -> bool:
        """Forget a key; says whether it was there."""
        return self._store.remove(key_text(key))

    async def has(self, key: str) -> bool:
        """Whether a key is set, whatever its value."""
        return self._store.read(key_text(key)) is not None

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that start with a prefix; all of them when it is empty or absent."""
        keys = self._store.keys()
        if not prefix:
            return keys
        start = key_text(prefix)
        return [key for key in keys if key.startswith(start)]

    async def search(self, query: object) -> list[dict[str, Any]]:
        """The entries whose values match a query, as `{"key", "value"}`.

        Raises:
            RegistryError: the query is malformed, even when there is no entry to try it on.
        """
        test = compile_query(query)
        values = ((key, value_of(key, text)) for key, text in self._store.entries())
        return [{"key": key, "value": value} for key, value in values if test(value)]

    async def clear(self) -> int:
        """Forget every entry; says how many there were."""
        return self._store.clear()

    async def stats(self) -> dict[str, Any]:
        """`backend`, `count` of entries, `file` (None in memory) and `size` in bytes."""
        store = self._store
        return {"backend": self._backend, "count": store.count(), "file": store.file, "size": store.size()}

    def close(self) -> None:
        """Release the store's files; the next use opens them again."""
        self._store.close()
