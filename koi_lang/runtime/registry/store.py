"""Stores of registry entries: the interface, and the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Names one change of a run, by its place in the run."""

    run: str
    place: str


class RegistryStore(Protocol):
    """Keys to JSON texts, in the order in which the keys were first written.

    Calls are short and block. A store opens at its first use and may be used again after `close`.
    """

    @property
    def file(self) -> str | None:
        """Where the entries lie on disk; None when they do not."""

    def read(self, key: str) -> str | None:
        """The text of an entry; None when there is none."""

    def write(self, key: str, text: str) -> None:
        """Add an entry, or replace its text in its old place."""

    def remove(self, key: str) -> bool:
        """Forget an entry; says whether it was there."""

    def keys(self) -> list[str]:
        """All keys."""

    def entries(self) -> list[tuple[str, str]]:
        """All keys with their texts."""

    def clear(self) -> int:
        """Forget every entry; says how many there were."""

    def atomically(self, change: Callable[[], T]) -> T:
        """Carry out a change that reads and writes; nobody else writes meanwhile."""

    def once(self, key: IdempotencyKey, change: Callable[[], T]) -> T:
        """Carry out a change and store its key, atomically; a known key returns the result of the change."""

    def forget(self, keys: Collection[IdempotencyKey]) -> None:
        """Keep some keys no longer; nobody carries their changes out again."""

    def forget_run(self, run: str) -> None:
        """The same for all keys of a run."""

    def count(self) -> int:
        """How many entries there are."""

    def size(self) -> int:
        """How many bytes they take where they are kept."""

    def close(self) -> None:
        """Release files and locks."""


class MemoryStore:
    """Entries of this process only."""

    file = None

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def read(self, key: str) -> str | None:
        """The text of an entry; None when there is none."""
        return self._texts.get(key)

    def write(self, key: str, text: str) -> None:
        """Add an entry, or replace its text in its old place."""
        self._texts[key] = text

    def remove(self, key: str) -> bool:
        """Forget an entry; says whether it was there."""
        return self._texts.pop(key, None) is not None

    def keys(self) -> list[str]:
        """All keys."""
        return list(self._texts)

    def entries(self) -> list[tuple[str, str]]:
        """All keys with their texts."""
        return list(self._texts.items())

    def clear(self) -> int:
        """Forget every entry; says how many there were."""
        count = len(self._texts)
        self._texts.clear()
        return count

    def atomically(self, change: Callable[[], T]) -> T:
        """Carry out a change."""
        return change()

    def once(self, key: IdempotencyKey, change: Callable[[], T]) -> T:
        """Carry out a change; nothing survives the process."""
        return change()

    def forget(self, keys: Collection[IdempotencyKey]) -> None:
        """None is kept."""

    def forget_run(self, run: str) -> None:
        """None is kept."""

    def count(self) -> int:
        """How many entries there are."""
        return len(self._texts)

    def size(self) -> int:
        """How many bytes keys and texts take as UTF-8."""
        return sum(len(key.encode()) + len(text.encode()) for key, text in self._texts.items())

    def close(self) -> None:
        """Nothing to release; the entries stay."""
