"""Which snapshots go, and when: with their run, and those of runs that have ended well where there is no room."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.snapshots.store import SnapshotStore, Stop, delete_snapshots, sweep_snapshots
from koi_lang.system.file_locks import try_lock

# The end of the name of a file that a run without a journal holds locked, so that others know of it.
HELD = ".held"


def begin_keeping(project: Path, run: str, stop: Stop) -> Callable[[], None] | None:
    """Make the folder of a run's snapshots; returns the clean-up for the end of the run, None where it is known.

    What was left by runs without a journal that were killed is removed. Raises AgentError, OSError.
    """
    store = SnapshotStore.of(project)
    if (store.lists / run).is_dir():
        return None
    # Held before the folder is there, so that nobody takes it for one of a run that was killed.
    held = None if path_of(project, run).exists() else _hold(_held_file(store, run))
    try:
        (store.lists / run).mkdir(mode=0o700)
    except FileExistsError:
        if held is not None:
            os.close(held)
        return None
    if _orphans(project, store):
        with store.hold_lock(shared=False, stop=stop):
            _remove_orphans(project, store)
            store.sweep()
    return lambda: _end_keeping(project, run, held)


def make_room(project: Path, store: SnapshotStore, most_bytes: int, stop: Stop) -> None:
    """Remove snapshots of runs that have ended well, the oldest first, until half of the store is free.

    Raises AgentError, OSError.
    """
    with store.hold_lock(shared=False, stop=stop):
        _remove_orphans(project, store)
        store.sweep()
        ended = [path for path in _by_age(store) if _has_ended_well(project, path.name)]
        while ended and store.used_bytes() > most_bytes // 2:
            count = (len(ended) + 1) // 2
            for path in ended[:count]:
                delete_snapshots(project, path.name)
            ended = ended[count:]
            store.sweep()


def _by_age(store: SnapshotStore) -> list[Path]:
    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0  # somebody has removed it meanwhile

    return sorted((path for path in store.lists.iterdir() if path.is_dir()), key=age)


def _has_ended_well(project: Path, run: str) -> bool:
    """Whether nobody goes on with a run; one that failed or was interrupted may need its snapshots yet."""
    try:
        return summarise(path_of(project, run)).state == "ok"
    except JournalError:
        return False


def _remove_orphans(project: Path, store: SnapshotStore) -> None:
    for run in _orphans(project, store):
        delete_snapshots(project, run)
        _held_file(store, run).unlink(missing_ok=True)


def _orphans(project: Path, store: SnapshotStore) -> list[str]:
    """The runs with snapshots that have no journal and do not go on."""
    return [path.name for path in _by_age(store) if _is_orphan(project, store, path.name)]


def _is_orphan(project: Path, store: SnapshotStore, run: str) -> bool:
    if path_of(project, run).exists():
        return False
    try:
        held = os.open(_held_file(store, run), os.O_RDWR)
    except OSError:
        return True
    try:
        return try_lock(held)
    finally:
        os.close(held)


def _held_file(store: SnapshotStore, run: str) -> Path:
    return store.lists / f"{run}{HELD}"


def _hold(path: Path) -> int:
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try_lock(held)
    return held


def _end_keeping(project: Path, run: str, held: int | None) -> None:
    """Remove the snapshots of a run that has no journal."""
    if held is not None:
        os.close(held)
    if path_of(project, run).exists():
        return
    with suppress(OSError):
        _held_file(SnapshotStore.of(project), run).unlink(missing_ok=True)
    if delete_snapshots(project, run):
        sweep_snapshots(project)
