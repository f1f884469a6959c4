"""Recall: the notes that fit a payload or a question, by words, and by meaning where a model for that is configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
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
from koi_lang.runtime.guidance.notes import FOLDER, Note
from koi_lang.runtime.routing.lexical import Route

if TYPE_CHECKING:
    from koi_lang.runtime.budget.limits import BudgetAccount
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
    run: RunPort | None, folder: Path, question: str, wanted: NoteFilter = EVERYTHING, *, with_newest: bool = False
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
        return [each for each in found if _is_open(run, each.note)][:MAX_CANDIDATES], index.problems


def _is_open(run: RunPort | None, note: Note) -> bool:
    """Whether no rule keeps a note of the project from being read."""
    return run is None or note.owner != "project" or may_read(run.policy, f"{FOLDER}/{note.name}")


async def rank_notes(
    agent: AgentPort, question: str, notes: Sequence[Mapping[str, Any]], spending: BudgetAccount
) -> list[Mapping[str, Any]]:
    """Notes by how near their meaning is to a question; as they are without a model, or where it fails.

    Raises:
        LimitReachedError: a budget does not allow the request.
    """
    offers = {Route(f"{note['owner']}/{note['id']}", note["kind"], note["text"]): note for note in notes}
    matches = await agent.run.meaning.rank(agent, question, list(offers), spending, only_matches=False)
    return [offers[match.offer] for match in matches] or list(notes)


def notes_to_tell(notes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first notes that together are no more than a model is told."""
    room = float(MAX_TOKENS)
    chosen: list[Mapping[str, Any]] = []
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


def as_data(found: FoundNote) -> dict[str, Any]:
    """A found note as programs and journals have it."""
    return found.note.as_data() | ({"words": list(found.words)} if found.words else {})
