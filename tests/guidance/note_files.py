"""Notes written as a person writes them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from koi_lang.runtime.guidance.note_index import FoundNote, open_notes
from koi_lang.runtime.guidance.notes import FOLDER


def write_note(project: Path, name: str, text: str, front: str = "kind: fact\ndate: 2026-03-01") -> Path:
    """A file in the memory of a project."""
    file = project / FOLDER / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\n{front}\n---\n{text}\n", "utf-8")
    return file


def search(project: Path, question: str, limit: int = 8) -> list[FoundNote]:
    """The found notes of a question."""
    with closing(open_notes(project)) as notes:
        return notes.search(question, limit)


def ids(project: Path, question: str) -> list[str]:
    """Of the notes that a question finds."""
    return [found.note.id for found in search(project, question)]


def problems(project: Path) -> list[str]:
    """Why notes are left out."""
    with closing(open_notes(project)) as notes:
        return notes.problems
