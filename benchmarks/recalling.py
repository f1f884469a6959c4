"""Notes and questions to how many answers recall finds among the first five, against grep, and to the time of a search.

The notes and questions are in English, German and Japanese, each question in the language of its note.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.measuring import Figure, repeat
from koi_lang.runtime.guidance.note_index import open_notes
from koi_lang.runtime.guidance.notes import FOLDER, Note

CORPUS = Path(__file__).with_name("corpus") / "notes.txt"
LANGUAGES = {"en": "English", "de": "German", "ja": "Japanese"}
FIRST = 5
MANY = 10_000
# What somebody would look for of a question with grep: words of three letters and more, and runs of signs.
WORD = re.compile(r"[^\W_]{3,}")
RUN = re.compile("[\u30a0-\u30ff\u4e00-\u9fff]{2,}")


def figures(folder: Path) -> list[Figure]:
    """The share of answers that are found, by language, and the CPU time of a search among 10,000 notes."""
    os.environ["KOI_CACHE_DIR"] = str(folder / "cache")
    os.environ["KOI_CONFIG_DIR"] = str(folder / "person")
    project = folder / "notes"
    questions = write_corpus(project)
    rows = []
    for language, name in LANGUAGES.items():
        asked = [(question, answer) for spoken, question, answer in questions if spoken == language]
        for way, find in (("recall", recall), ("grep", grep)):
            share = 100 * sum(answer in find(project, question) for question, answer in asked) / len(asked)
            rows.append(Figure(f"answers that {way} finds, {name}", AIMS[way], [share], "%", at_least=True))
    many = folder / "many"
    write_many(many)
    spent = repeat(21, lambda: _search_ms(many))
    return [*rows, Figure("CPU of a search among 10,000 notes", 15, spent, "ms")]


AIMS = {"recall": 90.0, "grep": 0.0}


def write_corpus(project: Path) -> list[tuple[str, str, str]]:
    """Write the notes; returns language, question and id of the answer for each question."""
    (project / FOLDER).mkdir(parents=True)
    questions: list[tuple[str, str, str]] = []
    language = id = ""
    for number, line in enumerate(CORPUS.read_text("utf-8").splitlines()):
        mark, _, text = line.partition(" ")
        if mark == "?":
            questions.append((language, text, id))
        elif mark != "#":
            language, id = mark, f"note-{number:03}"
            file = project / FOLDER / f"{id}.md"
            file.write_text(Note(id, "fact", text, date="2026-03-01").as_file(), "utf-8")
    return questions


def write_many(project: Path) -> None:
    """Write 10,000 notes of forty words, of which some are in many notes and others in few."""
    (project / FOLDER).mkdir(parents=True)
    for number in range(MANY):
        words = " ".join(f"word{(number * step + step) % (step * 37)}" for step in range(1, 40))
        file = project / FOLDER / f"note-{number:05}.md"
        file.write_text(Note(file.stem, "fact", f"{words} topic{number}").as_file(), "utf-8")
    os.utime(project / FOLDER, (1, 1))


def recall(project: Path, question: str) -> Sequence[str]:
    """The first notes that recall finds."""
    with closing(open_notes(project)) as notes:
        return [found.note.id for found in notes.search(question, FIRST)]


def grep(project: Path, question: str) -> Sequence[str]:
    """The first notes by how many words of the question grep finds in them."""
    hits: dict[str, int] = {}
    words = [*WORD.findall(question), *RUN.findall(question)]
    for word in dict.fromkeys(word.lower() for word in words):
        command = ["grep", "-rliF", "--", word, str(project / FOLDER)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for path in done.stdout.splitlines():
            hits[Path(path).stem] = hits.get(Path(path).stem, 0) + 1
    return sorted(hits, key=lambda id: (-hits[id], id))[:FIRST]


def _search_ms(project: Path) -> float:
    start_s = time.process_time()
    recall(project, "how is word7 of word11 deployed with topic4242, and which word3 comes first")
    return 1000 * (time.process_time() - start_s)
