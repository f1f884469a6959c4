"""Contents of files to the store of snapshots, on behalf of one run, which holds them until its journal is removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from koi_lang.runtime.snapshots.manifest import Manifest
from koi_lang.runtime.snapshots.retention import begin_keeping, make_room
from koi_lang.runtime.snapshots.store import SnapshotStore, Stop
from koi_lang.runtime.tree.taking import Room, StoreFullError

T = TypeVar("T")


def never_stop() -> None:
    """Work that is short is not ended from outside."""


class ContentKeeper:
    """Keeps contents for a run that has a journal.

    Args:
        project: the folder of the run.
        most_bytes: that the store may hold.

    Raises:
        AgentError: nothing can be kept.
        OSError: the same.
    """

    def __init__(self, project: Path, run: str, most_bytes: int, stop: Stop = never_stop) -> None:
        self._project = project
        self._run = run
        self._most_bytes = most_bytes
        self._stop = stop
        begin_keeping(project, run, stop)
        self.store = SnapshotStore.of(project)
        self.room = Room(self.store, most_bytes)
        self._named: set[str] = set()

    def keep(self, *contents: bytes) -> None:
        """Store contents; stored contents of well-ended runs make room.

        Raises:
            StoreFullError: there is no room nevertheless.
            AgentError: they cannot be kept.
            OSError: the same.
        """
        self.with_room(lambda: self._keep(contents))

    def with_room(self, work: Callable[[], T]) -> T:
        """The result of storing work, which is repeated once after making room."""
        try:
            return work()
        except StoreFullError:
            make_room(self._project, self.store, self._most_bytes, self._stop)
            self.room = Room(self.store, self._most_bytes)
            return work()

    def _keep(self, contents: tuple[bytes, ...]) -> None:
        with self.hold_store():
            for data in contents:
                self.name(self.store.put(data, self.room.require))

    def name(self, digest: str) -> None:
        """Have the run hold a content. Raises AgentError."""
        if digest not in self._named:
            self.store.name_content(self._run, digest)
            self._named.add(digest)

    def keep_tree(self, manifest: Manifest) -> str:
        """Keep a list of all files; gives its id. Raises StoreFullError, AgentError."""
        return self.store.keep_tree(self._run, manifest, self.room.require)

    def remove_trees(self, but: Collection[str]) -> None:
        """Remove the lists that are needed no more. Raises OSError."""
        self.store.remove_trees(self._run, but)

    @contextmanager
    def hold_store(self) -> Iterator[None]:
        """A context in which nothing is removed from the store. Raises AgentError."""
        with self.store.hold_lock(shared=True, stop=self._stop):
            yield
