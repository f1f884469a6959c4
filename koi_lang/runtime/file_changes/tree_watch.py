"""A watch over all files of the project during a command: their states before, and the differences after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from koi_lang.errors import AgentError
from koi_lang.runtime.file_changes.content_keeper import ContentKeeper
from koi_lang.runtime.file_changes.path_states import PathContent, PathState, content_at
from koi_lang.runtime.file_changes.run_changes import ChangesBeside, RecordedChange
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.replay.location import Path as Location
from koi_lang.runtime.snapshots.manifest import Manifest
from koi_lang.runtime.snapshots.store import Stop
from koi_lang.runtime.tree.comparing import PastRules, reason_to_leave
from koi_lang.runtime.tree.gitignore import NAME
from koi_lang.runtime.tree.taking import Taker
from koi_lang.runtime.tree.walking import LARGE, Tree, Walker
from koi_lang.system.open_folders import OpenFolders

# Larger projects are not kept for commands: in files and folders, in bytes, and in seconds for reading what is new.
MAX_FILES = 20_000
MAX_BYTES = 300_000_000
MAX_S = 5.0


class LargeProjectError(AgentError):
    """There is too much in the project to keep it for a command."""


class TreeDifference(NamedTuple):
    """A path that is not as it was."""

    file: str
    before: PathState | None
    now: PathContent


@dataclass(slots=True, eq=False)
class TreeWatch:
    """The states of files while a command may change them.

    Attributes:
        manifest: what was there before.
        place: where in the run the command is.
        since_s: when it began, in seconds since the epoch.
        running: the other runs that were under way then.
        fixed: the files that the command cannot change, in small letters.
        states: of what actions and other runs have changed meanwhile, as they left it, with the time.
        others: what other runs have recorded since then.
    """

    manifest: Manifest
    id: str
    place: Location
    since_s: float
    running: frozenset[str]
    fixed: frozenset[str] = frozenset()
    states: dict[str, tuple[float, PathState | None]] = field(default_factory=dict)
    others: ChangesBeside = field(default_factory=ChangesBeside)

    def note_others(self, others: ChangesBeside) -> Iterator[tuple[float, RecordedChange]]:
        """Take over the changes by other runs, and yield each that has found the path changed by the command.

        While the caller has one of them, `undisturbed_state` is still the state before the command changed the path.
        """
        self.others = others
        for at_s, change in others.changes:
            if change.file in self.states and self.states[change.file][0] >= at_s:
                continue
            if self.is_covered(change.file) and self.undisturbed_state(change.file) != change.before:
                yield at_s, change
            self.states[change.file] = at_s, change.after

    def is_covered(self, file: str) -> bool:
        """Whether it would be found out that a command has changed a path."""
        if file.casefold() in self.fixed or is_closed(file.split("/")) or reason_to_leave(self.manifest.left_out, file):
            return False
        return state_in(self.manifest, file) is not None or not PastRules(self.manifest.ignores).ignore(
            file, is_folder=False
        )

    def undisturbed_state(self, file: str) -> PathState | None:
        """The state of a path unless the command has changed it."""
        return self.states[file][1] if file in self.states else state_in(self.manifest, file)


class _BoundedWalker(Walker):
    """A walker that rejects files too large to store."""

    def walk(self, root: int) -> Tree:
        tree = super().walk(root)
        if sum(status.size for status in tree.files.values()) > MAX_BYTES:
            raise LargeProjectError(f"the project has more than {MAX_BYTES // 1_000_000:,} MB")
        return tree


def take_tree(project: Path, keeper: ContentKeeper, known: Manifest, stop: Stop) -> tuple[str, Manifest]:
    """Keep all files of a project for a run; gives the id of their list, and it.

    Args:
        known: what was there some time ago.
        stop: is called now and then; raises where nobody waits any more.

    Raises:
        LargeProjectError: there is too much.
        StoreFullError: there is no room for it.
        AgentError: something cannot be kept.
        OSError: the same.
    """
    until = time.monotonic() + MAX_S

    def stop_in_time() -> None:
        stop()
        if time.monotonic() > until:
            raise LargeProjectError(f"the project cannot be read in {MAX_S:g} s")

    with keeper.hold_store(), OpenFolders(project) as folders:
        walker = _BoundedWalker(project, frozenset(), stop_in_time, is_whole=True, most=MAX_FILES)
        manifest, _ = Taker(folders, walker, keeper.room, stop_in_time).take(known)
        return keeper.keep_tree(manifest), manifest


def find_differences(project: Path, before: Manifest) -> list[TreeDifference]:
    """The differing paths, with their present states. Raises AgentError, OSError."""
    with OpenFolders(project) as folders:
        tree = Walker(project, frozenset(), lambda: None, is_whole=True).walk(folders.root)
        found = []
        for file in _suspects(before, tree):
            then, now = state_in(before, file), content_at(folders, file)
            if then != now.state:
                found.append(TreeDifference(file, then, now))
        return found


def _suspects(before: Manifest, tree: Tree) -> Iterator[str]:
    """The paths that may differ: by file metadata, and by missing or new entries."""
    for path, kept in before.files.items():
        if kept.status is None or kept.status != tree.files.get(path):
            yield path
    yield from (path for path, target in before.links.items() if tree.links.get(path) != target)
    yield from (path for path, mode in before.folders.items() if tree.folders.get(path) != mode)
    yield from (path for path, why in before.left_out.items() if path[-1:] != "/" and tree.left_out.get(path) != why)
    rules = PastRules(before.ignores)
    large = [path for path, why in tree.left_out.items() if why == LARGE]
    # A new file of rules may name itself, or its folder. In a new folder it stays: many caches name all of themselves.
    hidden = [folder for folder in before.folders if folder not in tree.folders]
    ruled = [folder[:-1] for above, folder, _ in tree.ignores if not above]
    ruling = [f"{folder}/{NAME}".lstrip("/") for folder in (*ruled, *hidden) if not folder or folder in before.folders]
    files = [*tree.files, *tree.links, *large, *(path for path in ruling if path not in tree.files)]
    for paths, is_folder in ((tree.folders, True), (files, False)):
        for path in paths:
            is_known = state_in(before, path) is not None or reason_to_leave(before.left_out, path)
            if not is_known and not rules.ignore(path, is_folder=is_folder):
                yield path


def state_in(manifest: Manifest, path: str) -> PathState | None:
    """The state of a path in a list; None for nothing."""
    if path in manifest.files:
        kept = manifest.files[path]
        return PathState("file", kept.digest, kept.mode)
    if path in manifest.links:
        return PathState("link", manifest.links[path])
    if path in manifest.left_out:
        return PathState("other", manifest.left_out[path])
    return PathState("folder", mode=manifest.folders[path]) if path in manifest.folders else None
