"""The recorded runs of a folder, as pages find, filter and sort them: sessions of the service, and other runs."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import JournalError
from koi_lang.events import CallStarted, HandlerStarted
from koi_lang.redaction.redactor import Redactor
from koi_lang.runtime.journal.entries import entry_in, header_of
from koi_lang.runtime.journal.line_ends import is_changed
from koi_lang.runtime.journal.reader import MAX_HEADER_BYTES, open_journal, read_header
from koi_lang.runtime.journal.store import PART, journal_paths, path_of
from koi_lang.service.errors import ServiceError
from koi_lang.service.run_listing import RunListing
from koi_lang.service.users import User
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.web.answers import HttpError

if TYPE_CHECKING:
    from koi_lang.service.host import SessionHost

# What an id may be: nothing that leads elsewhere.
ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,79}")
# How many lines of a journal may stand before what its run was begun with, and how long a title is.
FIRST_LINES, MAX_TITLE_CHARS = 6, 80
Facts = dict[str, Any]
# How a run has ended that somebody should look at; `bad` stands for all of these.
BAD, BAD_STATES = "bad", ("failed", "interrupted")
SORTS = ("started", "seconds", "usd", "tokens", "requests", "state", "owner", "program")


@dataclass(frozen=True, slots=True)
class RunLibrary:
    """The runs of a folder, each visible to permitted users.

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
        """The redactor of this folder's secrets."""
        return Keys(read_settings(self.folder)).redactor()

    async def facts(self, run: str, user: User) -> Facts:
        """The facts of a run in listings. Raises KoiError."""
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
        """The other recorded runs of the folder, without cases of evaluations."""
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
        """The facts of a recorded run, read again where its journal has changed. Raises JournalError, OSError."""
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
    """The facts of a session, with its parent."""
    with suppress(JournalError, OSError):
        with open_journal(journal) as file:
            parent = header_of(file.readline(MAX_HEADER_BYTES), journal.name).parent
        facts = {**facts, "parent": facts.get("parent") or (parent and parent[0]), "entry": parent and parent[1]}
    return facts


def _title_of(path: Path) -> str:
    """The title of a run: the first text of its first call, or the name of that."""
    with open_journal(path) as file:
        run = header_of(file.readline(MAX_HEADER_BYTES), path.name).run
        for line, _ in zip(file, range(FIRST_LINES), strict=False):
            entry = None if is_changed(line, run) else entry_in(line)
            if entry is not None and entry.kind in (HandlerStarted.type, CallStarted.type):
                name = str(entry.data.get("name") or entry.path[-1].partition("#")[0])
                return _first_text(entry.data.get("args")) or name
    return ""


def _first_text(value: Any) -> str:
    values = value.values() if isinstance(value, dict) else [value]
    text = next((each for each in values if isinstance(each, str) and each.strip()), "")
    return " ".join(text.split())[:MAX_TITLE_CHARS]


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs are listed, and in which order.

    Attributes:
        state: one of a run, or `bad`.
        day: on which it began, `2026-11-29`, in the time zone of this machine.
        usd: what it cost at least; one whose price is not known is left out. `seconds` likewise.
        sort: by what; with a `-` before it the largest first.
    """

    program: str = ""
    state: str = ""
    user: str = ""
    day: str = ""
    usd: float = 0.0
    seconds: float = 0.0
    sort: str = "-started"

    @staticmethod
    def of(given: Mapping[str, str]) -> RunQuery:
        """The wish of the query of a request. Raises HttpError."""
        program, state, user, day = (given.get(name, "") for name in ("program", "state", "user", "day"))
        try:
            usd, seconds = (float(given.get(name) or 0) for name in ("usd", "seconds"))
        except ValueError as error:
            raise HttpError(400, "invalid_request", "`usd` or `seconds` is no number", help="Write 0.05.") from error
        sort = given.get("sort") or "-started"
        if sort.removeprefix("-") not in SORTS:
            raise HttpError(400, "invalid_request", "`sort` is no such word", help=f"Write one of {', '.join(SORTS)}.")
        return RunQuery(program, state, user, day, usd, seconds, sort)

    def wants(self, facts: Facts) -> bool:
        """Whether a run is listed."""
        is_state = facts["state"] in BAD_STATES if self.state == BAD else self.state in ("", facts["state"])
        is_dear = (facts["usd"] or 0.0) >= self.usd and facts["seconds"] >= self.seconds
        is_of_program = not self.program or Path(self.program).stem == Path(facts["program"]).stem
        is_of_user = self.user in ("", facts["owner"])
        return is_state and is_dear and is_of_program and is_of_user and self.day in ("", facts["day"])

    def page(self, runs: Iterable[Facts], limit: int, before: str) -> dict[str, Any]:
        """A page of the runs behind `before`, which is the `next` of the page before, with the available filters.

        Returns:
            `runs`, `next`; `days`, the totals of all that are wanted by day, the latest first; `today`; `users` and
            `programs` of all runs.
        """
        every = [
            {**each, "seconds": each["updated"] - each["started"], "day": str(date.fromtimestamp(each["started"]))}
            for each in runs
        ]
        found = [facts for facts in every if self.wants(facts)]
        name, is_down = self.sort.removeprefix("-"), self.sort.startswith("-")
        # A price that is not known stands before all others, or behind them.
        found.sort(key=lambda facts: (facts[name] if facts[name] is not None else -1.0, facts["id"]), reverse=is_down)
        start = next((at + 1 for at, facts in enumerate(found) if facts["id"] == before), 0) if before else 0
        page = found[start : start + limit]
        choices = {
            "users": sorted({facts["owner"] for facts in every} - {""}),
            "programs": sorted({Path(facts["program"]).stem for facts in every}),
        }
        next_run = page[-1]["id"] if start + limit < len(found) and page else None
        return {"runs": page, "next": next_run, "days": day_totals(found), "today": str(date.today()), **choices}


def day_totals(runs: Iterable[Facts]) -> list[dict[str, Any]]:
    """The usage of runs by day, the latest first; `is_unpriced` where the price of a run is unknown."""
    days = defaultdict[str, list[Facts]](list)
    for facts in runs:
        days[facts["day"]].append(facts)
    return [
        {
            "day": day,
            "runs": len(each),
            "bad": sum(facts["state"] in BAD_STATES for facts in each),
            "usd": sum(facts["usd"] or 0.0 for facts in each),
            "is_unpriced": any(facts["usd"] is None for facts in each),
        }
        for day, each in sorted(days.items(), reverse=True)
    ]
