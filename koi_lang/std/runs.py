"""Recorded runs for `std/runs` and `koi reflect`: what their actions came to, by queries of journals alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypedDict

from koi_lang.errors import AgentError, JournalError
from koi_lang.events import (
    ApprovalGiven,
    ApprovalRequested,
    FileChanged,
    FileRestored,
    HandlerEnded,
    HandlerStarted,
    RunEnded,
)
from koi_lang.runtime.guards.permissions import COMMAND_ACTIONS
from koi_lang.runtime.journal import reader, store
from koi_lang.runtime.journal.entries import LESSON_WORDS, JournalEntry
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import folder, perform_effect

REFUSALS = ("PermissionDeniedError", "NobodyAllowsError")
UNSUCCESSFUL = "unsuccessful"
# Actions that only say something.
SAYING = frozenset({"return", "print", "log"})
# Who votes about a task, and whoever weighs a grade; what is done around votes, and is none of the task itself.
MEMBER, JUDGE = "DeliberationMember", "RubricJudge"
AROUND_VOTES = ("return", "deliberation.consent", "deliberation.override")


class ReflectedRun(TypedDict):
    """A recorded run; its outcome is as `outcome_in` says."""

    id: str
    program: str
    started: str
    outcome: str


class ActionRecord(TypedDict):
    """An action that a model asked for.

    Attributes:
        topic: as `[trust]` has it: the first word of a command, else the name of the action.
        changes: whether it may have changed something: it may not be done twice, and did not fail leaving files alone.
        asked: whether the person was asked.
        seconds: without the wait for the person; 0 where it never ended.
        error: the kind of its failure; empty where it did not fail.
    """

    agent: str
    name: str
    topic: str
    outcome: str
    changes: bool
    asked: bool
    seconds: float
    error: str


class Forecast(NamedTuple):
    """What a member of a deliberation or a judge expected of a run, from 0 to 1."""

    by: str
    value: float


def actions_in(entries: Iterable[JournalEntry]) -> list[ActionRecord]:
    """The actions of a run in the order in which they began."""
    begun: dict[tuple[str, ...], JournalEntry] = {}
    ended: dict[tuple[str, ...], JournalEntry] = {}
    waits: dict[tuple[str, ...], float] = {}
    changes: list[JournalEntry] = []
    restored: list[JournalEntry] = []
    for entry in entries:
        match entry.kind:
            case "begun" if "id" in entry.data:
                begun[entry.path] = entry
            case "done" | "failed" if entry.path in begun:
                ended[entry.path] = entry
            case ApprovalRequested.type:
                waits[entry.path] = waits.get(entry.path, 0.0) - entry.ts
            case ApprovalGiven.type:
                waits[entry.path] = waits.get(entry.path, 0.0) + entry.ts
            case FileChanged.type:
                changes.append(entry)
            case FileRestored.type:
                restored.append(entry)
    undone = {
        change.path[:-1]
        for change in changes
        for back in restored
        if back.data["file"] == change.data["file"] and change.n > back.data["entry"]
    }
    changed = {change.path[:-1] for change in changes}

    def is_within(path: tuple[str, ...], places: set[tuple[str, ...]]) -> bool:
        return any(each[: len(path)] == path for each in places)

    return [
        record_of(
            each,
            ended.get(path),
            waits.get(path),
            is_undone=is_within(path, undone),
            has_changed=is_within(path, changed),
        )
        for path, each in begun.items()
    ]


def record_of(
    begun: JournalEntry, end: JournalEntry | None, wait_s: float | None, *, is_undone: bool, has_changed: bool
) -> ActionRecord:
    """An action, from the entries of its beginning and perhaps of its end, and from what became of files."""
    name, data = str(begun.data["intent"]), end.data if end else {}
    result = data.get("result")
    words = str(begun.data.get("fields", {}).get("command", "")).split()
    error = str(data.get("class", "")) if end and end.kind == "failed" else ""
    is_unsuccessful = isinstance(result, dict) and (result.get("success") is False or result.get("exitCode", 0) != 0)
    error = error or (UNSUCCESSFUL if is_unsuccessful else "")
    is_same = isinstance(result, dict) and bool(result.get("noChanges"))
    outcome = "refused" if error in REFUSALS else "failed" if error else "undone" if is_undone else "kept"
    outcome = outcome if end else "unfinished"
    return {
        "agent": begun.agent,
        "name": name,
        "topic": words[0] if name in COMMAND_ACTIONS and words else name,
        "outcome": outcome,
        "changes": bool(begun.data.get("unsafe")) and (has_changed or not (error or is_same)),
        "asked": wait_s is not None,
        "seconds": round(max(0.0, end.ts - begun.ts - (wait_s or 0.0)), 3) if end else 0.0,
        "error": error,
    }


def outcome_in(entries: Iterable[JournalEntry]) -> str:
    """The outcome of a run; one that goes on, or was interrupted, is `unfinished`.

    It is `refused` where its last action was, but for those that only say something; and where a refusal ended it.
    """
    outcome = "unfinished"
    last: tuple[str, ...] = ()
    is_undone = is_refused = was_refused = False
    for entry in entries:
        if entry.kind == RunEnded.type:
            outcome = "kept" if entry.data.get("ok") else "failed"
        elif entry.kind == "begun" and "id" in entry.data and entry.data.get("intent") not in SAYING:
            last, was_refused = entry.path, False
        is_undone = is_undone or entry.kind == FileRestored.type
        if entry.kind == "failed":
            is_refused = entry.data.get("class") in REFUSALS
            was_refused = is_refused if entry.path == last else was_refused
    is_refused = was_refused if outcome == "kept" else is_refused and outcome == "failed"
    return "undone" if is_undone else "refused" if is_refused else outcome


def forecasts_in(entries: Iterable[JournalEntry]) -> Iterator[Forecast]:
    """The votes of deliberations that were not abstentions, and the mean grades of judges.

    Votes that no work followed are none: what was blocked, refused or only simulated has no outcome.
    """
    members: dict[tuple[str, ...], str] = {}
    entries = list(entries)
    work = [entry for entry in entries if entry.kind == "begun" and entry.agent not in (MEMBER, JUDGE)]
    last = max((entry.n for entry in work if entry.data.get("intent") not in AROUND_VOTES), default=0)
    for entry in entries:
        result = entry.data.get("result")
        if entry.kind == HandlerStarted.type and entry.agent == MEMBER:
            members[entry.path] = str((entry.data.get("args") or {}).get("member", ""))
        elif entry.kind == HandlerEnded.type and isinstance(result, Mapping):
            votes = result.get("votes") or [{"member": members.get(entry.path, ""), **result}]
            if entry.agent == MEMBER and entry.n < last:
                cast = [vote for vote in votes if vote.get("verdict") in ("approve", "caveat", "block")]
                yield from (Forecast(str(vote["member"]), float(vote["verdict"] != "block")) for vote in cast)
            elif entry.agent == JUDGE and (grades := result.get("dimensions")):
                yield Forecast("judge", fmean(float(grade["score"]) for grade in grades))


def runs_since(project: Path, second: float) -> Iterator[tuple[ReflectedRun, list[JournalEntry]]]:
    """The recorded runs of a folder that began since a second, with their entries.

    Those that cannot be read are left out, and those that only word lessons.
    """
    for path in store.journals(project):
        try:
            summary = summarise(path)
            if summary.header.started < second or tuple(summary.header.words) == LESSON_WORDS:
                continue
            entries = [line.entry for line in reader.lines(path) if line.entry is not None]
        except JournalError:
            continue
        started = datetime.fromtimestamp(summary.header.started).astimezone().isoformat(timespec="seconds")
        program = Path(summary.header.program).name
        yield ReflectedRun(id=path.stem, program=program, started=started, outcome=outcome_in(entries)), entries


# ---------------------------------------------------------------- for programs


async def runs(since: str) -> list[ReflectedRun]:
    """The recorded runs of this folder since a day, or the last thirty days. Raises AgentError."""
    try:
        second = datetime.fromisoformat(since).timestamp() if since else time.time() - 30 * 86_400
    except (TypeError, ValueError) as error:
        raise AgentError(f"`since` is {since!r}", help="Give a day such as `2026-11-02`.") from error

    async def look() -> list[ReflectedRun]:
        return await asyncio.to_thread(lambda: [record for record, _ in runs_since(folder(), second)])

    return list(await perform_effect(Effect("runs.list", {"since": since}, safe=True), look))


async def actions_of(id: str) -> list[ActionRecord]:
    """The actions of a recorded run, without what they were given. Raises KoiError."""
    return list(await _look("runs.actions", id, actions_in))


async def outcome_of(id: str) -> str:
    """The outcome of a recorded run. Raises KoiError."""
    return str(await _look("runs.outcome", id, outcome_in))


async def _look(name: str, id: str, query: Any) -> Any:
    if not isinstance(id, str) or not id:
        raise AgentError(f"{id!r} is no id of a run", help="`runs` returns runs with their ids.")

    async def look() -> Any:
        path = store.find(folder(), id)
        return await asyncio.to_thread(lambda: query([each.entry for each in reader.lines(path) if each.entry]))

    return await perform_effect(Effect(name, {"id": id}, safe=True), look)
