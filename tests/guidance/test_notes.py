"""Notes: which files are some, how they are found, and that the index follows them."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from koi_lang.errors import AgentError
from koi_lang.runtime.guidance import note_index
from koi_lang.runtime.guidance.note_index import NoteFilter, open_notes
from koi_lang.runtime.guidance.notes import FOLDER, Note, parse_note
from tests.guidance.note_files import ids, problems, search, write_note

DEPLOY = "Deployments go through the staging cluster first; production follows a day later."
PARSER = "The parser keeps comments, since the formatter prints them again."


def index_file() -> Path:
    """The database of the only project."""
    (file,) = (Path(os.environ["KOI_CACHE_DIR"]) / "notes").glob("*.db")
    return file


def test_a_note_comes_back_as_it_was_written() -> None:
    """Every field survives its file, quotes and other scripts included."""
    note = Note(
        "use-tabs",
        "decision",
        'Say "tabs": 本番',
        ("src/a.py", "a: b"),
        "Ada # 1",
        "r1",
        "2026-03-01",
        "old",
        "project",
        "x",
    )
    read = parse_note(note.as_file(), "x")

    assert note.as_data() == read.as_data()


def test_notes_are_found_by_words_in_any_form(project: Path) -> None:
    """Endings and letter case do not count; words that say nothing find nothing; each note says by which words."""
    write_note(project, "deploy", DEPLOY)
    write_note(project, "parser", PARSER)

    assert ["deploy"] == ids(project, "how is this DEPLOYED to production?")
    assert [("comments",)] == [found.words for found in search(project, "where do comments go?")]
    assert [] == ids(project, "what is the or of it")
    assert [] == ids(project, "")


def test_other_scripts_and_parts_of_words_are_found(project: Path) -> None:
    """Pairs of characters stand for words where no blanks part them; a word that no note has is sought in others."""
    write_note(project, "ja", "本番環境には必ずステージングの後にデプロイする。")
    write_note(project, "de", "Die Datenbankverbindung schließt nach einer Minute.")

    assert ["ja"] == ids(project, "本番に出す方法は?")
    assert ["de"] == ids(project, "Welche Datenbank ist es?")


def test_of_equal_notes_the_newer_comes_first(project: Path) -> None:
    """Words decide, then the day; topics count more than the text."""
    for day in ("01", "03", "02"):
        write_note(project, f"n{day}", "Tests need the network.", f"date: 2026-03-{day}")
    write_note(project, "topic", "It is slow.", "date: 2020-01-01\nabout: [network]")

    assert ["topic", "n03", "n02", "n01"] == ids(project, "network")


def test_superseded_notes_are_not_found(project: Path) -> None:
    """A note of the person hides none of the project."""
    person = Path(os.environ["KOI_CONFIG_DIR"]) / "memory"
    write_note(project, "old", "Use npm.")
    write_note(project, "new", "Use pnpm, not npm.", "supersedes: old")
    write_note(project, "kept", "Use npm scripts.")
    person.mkdir(parents=True)
    (person / "mine.md").write_text("---\nkind: preference\nsupersedes: kept\n---\nI like npm.\n")

    assert {"new", "kept", "mine"} == set(ids(project, "npm"))
    with closing(open_notes(project)) as notes:
        assert ["mine"] == [n.note.id for n in notes.search("npm", 8, NoteFilter(kinds=["preference"]))]
        assert ["old"] == [note.id for note in notes.list_superseded()]


def test_the_index_follows_the_files(project: Path) -> None:
    """New, changed and removed notes count at once, also where a clock was set back."""
    file = write_note(project, "a", "Use tabs.")
    assert ["a"] == ids(project, "tabs")
    file.write_text("---\n---\nUse blanks.\n")
    os.utime(file, (1, 1))
    assert ([], ["a"]) == (ids(project, "tabs"), ids(project, "blanks"))
    write_note(project, "b", "Blanks it is.", "date: 2999-01-01")
    assert {"a", "b"} == set(ids(project, "blanks"))
    file.unlink()
    assert ["b"] == ids(project, "blanks")


def test_a_note_edited_in_a_quiet_folder_is_read_again(project: Path) -> None:
    """The time of the folder tells nothing of it, its own state does."""
    file = write_note(project, "a", "Use tabs.")
    os.utime(file.parent, (1, 1))
    assert ["a"] == ids(project, "tabs")
    file.write_text("---\n---\nUse tabs and blanks.\n")
    os.utime(file.parent, (1, 1))

    assert ["Use tabs and blanks."] == [found.note.text for found in search(project, "tabs")]


@pytest.mark.parametrize("content", [None, b"", b"no database " * 1000, "other"])
def test_a_lost_index_is_made_again(project: Path, content: bytes | str | None) -> None:
    """Deleted, empty, broken, or of another version."""
    write_note(project, "a", "Use tabs.")
    assert ["a"] == ids(project, "tabs")
    index_file().unlink() if content is None else None
    if isinstance(content, bytes):
        index_file().write_bytes(content)
    elif content:
        with closing(sqlite3.connect(index_file())) as connection:
            connection.executescript("PRAGMA user_version = 99; DROP TABLE notes")

    assert ["a"] == ids(project, "tabs")


def test_without_a_cache_folder_notes_are_found(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is in memory then."""
    (project.parent / "taken").write_text("")
    monkeypatch.setenv("KOI_CACHE_DIR", str(project.parent / "taken"))
    write_note(project, "a", "Use tabs.")

    assert ["a"] == ids(project, "tabs")


def test_a_busy_index_is_not_waited_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who holds it keeps nobody from their notes: they are indexed in memory, and the file stays."""
    monkeypatch.setattr(note_index, "BUSY_TIMEOUT_S", 0.05)
    write_note(project, "a", "Use tabs.")
    assert ["a"] == ids(project, "tabs")
    with closing(sqlite3.connect(index_file(), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert ["a"] == ids(project, "tabs")

    assert index_file().exists()


def test_an_index_that_breaks_in_use_is_an_error(project: Path) -> None:
    """One sentence, and the next search makes it again."""
    write_note(project, "a", "Use tabs.")
    with closing(open_notes(project)) as notes:
        notes._connection.execute("DROP TABLE parts")
        notes._connection.execute("PRAGMA writable_schema = ON")
        with pytest.raises(AgentError, match="the index of the notes cannot be used"):
            notes.search("zebra tabs", 5)
    index_file().unlink()

    assert ["a"] == ids(project, "tabs")


PIECES = [
    *(
        "---\n",
        "id: ",
        "kind: ",
        "fact",
        "about:",
        "date: 2026-01-01",
        "supersedes: x",
        "- ",
        "1e999",
        "null",
        "&a",
        "!x",
    ),
    *"a\n[]{}\"':|>#\t01~é本 \u202e\x00",
]


def test_any_text_is_a_note_or_refused() -> None:
    """With a sentence; a note comes back from its own file as it was."""
    choices = random.Random(7)
    notes = 0
    for _ in range(2_000):
        head = "".join(choices.choices(PIECES, k=choices.randint(0, 25)))
        try:
            note = parse_note(f"---\n{head}\n---\nbody {head}", "x")
        except AgentError:
            continue
        notes += 1
        assert note == parse_note(note.as_file(), "x")

    assert notes > 50


@pytest.mark.parametrize("question", ['"', "* OR (", "NEAR(a b)", "'; DROP TABLE notes", "🙂 \x00", "a" * 50_000])
def test_no_question_is_a_query(project: Path, question: str) -> None:
    """Marks of the search language are no more than marks."""
    write_note(project, "a", "Use tabs.")

    assert [] == ids(project, question)


def test_many_readers_at_once(project: Path) -> None:
    """Each of them finds the notes that are there, whoever makes the index."""
    for number in range(20):
        write_note(project, f"n{number}", f"Use tabs {number}.")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: len(search(project, "tabs", 30)), range(16)))

    assert [20] * 16 == found


BAD = {
    "": "`.agents/memory/a.md` has no front matter",
    "---\nkind: [\n---\nx": "`.agents/memory/a.md` has front matter whose line 2 has brackets that cannot be read",
    "---\nkind: rumour\n---\nx": "`.agents/memory/a.md` has the unknown kind `rumour`",
    "---\nkind: [a]\n---\nx": "`.agents/memory/a.md` has a `kind` that is no text",
    "---\nid: ../a\n---\nx": "`.agents/memory/a.md` has no id in `id`",
    "---\ndate: 2026-02-31\n---\nx": "`.agents/memory/a.md` has a `date` that is no day",
    "---\nabout: {a: b}\n---\nx": "`.agents/memory/a.md` has no list of topics in `about`",
    "---\nkind: fact\n---\n": "`.agents/memory/a.md` has no text",
    "---\nkind: fact\n---\n" + "x" * 2001: "`.agents/memory/a.md` has 2,001 characters",
    "---\nkind: fact\n---\n" + "x" * 5_000_000: "`.agents/memory/a.md` has more than 16,000 bytes",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_note_is_left_out(project: Path, text: str) -> None:
    """One sentence says why, each time; the others are found."""
    write_note(project, "good", "Use tabs.")
    (project / FOLDER / "a.md").write_text(text)

    for _ in range(2):
        assert ["good"] == ids(project, "tabs x")
        assert [f"a note is left out: {BAD[text]}"] == problems(project)


def test_a_bad_file_is_left_out(project: Path) -> None:
    """No text, a pipe, a folder, a link out of the folder or to another note."""
    file = write_note(project, "good", "Use tabs.").parent / "a.md"
    (project.parent / "secret.md").write_text("---\n---\nUse tabs for secrets.\n")
    ways = (
        lambda: file.write_bytes(b"---\n---\ncaf\xe9 tabs"),
        lambda: os.mkfifo(file),
        lambda: file.mkdir(),
        lambda: file.symlink_to(project.parent / "secret.md"),
        lambda: file.symlink_to("good.md"),
    )
    why = []
    for make in ways:
        make()
        assert ["good"] == ids(project, "tabs")
        why += [line.partition("`.agents/memory/a.md` ")[2] for line in problems(project)]
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()

    assert [
        "is not UTF-8 text",
        "is no file with a text",
        "cannot be read: is a directory",
        "is a link",
        "is a link",
    ] == why


def test_of_two_files_with_one_id_one_counts(project: Path) -> None:
    """The one that is called so, whatever the order."""
    write_note(project, "a", "Use blanks.", "id: tabs")
    write_note(project, "tabs", "Use tabs.", "id: tabs")

    assert ["Use tabs."] == [found.note.text for found in search(project, "use tabs blanks")]
    assert ["a note is left out: `.agents/memory/a.md` has the id `tabs`, which another note has"] == problems(project)


@pytest.mark.parametrize("way", ["file", "link", "circle"])
def test_a_folder_that_is_none(project: Path, way: str) -> None:
    """A file, a link out of the project, a link to itself: a sentence, and no notes."""
    outside = write_note(project.parent / "other", "a", "Use tabs.").parent
    folder = project / FOLDER
    folder.parent.mkdir()
    folder.write_text("") if way == "file" else folder.symlink_to(outside if way == "link" else folder)

    assert [] == ids(project, "tabs")
    (problem,) = problems(project)
    assert problem.startswith("notes are left out: `.agents/memory` ")


def test_the_notes_of_a_person_count_everywhere(project: Path) -> None:
    """Their folder may be a link, as people keep their settings; an empty home has no notes."""
    assert ([], []) == (ids(project, "tabs"), problems(project))
    elsewhere = write_note(project.parent / "settings", "mine", "I like tabs.").parent
    person = Path(os.environ["KOI_CONFIG_DIR"])
    person.mkdir()
    (person / "memory").symlink_to(elsewhere)

    assert [("mine", "person")] == [(found.note.id, found.note.owner) for found in search(project, "tabs")]


def test_problems_of_notes_are_found_by_an_index() -> None:
    """Each search asks for them; going through ten thousand notes takes as long as the search itself."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(note_index.TABLES)
        queries = (note_index.DOUBLES, note_index.CIRCLES)
        steps = [row[3] for query in queries for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]

    assert [
        "hidden_notes (hidden=?)",
        "notes_by_older (owner=? AND supersedes>?)",
        "notes_by_id (owner=? AND id=?)",
    ] == [step.partition(" USING INDEX ")[2] for step in steps if not step.startswith("USE TEMP")]


@pytest.mark.thorough
def test_ten_thousand_notes_are_searched_quickly(project: Path) -> None:
    """15 ms of CPU at most, opening the index included, once it is made."""
    for number in range(10_000):
        words = " ".join(f"word{(number * step) % 997}" for step in range(1, 40))
        write_note(project, f"n{number:05}", f"{words} topic{number}")
    os.utime(project / FOLDER, (1, 1))
    assert ["n00042"] == ids(project, "topic42")[:1]
    times = []
    for number in range(21):
        began = time.process_time()
        assert search(project, f"word{number * 7} word{number * 3} topic{number}")
        times.append(time.process_time() - began)

    assert sorted(times)[10] <= 0.015
