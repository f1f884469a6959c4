"""The object `registry` of Koi programs: keys and JSON values to and from a store."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from koi_lang.runtime.registry.entries import key_text, value_of, value_text
from koi_lang.runtime.registry.query import compile_query
from koi_lang.runtime.registry.store import IdempotencyKey, RegistryStore, T


class Registry:
    """Entries that all agents of a run share; keys keep the order in which they were first set.

    Every method raises RegistryError when the store cannot be read or written. Those that change something take
    `once`: with a key that is known they change nothing and give what they gave then.
    """

    __koi_members__: ClassVar[dict[str, str]] = {
        name: name for name in ("get", "set", "delete", "has", "keys", "search", "clear", "stats")
    }

    def __init__(self, store: RegistryStore, *, backend: str) -> None:
        self._store = store
        self._backend = backend

    async def get(self, key: str) -> Any:
        """The value of a key as it was set, a fresh copy each time; None when there is none."""
        name = key_text(key)
        text = self._store.read(name)
        return None if text is None else value_of(name, text)

    async def set(self, key: str, value: object, *, once: IdempotencyKey | None = None) -> None:
        """Keep a JSON value under a key; it is on disk when this returns.

        Raises:
            RegistryError: the value is not JSON; the message names the part that is not.
        """
        name = key_text(key)
        text = value_text(name, value)
        self._change(lambda: self._store.write(name, text), once)

    async def swap(self, key: str, before: object, after: object, *, once: IdempotencyKey | None = None) -> bool:
        """Keep a JSON value under a key that still has another one, None for no value; says whether it had.

        Raises:
            RegistryError: a value is not JSON.
        """
        name = key_text(key)
        wanted, text = value_text(name, before), value_text(name, after)

        def swap() -> bool:
            stored = self._store.read(name)
            if value_text(name, None if stored is None else value_of(name, stored)) != wanted:
                return False
            self._store.write(name, text)
            return True

        return self._change(swap, once)

    async def delete(self, key: str, *, once: IdempotencyKey | None = None) -> bool:
        """Forget a key; says whether it was there."""
        name = key_text(key)
        return self._change(lambda: self._store.remove(name), once)

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

    async def clear(self, *, once: IdempotencyKey | None = None) -> int:
        """Forget every entry; says how many there were."""
        return self._change(self._store.clear, once)

    async def stats(self) -> dict[str, Any]:
        """`backend`, `count` of entries, `file` (None in memory) and `size` in bytes."""
        store = self._store
        return {"backend": self._backend, "count": store.count(), "file": store.file, "size": store.size()}

    @property
    def is_durable(self) -> bool:
        """Whether entries are there again in another process."""
        return self._store.file is not None

    def forget(self, keys: Collection[IdempotencyKey]) -> None:
        """Keep some keys no longer; nobody carries their changes out again."""
        self._store.forget(keys)

    def forget_run(self, run: str) -> None:
        """The same for all keys of a run."""
        self._store.forget_run(run)

    def _change(self, change: Callable[[], T], once: IdempotencyKey | None) -> T:
        """What comes of a change; with a key, what came of it the first time."""
        return self._store.atomically(change) if once is None else self._store.once(once, change)

    def close(self) -> None:
        """Release the store's files; the next use opens them again."""
        self._store.close()
