"""The record of file changes in the journal: the earlier content is stored before an action changes it.

What an action is about to change is told first, so that a run that is killed in the middle of it can be undone, too.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.errors import KoiError, reason
from koi_lang.events import ChangesNotKept, EventData, FileChanged, FileKept, TreeCompared, TreeKept
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.file_changes.content_keeper import ContentKeeper
from koi_lang.runtime.file_changes.path_states import PathContent, PathState, content_at, data_of
from koi_lang.runtime.file_changes.run_changes import ChangesBeside, changes_beside, running_runs
from koi_lang.runtime.file_changes.tree_watch import LargeProjectError, TreeWatch, find_differences, take_tree
from koi_lang.runtime.guards.paths import running_programs
from koi_lang.runtime.guards.write_quota import no_quota
from koi_lang.runtime.host import visible
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.replay.location import Path as Location
from koi_lang.runtime.replay.location import current_path
from koi_lang.runtime.snapshots.store import snapshots_folder
from koi_lang.runtime.tree.taking import StoreFullError
from koi_lang.runtime.tree.walking import ManyFilesError
from koi_lang.settings.project import most_of_snapshots
from koi_lang.system.file_locks import open_lock, try_lock
from koi_lang.system.open_folders import OpenFolders, make_state_folder

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# Held by whoever changes a file of the project, so that each knows what the other has left.
LOCK = "changing"
MAX_WAIT_S = 30.0
PAUSE_S = 0.003
MARK_S = 1.0
FULL = "there is no room for what was there; `megabytes` in `[snapshots]` of `koi.toml` says how much there may be"


@dataclass(frozen=True, slots=True)
class PathChange:
    """A change of a path that is under way.

    Attributes:
        place: where in the run its events happen; nothing else happens there, also when it is done once more.
    """

    file: str
    before: PathState | None
    place: Location


class ChangeRecorder:
    """Records the changes of project files by the actions of a run, as long as it has a journal."""

    def __init__(self, run: RunPort) -> None:
        self.seen: dict[tuple[str, str], tuple[int, int]] = {}
        self.writers: dict[str, tuple[str, tuple[int, int]]] = {}
        self._run = run
        self._project = run.folder.resolve()
        self._keeper: ContentKeeper | None = None
        self._reasons: set[str] = set()
        # What commands may change now, and what was there before the last one.
        self._watches: list[TreeWatch] = []
        self._latest: TreeWatch | None = None
        self._is_too_large = False

    @property
    def is_kept(self) -> bool:
        """Whether there is a journal that changes could be found in."""
        return path_of(self._run.folder, self._run.id).exists()

    @asynccontextmanager
    async def record(self, paths: Iterable[Path], agent: str = "") -> AsyncIterator[None]:
        """A context for an action that changes some paths and waits for nobody meanwhile.

        Whatever keeps it from being recorded is told; the action is carried out nevertheless.

        Args:
            paths: below the project, with all links in the folders around them resolved.
            agent: on whose behalf.
        """
        if not self.is_kept:
            yield
            return
        async with self._alone(agent):
            begun = self._begin([*paths], agent)
            try:
                yield
            finally:
                self._end(begun, agent)

    @asynccontextmanager
    async def _alone(self, agent: str) -> AsyncIterator[None]:
        """A context in which no other action changes files of the project, in any process."""
        held = -1
        with self._telling_why(agent):
            folder = snapshots_folder(self._run.folder)
            make_state_folder(folder, 0o700)
            held = open_lock(folder / LOCK)
        try:
            until = time.monotonic() + MAX_WAIT_S
            while held >= 0 and not try_lock(held) and time.monotonic() < until:  # noqa: ASYNC110 - no event of ours
                await asyncio.sleep(PAUSE_S)
            yield
        finally:
            if held >= 0:
                os.close(held)

    @asynccontextmanager
    async def watch(self, longest_s: float, agent: str = "", *, confined: bool = False) -> AsyncIterator[None]:
        """A context for work that may change any file of the project, such as a command.

        Args:
            longest_s: that it can take.
            agent: on whose behalf.
            confined: whether a sandbox keeps it from changing the programs that are running.
        """
        begun = (
            await self._begin_watch(longest_s, agent, confined=confined)
            if self.is_kept and not self._is_too_large
            else None
        )
        if begun is None:
            yield
            return
        file = self._keeper_of_run().store.tree_path(self._run.id, begun.id)

        async def mark_time() -> None:
            """Have the file of the list say that the command is under way, so that a kill shows when it ended."""
            with suppress(OSError):
                while True:
                    os.utime(file)
                    await asyncio.sleep(MARK_S)

        try:
            async with together() as group:
                marking = group.create_task(mark_time())
                try:
                    yield
                finally:
                    marking.cancel()
        finally:
            await self._end_watch(begun, agent)

    # ------------------------------------------------------------ one action

    def _begin(self, paths: Sequence[Path], agent: str) -> list[PathChange]:
        """Store the present contents, and announce the change."""
        begun: list[PathChange] = []
        with self._telling_why(agent), OpenFolders(self._project) as folders:
            for file in self._with_missing_folders(paths):
                found = content_at(folders, file)
                self._keep(file, found, agent)
                self._tell_of_commands(file, found, agent)
                begun.append(PathChange(file, found.state, self._new_place()))
        for change in begun:
            self._tell(FileKept(change.file, data_of(change.before)), agent, change.place)
        return begun

    def _with_missing_folders(self, paths: Sequence[Path]) -> list[str]:
        """Some paths from the project, behind the folders around them that an action would have to make."""
        found: dict[str, None] = {}
        for path in paths:
            inner = path.relative_to(self._project)
            around = [folder for folder in reversed(inner.parents[:-1]) if not (self._project / folder).exists()]
            found |= dict.fromkeys(each.as_posix() for each in (*around, inner))
        return list(found)

    def _end(self, begun: Sequence[PathChange], agent: str) -> None:
        """Report the outcome, also where nothing changed."""
        with self._telling_why(agent), OpenFolders(self._project) as folders:
            for change in begun:
                found = content_at(folders, change.file)
                self._keep(change.file, found, agent)
                event = FileChanged(change.file, data_of(change.before), data_of(found.state))
                self._tell(event, agent, change.place)
                self._note_state(change.file, found.state, time.time())

    def _keep(self, file: str, found: PathContent, agent: str) -> None:
        if found.state is None or found.state.is_of != "file":
            if found.state is not None and found.state.is_of == "other":
                self._tell_unkept(f"`{visible(file)}` is {found.state.content}", agent)
            return
        with self._telling_why(agent):
            self._keeper_of_run().keep(found.data)

    def _keeper_of_run(self) -> ContentKeeper:
        if self._keeper is None:
            most_bytes = most_of_snapshots(self._run.settings)
            self._keeper = ContentKeeper(self._run.folder, self._run.id, most_bytes)
        return self._keeper

    # ------------------------------------------------------------ one command

    async def _begin_watch(self, longest_s: float, agent: str, *, confined: bool) -> TreeWatch | None:
        """List all files, and tell that some of them may change; None where that cannot be."""
        with self._telling_why(agent):
            keeper = self._keeper_of_run()
            known = keeper.store.latest_tree() if self._latest is None else self._latest.manifest
            since_s = time.time()
            running = await run_in_thread(lambda stop: running_runs(self._run.folder, self._run.id))
            id, manifest = await run_in_thread(
                lambda stop: keeper.with_room(lambda: take_tree(self._project, keeper, known, stop))
            )
            top = f"{self._project}/".casefold()
            fixed = frozenset(file.removeprefix(top) for file in running_programs()) if confined else frozenset()
            self._latest = TreeWatch(manifest, id, self._new_place(), since_s, running, fixed)
            self._watches.append(self._latest)
            self._tell(TreeKept(id, longest_s), agent, self._latest.place)
            return self._latest
        return None

    async def _end_watch(self, watch: TreeWatch, agent: str) -> None:
        """Report the changes by the command, except those by actions meanwhile."""
        with self._telling_why(agent):
            async with self._alone(agent):
                self._watches.remove(watch)
                found = await run_in_thread(lambda stop: find_differences(self._project, watch.manifest))
                states = {each.file: each.now for each in found if each.file.casefold() not in watch.fixed}
                reported = self._note_others(
                    watch, await run_in_thread(lambda stop: self._changes_beside(watch)), agent
                )
                with OpenFolders(self._project) as folders:
                    states |= {file: content_at(folders, file) for file in watch.states if file not in states}
                for file, now in states.items():
                    if self._tell_change(watch, file, now, agent):
                        self._note_state(file, now.state, time.time())
                        reported += 1
            self._tell(TreeCompared(watch.id, reported), agent, watch.place)
            latest = [] if self._latest is None else [self._latest.id]
            self._keeper_of_run().remove_trees([*latest, *(each.id for each in self._watches)])

    def _tell_change(self, watch: TreeWatch, file: str, now: PathContent, agent: str) -> bool:
        """Report the change of a path by a command; returns whether it has changed it."""
        before = watch.undisturbed_state(file)
        if before == now.state:
            return False
        self._keep(file, now, agent)
        if before is not None and before.is_of == "file":
            self._keeper_of_run().name(before.content)
        place = (*watch.place[:-1], self._new_place()[-1])
        beside = watch.others.shared.get(file) or watch.others.at_work
        self._tell(FileChanged(file, data_of(before), data_of(now.state), beside), agent, place)
        return True

    def _tell_of_commands(self, file: str, now: PathContent, agent: str) -> None:
        """Report the changes of a path by running commands, before an action changes it, too."""
        for watch in self._watches:
            if watch.is_covered(file) and watch.undisturbed_state(file) != now.state:
                self._note_others(watch, self._changes_beside(watch), agent)
                if self._tell_change(watch, file, now, agent):
                    self._note_state(file, now.state, time.time())

    def _changes_beside(self, watch: TreeWatch) -> ChangesBeside:
        """The changes by other runs since a command began; takes time where journals are long."""
        return changes_beside(self._run.folder, self._run.id, watch.since_s, watch.running)

    def _note_others(self, watch: TreeWatch, others: ChangesBeside, agent: str) -> int:
        """Report the changes by a command that other runs have found and changed again; returns how many."""
        count = 0
        store = self._keeper_of_run().store
        for at_s, change in watch.note_others(others):
            state = change.before
            is_kept = state is not None and state.is_of == "file" and store.has_content(state.content)
            found = PathContent(state, store.get(state.content) if state is not None and is_kept else b"")
            count += self._tell_change(watch, change.file, found, agent)
            self._note_state(change.file, change.after, at_s)
        return count

    def _note_state(self, file: str, state: PathState | None, at_s: float) -> None:
        for watch in self._watches:
            if watch.since_s <= at_s:
                watch.states[file] = at_s, state

    # ------------------------------------------------------------ what is told

    def _new_place(self) -> Location:
        """Where something happens here that happens nowhere else, also when it is done once more."""
        return (*current_path(), f"file#{secrets.token_hex(6)}")

    def _tell(self, event: EventData, agent: str, place: Location) -> None:
        with no_quota():
            self._run.events.emit(event, agent, path=place)

    @contextmanager
    def _telling_why(self, agent: str) -> Iterator[None]:
        """A context for work whose failure must not prevent the action."""
        try:
            yield
        except StoreFullError:
            self._tell_unkept(FULL, agent)
        except (LargeProjectError, ManyFilesError) as error:
            self._is_too_large = True
            self._tell_unkept(f"{error.message}, so that what commands change is not kept", agent)
        except KoiError as error:
            self._tell_unkept(error.message, agent)
        except OSError as error:
            self._tell_unkept(reason(error), agent)

    def _tell_unkept(self, why: str, agent: str) -> None:
        if why in self._reasons:
            return
        self._reasons.add(why)
        self._run.host.log(f"warning: what is changed cannot be undone: {why}")
        self._tell(ChangesNotKept(why), agent, self._new_place())
