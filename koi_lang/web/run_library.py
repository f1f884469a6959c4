"""The recorded runs of a folder, as pages list and find them: sessions of the service, and what was run besides."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import JournalError
from koi_lang.events import CallStarted, HandlerStarted
from koi_lang.redaction.redactor import Redactor
from koi_lang.runtime.journal.checksums import is_changed
from koi_lang.runtime.journal.entries import entry_in, header_of
from koi_lang.runtime.journal.reader import LONGEST_HEADER, open_journal, read_header
from koi_lang.runtime.journal.store import PART, journal_paths, path_of
from koi_lang.service.errors import ServiceError
from koi_lang.service.run_listing import RunListing
from koi_lang.service.users import User
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    from koi_lang.service.host import SessionHost

# What an id may be: nothing that leads elsewhere.
ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,79}")
# How many lines of a journal may stand before what its run was begun with, and how long a title is.
FIRST_LINES, LONGEST_TITLE = 6, 80
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunLibrary:
    """The runs of a folder, each for those who may see it.

    Attributes:
        host: of the sessions of a service; None where there is none, and everybody who gets in may see everything.
    """

    folder: Path
    host: SessionHost | None = None
    _known: dict[str, tuple[tuple[int, int], Facts]] = field(default_factory=dict, repr=False, compare=False)

    def find(self, run: str, user: User) -> Path:
        """The journal of a run. Raises ServiceError, in the same way where there is none and where it is of others."""
        path = path_of(self.folder, run) if ID.fullmatch(run) else None
        is_own = user.is_admin or (self.host is not None and self.host.may_see(run, user))
        if path is None or not is_own or not path.is_file():
            raise ServiceError("unknown_run", f"there is no run `{run}`")
        return path

    def is_hosted(self, run: str, user: User) -> bool:
        """Whether a run is a session of the service that somebody may see."""
        return self.host is not None and self.host.may_see(run, user)

    def redactor(self) -> Redactor:
        """Takes the secrets of this folder out of what is shown."""
        return Keys(read_settings(self.folder)).redactor()

    async def facts(self, run: str, user: User) -> Facts:
        """What is known of a run, as it is listed. Raises KoiError."""
        path = self.find(run, user)
        if self.host is not None and self.is_hosted(run, user):
            with suppress(ServiceError):  # its program is not served any more
                return _with_parent(self.host.find(run, user).listing().as_data(), path)
        return await asyncio.to_thread(self._describe_recorded, path)

    async def all(self, user: User) -> list[Facts]:
        """The runs that somebody may see, newest first."""
        hosted: list[Facts] = []
        if self.host is not None:
            sessions = self.host.all(user)
            hosted = [_with_parent(session.listing().as_data(), session.feed.journal) for session in sessions]
        known = {facts["id"] for facts in hosted}
        recorded = await asyncio.to_thread(self._others, known) if user.is_admin else []
        return sorted([*hosted, *recorded], key=lambda facts: (facts["started"], facts["id"]), reverse=True)

    def _others(self, known: Container[str]) -> list[Facts]:
        """What was recorded in the folder besides; cases of an evaluation are left to it."""
        found = []
        paths = journal_paths(self.folder)
        names = {path.stem for path in paths}
        for path in paths:
            is_case = path.stem.rpartition(PART)[0] in names
            if path.stem not in known and not is_case:
                with suppress(JournalError, OSError):  # one that cannot be read is told by `koi runs list`
                    found.append(self._recall(path))
        return found

    def _recall(self, path: Path) -> Facts:
        """What is known of a recorded run, read again where its journal has changed. Raises JournalError, OSError."""
        status = path.stat()
        mark = (status.st_mtime_ns, status.st_size)
        before = self._known.get(path.stem)
        if before is not None and before[0] == mark:
            return before[1]
        facts = self._describe_recorded(path)
        if facts["state"] != "working":  # whether a process writes it can change without a trace in it
            self._known[path.stem] = (mark, facts)
        return facts

    def _describe_recorded(self, path: Path) -> Facts:
        header = read_header(path)
        about = {"program": Path(header.program).name, "title": _title_of(path)}
        return {**RunListing.of_journal(path).as_data(), **about, "entry": header.parent and header.parent[1]}


def _with_parent(facts: Facts, journal: Path) -> Facts:
    """What is known of a session, with the run that it goes on from."""
    with suppress(JournalError, OSError):
        with open_journal(journal) as file:
            parent = header_of(file.readline(LONGEST_HEADER), journal.name).parent
        facts = {**facts, "parent": facts.get("parent") or (parent and parent[0]), "entry": parent and parent[1]}
    return facts


def _title_of(path: Path) -> str:
    """What a run was begun with: the first text of its first call, or the name of that."""
    with open_journal(path) as file:
        run = header_of(file.readline(LONGEST_HEADER), path.name).run
        for line, _ in zip(file, range(FIRST_LINES), strict=False):
            entry = None if is_changed(line, run) else entry_in(line)
            if entry is not None and entry.kind in (HandlerStarted.type, CallStarted.type):
                name = str(entry.data.get("name") or entry.path[-1].partition("#")[0])
                return _first_text(entry.data.get("args")) or name
    return ""


def _first_text(value: Any) -> str:
    values = value.values() if isinstance(value, dict) else [value]
    text = next((each for each in values if isinstance(each, str) and each.strip()), "")
    return " ".join(text.split())[:LONGEST_TITLE]


def page_of(runs: Sequence[Facts], wanted: Callable[[Facts], bool], limit: int, before: str) -> Mapping[str, Any]:
    """A page of a list of runs: those behind `before`, which is the `next` of the page before."""
    found = [facts for facts in runs if wanted(facts)]
    start = next((at + 1 for at, facts in enumerate(found) if facts["id"] == before), 0) if before else 0
    page = found[start : start + limit]
    return {"runs": page, "next": page[-1]["id"] if start + limit < len(found) and page else None}
