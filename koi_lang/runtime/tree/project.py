"""A project with its store of snapshots: what the functions of `std/workspace` do, for one thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.concurrency.stoppable_threads import Stop
from koi_lang.runtime.guards.code_files import runner_of
from koi_lang.runtime.guards.paths import require_no_code, running_files
from koi_lang.runtime.guards.write_quota import count_bytes
from koi_lang.runtime.snapshots.manifest import Manifest
from koi_lang.runtime.snapshots.retention import make_room
from koi_lang.runtime.snapshots.store import DamagedContentError, SnapshotStore
from koi_lang.runtime.tree.comparing import Differences, TreeComparison
from koi_lang.runtime.tree.restoring import Restorer
from koi_lang.runtime.tree.taking import Room, StoreFullError, Taker
from koi_lang.runtime.tree.walking import Tree, Walker
from koi_lang.settings import ProjectSettings
from koi_lang.settings.project import most_of_snapshots
from koi_lang.system.open_folders import OpenFolders

# So much of what is left out is listed.
MOST_LISTED = 500
MEGABYTE = 1_000_000
HOW_TO_MAKE_ROOM = (
    "Remove old runs with `koi runs delete`, have `.gitignore` name what need not be kept, or give `megabytes` in"
    " `[snapshots]` of `koi.toml` a larger number."
)


@dataclass(frozen=True, slots=True)
class ProjectTree:
    """A project.

    Attributes:
        folder: with all links resolved.
        stop: raises where nobody waits any more.
        settings: of the project, which say how much may be kept.
    """

    folder: Path
    stop: Stop
    settings: ProjectSettings

    def snapshot(self, run: str) -> dict[str, Any]:
        """Keep the tree for a run. Raises AgentError, OSError."""
        store, most_bytes = SnapshotStore.of(self.folder), most_of_snapshots(self.settings)
        try:
            id, manifest, tree = self._take(store, run, most_bytes)
        except StoreFullError:
            make_room(self.folder, store, most_bytes, self.stop)
            try:
                id, manifest, tree = self._take(store, run, most_bytes)
            except StoreFullError as error:
                told = f"snapshots of this project would take more than {most_bytes // MEGABYTE:,} MB"
                raise AgentError(told, help=HOW_TO_MAKE_ROOM) from error
        skipped = [{"path": path, "why": why} for path, why in sorted(tree.left_out.items())]
        return {
            "id": id,
            "files": len(manifest.files),
            "bytes": sum(file.size for file in manifest.files.values()),
            "skipped": skipped[:MOST_LISTED],
            "skippedCount": len(skipped),
        }

    def _take(self, store: SnapshotStore, run: str, most_bytes: int) -> tuple[str, Manifest, Tree]:
        with store.hold_lock(shared=True, stop=self.stop), OpenFolders(self.folder) as folders:
            room = Room(store, most_bytes)
            manifest, tree = Taker(folders, self._walker(), room, self.stop).take(store.latest())
            return store.keep(run, manifest, room.require), manifest, tree

    def changes(self, snapshot: str) -> dict[str, Any]:
        """What is different since a snapshot. Raises AgentError, OSError."""
        store = SnapshotStore.of(self.folder)
        with store.hold_lock(shared=True, stop=self.stop), OpenFolders(self.folder) as folders:
            found = self._differences(store.manifest(snapshot), folders)
        return {"added": found.added, "changed": found.changed, "removed": found.removed, "left": _list(found.left)}

    def restore(self, snapshot: str, role: Role | None) -> dict[str, Any]:
        """Put back the tree of a snapshot, on behalf of an agent with a role. Raises AgentError, OSError."""
        store = SnapshotStore.of(self.folder)
        with store.hold_lock(shared=False, stop=self.stop), OpenFolders(self.folder) as folders:
            manifest = store.manifest(snapshot)
            found = self._differences(manifest, folders)
            self._require_allowed(store, manifest, found, role)
            done = Restorer(folders, store, manifest, found).restore(self.stop)
        return {"written": sorted(done.changed + done.removed), "removed": done.added, "left": _list(done.left)}

    def _differences(self, manifest: Manifest, folders: OpenFolders) -> Differences:
        return TreeComparison(manifest, self._walker(), folders).differences()

    def _walker(self) -> Walker:
        root = f"{str(self.folder).casefold()}/"
        running = (path for path in running_files() if path.startswith(root))
        return Walker(self.folder, frozenset(path.removeprefix(root) for path in running), self.stop)

    def _require_allowed(self, store: SnapshotStore, manifest: Manifest, found: Differences, role: Role | None) -> None:
        """Raise where an answer of a model may not write so much, or a role change code. Nothing is changed yet."""
        for path in (*found.added, *found.changed, *found.removed):
            if not path.endswith("/"):
                why = runner_of(path.split("/"), self.folder / path) or _script_reason(store, manifest, path)
                require_no_code(path, why, role)
        written = [manifest.files[path].size for path in (*found.changed, *found.removed) if path in manifest.files]
        count_bytes(sum(written), "what `restore` puts back")


def _script_reason(store: SnapshotStore, manifest: Manifest, path: str) -> str | None:
    """Why a file would be code once it is put back, whatever its name."""
    kept = manifest.files.get(path)
    if kept is None or not kept.mode & 0o111:
        return None
    try:
        return "a shell runs" if store.get(kept.digest).startswith(b"#!") else None
    except DamagedContentError:
        return None  # it cannot be put back, which is told then


def _list(left: dict[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "why": why} for path, why in left.items()]
