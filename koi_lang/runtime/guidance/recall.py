"""Recall: the notes that fit a payload or a question, by words, and by meaning where a model for that is configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from koi_lang.llm.token_weight import weight
from koi_lang.runtime.guards.file_access import may_read
from koi_lang.runtime.guidance.note_index import (
    EVERYTHING,
    MAX_QUESTION_CHARS,
    FoundNote,
    NoteFilter,
    open_notes,
)
from koi_lang.runtime.guidance.notes import FOLDER, NoteData
from koi_lang.runtime.replay.location import Path
from koi_lang.runtime.routing.lexical import Route

if TYPE_CHECKING:
    from koi_lang.runtime.budget.limits import BudgetAccount
    from koi_lang.runtime.journal.entries import JournalEntry
    from koi_lang.runtime.ports import AgentPort, RunPort

# Of what one playbook is told.
MAX_NOTES = 8
MAX_TOKENS = 600
# A note that shares less than this part of the best one's score is not told unasked.
MIN_SHARE = 0.25
# Notes that a model for embeddings ranks: the best by words, and then the newest.
MAX_CANDIDATES = 50
MAX_DEPTH = 20


def question_of(args: Any) -> str:
    """The texts of a payload, which notes are to fit."""
    texts: list[str] = []
    room = MAX_QUESTION_CHARS
    for text in _texts(args, 0):
        texts.append(text[:room])
        room -= len(text) + 1
        if room <= 0:
            break
    return "\n".join(texts)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)) and depth < MAX_DEPTH:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item, depth + 1)


def search_notes(
    run: RunPort | None, folder: FilePath, question: str, wanted: NoteFilter = EVERYTHING, *, with_newest: bool = False
) -> tuple[list[FoundNote], list[str]]:
    """At most 50 notes that fit a question by words, the best first, and why files are left out.

    Args:
        run: whose rules for reading files count.
        folder: of the project.
        with_newest: whether the newest notes follow where words find fewer, for a ranking by meaning.
    """
    with closing(open_notes(folder)) as index:
        found = index.search(question, MAX_CANDIDATES, wanted)
        if with_newest:
            known = {(each.note.owner, each.note.id) for each in found}
            newest = index.newest(MAX_CANDIDATES, wanted)
            found += [FoundNote(note) for note in newest if (note.owner, note.id) not in known]
        if run is not None:
            policy = run.policy
            closed = {each.note.name for each in found if not may_read(policy, f"{FOLDER}/{each.note.name}")}
            found = [each for each in found if each.note.owner != "project" or each.note.name not in closed]
        return found[:MAX_CANDIDATES], index.problems


async def rank_notes(
    agent: AgentPort, question: str, notes: Sequence[NoteData], spending: BudgetAccount
) -> list[NoteData]:
    """Notes by how near their meaning is to a question; as they are without a model, or where it fails.

    Raises:
        LimitReachedError: a budget does not allow the request.
    """
    offers = {route_of(note): note for note in notes}
    matches = await agent.run.meaning.rank(agent, question, list(offers), spending, only_matches=False)
    return [offers[match.offer] for match in matches] or list(notes)


def notes_to_tell(notes: Sequence[NoteData]) -> list[NoteData]:
    """The first notes that together are no more than a model is told."""
    room = float(MAX_TOKENS)
    chosen: list[NoteData] = []
    for note in notes:
        need = weight(f"{note['id']} {note['text']}")
        if len(chosen) < MAX_NOTES and need <= room:
            chosen.append(note)
            room -= need
    return chosen


def near_enough(found: Sequence[FoundNote]) -> list[FoundNote]:
    """The found notes without those that hardly fit."""
    best = max((each.score for each in found), default=0.0)
    return [each for each in found if each.score >= best * MIN_SHARE]


def as_data(found: FoundNote) -> NoteData:
    """A found note as programs and journals have it."""
    data = found.note.as_data()
    if found.words:
        data["words"] = list(found.words)
    return data


def told_notes(entries: Iterable[JournalEntry]) -> Iterator[tuple[JournalEntry, list[NoteData]]]:
    """The notes that playbooks of a recorded run were told, by the entries of their guidance.

    Where a model for embeddings has chosen, its ranking is recorded behind the candidates.
    """
    waiting: dict[Path, JournalEntry] = {}
    for entry in entries:
        label = entry.path[-1] if entry.path else ""
        result = entry.data.get("result") if entry.kind == "done" else None
        if not isinstance(result, dict):
            continue
        if label.startswith("guidance#") and "candidates" in result:
            waiting[entry.path[:-1]] = entry
        elif label.startswith("guidance#") and result.get("memory"):
            yield entry, list(result["memory"])
        elif label.startswith("rank_by_meaning#") and (before := waiting.pop(entry.path[:-2], None)):
            candidates = {route_of(note).name: note for note in before.data["result"]["candidates"]}
            ranked = [candidates[name] for name, _ in result.get("ranked", ()) if name in candidates]
            yield before, notes_to_tell(ranked or list(candidates.values()))


def route_of(note: NoteData) -> Route:
    """A note as an offer that a model for embeddings ranks."""
    return Route(f"{note['owner']}/{note['id']}", note["kind"], note["text"])
