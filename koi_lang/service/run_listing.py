"""Runs as the API and the pages list them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.events import CallEnded, CallStarted
from koi_lang.runtime.journal.calls import MAIN
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.journal.totals import CallEnd, RunUsage
from koi_lang.sessions.calls import PROMPT

# States of sessions in which nothing goes on, so that the end of the last call tells how the run stands.
RESTING = ("idle", "asleep")
# What is told of the end of a call beside whether it was `ok`, as the entry has it.
OUTCOME: Mapping[str, Any] = {"result": None, "code": None, "error": None, "help": None, "aborted": False}


def read_call_end(journal: Path, last_call: CallEnd | None, call: str | None = None) -> Mapping[str, Any]:
    """The end of the last call of a run; empty while there is none. Raises JournalError.

    Args:
        call: the id of the call that is meant, which may be an earlier one.
    """
    ended = next(lines(journal, last_call.n - 1), None) if last_call is not None else None
    data: Mapping[str, Any] = {} if ended is None or ended.entry is None else ended.entry.data
    if call is None or not data or data.get("call") == call:
        return data
    entries = (line.entry for line in lines(journal) if line.entry is not None and line.entry.kind == CallEnded.type)
    return next((entry.data for entry in entries if entry.data.get("call") == call), {})


def read_outcome(journal: Path, last_call: CallEnd | None, call: str | None = None) -> dict[str, Any]:
    """How the last call of a run ended, as `read_call_end` finds it; `ok` is null where there is none."""
    return outcome_of(read_call_end(journal, last_call, call))


def read_handler(journal: Path) -> dict[str, Any]:
    """The handler that a client has called last, and its payload; null where there is none, or no journal."""
    last: Mapping[str, Any] = {}
    with suppress(JournalError):
        for line in lines(journal, kinds=(CallStarted.type,)):
            name = "" if line.entry is None else str(line.entry.data.get("name", ""))
            if line.entry is not None and name != MAIN and not name.startswith(f"{PROMPT} "):
                last = line.entry.data
    return {"handler": last.get("name"), "input": last.get("args")}


def outcome_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """How a call ended by the fields of its end; `ok` is null where there are none."""
    outcome = {"ok": data.get("ok"), "last_call": data.get("call")}
    return {**outcome, **{name: data.get(name, usual) for name, usual in OUTCOME.items()}}


@dataclass(frozen=True, slots=True)
class RunListing:
    """A run in a list.

    Attributes:
        state: what goes on, or how the run ended; `failed` where nothing goes on and the last call failed.
        program: name of its file, without the ending.
        owner: name of its user; empty where it is no session of the service.
        started: in seconds since the epoch.
        parent: the run that it goes on from as a branch.
        hosted: whether it is a session of the service.
    """

    id: str
    program: str
    owner: str
    state: str
    title: str
    started: float
    usage: RunUsage
    parent: str | None
    hosted: bool

    @staticmethod
    def of_journal(path: Path, state: str = "") -> RunListing:
        """A run that is no session of the service. Raises JournalError.

        Args:
            state: what goes on in it, where its process says so.
        """
        summary = summarise(path)
        header, usage = summary.header, summary.usage
        state = state or ("working" if summary.state == "running" else summary.state)
        parent = header.parent[0] if header.parent else None
        return RunListing(path.stem, Path(header.program).stem, "", state, "", header.started, usage, parent, False)

    def as_data(self) -> dict[str, Any]:
        """The JSON form; `usd` is null where a price is not known."""
        usage, totals = self.usage, self.usage.totals
        return {
            "id": self.id,
            "program": self.program,
            "owner": self.owner,
            "state": self.state,
            "title": self.title,
            "started": self.started,
            "updated": usage.updated,
            "requests": totals.requests,
            "tokens": totals.tokens,
            "usd": None if totals.unpriced else totals.usd,
            "entries": usage.entries,
            "parent": self.parent,
            "hosted": self.hosted,
        }
