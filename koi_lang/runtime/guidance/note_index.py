"""The search index of notes: an SQLite database in the cache folder, derived from the files and made again at will.

A folder whose time has not changed is not listed again, since listing 10,000 files takes longer than a search. Of its
files three hundred are compared each time, and those that are found in any case.
"""

from __future__ import annotations

import math
import os
import random
import re
import sqlite3
import time
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang import settings
from koi_lang.errors import AgentError, reason, undone_by
from koi_lang.runtime.guidance.notes import Note, NoteFolder, is_note_file, note_folders, read_note
from koi_lang.runtime.routing.lexical import EMPTY, stems_of

# Of the tables; another number makes the database again.
FORM = 3
BUSY_TIMEOUT_S = 3.0
# Files whose state is compared with the index at each search, beside those that are found.
MAX_COMPARED = 300
# A time this near to now may stand for several changes.
UNCERTAIN_NS = 2_000_000_000
# Words of a question that are looked up, the rarest first; a longer question is cut after so many characters.
MAX_WORDS = 24
MAX_QUESTION_CHARS = 5_000
# A word that stands in more than this share of many notes says nothing about one.
COMMON_SHARE = 0.25
MIN_FOR_COMMON = 20
# How many notes the looked up words may have together, which bounds the time of a search.
MAX_COUNTED = 2_000
# Scripts that put no blanks between words: pairs of characters stand for words there.
UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
TOKEN = re.compile(r"\w+")
KANA = re.compile("[\u3040-\u309f]+")
# Words that say nothing in German, French and Portuguese, and those that routing leaves out.
SAYING_NOTHING = EMPTY | frozenset(
    "aber alle als am an auch auf aus bei bin bis bitte da damit dann das dass dem den denn der des die dies diese"
    " dieser doch du durch ein eine einem einen einer eines er es fur hat hier ich ihr im in ist ja kann kein keine man"
    " mein mit muss nach nicht noch nur ob oder ohne sein sich sie sind so soll uber um und uns unser vom von vor war"
    " warum was wenn wer werden wie wir wird wo wurde zu zum zur"
    " au aux avec ce ces comment dans des du elle est et il ils je leur nous ou par pas plus pour pourquoi quand que"
    " quel quelle qui sans ses son sont sur te un une vous ao com como da das do dos ele em esta foi mais na nao nas no"
    " nos os pelo por qual quando se sem ser seu sua um uma".split()
)
MIN_PART_CHARS = 4
# Notes that are ranked by their words.
MAX_RANKED = 200
# Values in one statement.
MAX_MARKS = 500
TABLES = """
CREATE TABLE files (owner TEXT, name TEXT, state TEXT, problem TEXT, PRIMARY KEY (owner, name));
CREATE TABLE folders (owner TEXT PRIMARY KEY, path TEXT, changed INTEGER);
CREATE TABLE notes (row INTEGER PRIMARY KEY, owner TEXT, name TEXT, id TEXT, kind TEXT, about TEXT, source TEXT,
    run TEXT, date TEXT, supersedes TEXT, text TEXT, hidden TEXT DEFAULT '');
CREATE INDEX notes_by_file ON notes (owner, name);
CREATE INDEX notes_by_id ON notes (owner, id);
CREATE INDEX notes_by_older ON notes (owner, supersedes);
CREATE INDEX notes_by_date ON notes (date);
CREATE INDEX hidden_notes ON notes (hidden, owner, name) WHERE hidden != '';
CREATE INDEX file_problems ON files (owner, name) WHERE problem != '';
CREATE VIRTUAL TABLE words USING fts5 (text, about, tokenize = 'unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
CREATE VIRTUAL TABLE parts USING fts5 (text, tokenize = 'trigram');
"""
HIDE = """
UPDATE notes AS one SET hidden = CASE
    WHEN EXISTS (SELECT 1 FROM notes AS other WHERE other.owner = one.owner AND other.id = one.id
        AND other.row != one.row AND (one.name != one.id || '.md')
        AND (other.name = other.id || '.md' OR other.name < one.name)) THEN 'double'
    WHEN EXISTS (SELECT 1 FROM notes AS other WHERE other.owner = one.owner AND other.supersedes = one.id
        AND other.id NOT IN (
            WITH RECURSIVE older (id) AS (
                SELECT one.id UNION SELECT one.supersedes UNION
                SELECT each.supersedes FROM notes AS each JOIN older ON each.id = older.id WHERE each.owner = one.owner
            ) SELECT id FROM older WHERE id IS NOT NULL
        )) THEN 'superseded'
    ELSE '' END
"""
# Each search asks both, so an index has to find the few such notes. SQLite does not see by itself that `double` is not
# empty; and without the plus it would compare each note that supersedes one with all others.
DOUBLES = """
SELECT owner, name, id FROM notes WHERE hidden = 'double' AND hidden != '' ORDER BY owner DESC, name
"""
# A note that supersedes one which is not hidden stands in a circle.
CIRCLES = """
SELECT one.owner, one.name, other.id FROM notes AS one CROSS JOIN notes AS other
    ON other.owner = one.owner AND other.id = +one.supersedes AND other.hidden = ''
    WHERE one.owner IN ('project', 'person') AND one.supersedes > '' AND one.hidden = ''
    ORDER BY one.owner DESC, one.name
"""
FIELDS = "id, kind, text, about, source, run, date, supersedes, owner, name"
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FoundNote:
    """A note that fits a question.

    Attributes:
        words: those of the question by which it was found; none for one that is only new.
        score: by which notes are ordered; greater is better, 0 for one that is only new.
    """

    note: Note
    words: tuple[str, ...] = ()
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """The notes that a search is about.

    Attributes:
        kinds: all where there are none.
        since: a day; older notes, and notes without a day, are left out. Empty for no bound.
        owners: of which folders.
    """

    kinds: Sequence[str] = ()
    since: str = ""
    owners: Sequence[str] = ("project", "person")

    def where(self) -> tuple[str, list[str]]:
        """The condition in SQL, and its values."""
        parts, values = ["hidden = ''"], list[str]()
        for column, wanted in (("kind", self.kinds), ("owner", self.owners)):
            if wanted:
                parts.append(f"{column} IN ({', '.join('?' * len(wanted))})")
                values += wanted
        if self.since:
            parts.append("date >= ?")
            values.append(self.since)
        return " AND ".join(parts), values


EVERYTHING = NoteFilter()


class NoteIndex:
    """The notes of a project and its person, as their files were when it was opened; whoever opens it closes it.

    Attributes:
        problems: why files are left out, a sentence each.
        file: of the database, once it is known to be one.
    """

    file: Path | None = None

    def __init__(self, folders: Sequence[NoteFolder], connection: sqlite3.Connection) -> None:
        self.problems: list[str] = []
        self._folders = {folder.owner: folder for folder in folders}
        self._bases: dict[str, Path] = {}
        self._connection = connection
        self._count = 0

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def search(self, question: str, limit: int, wanted: NoteFilter = EVERYTHING) -> list[FoundNote]:
        """The notes that share words with a question, the best first; of equal ones the newer first."""
        found = self._search(question, limit, wanted)
        notes = [each.note for each in found]
        states = {(note.owner, note.name): _state_of(f"{self._bases[note.owner]}/{note.name}") for note in notes}
        sql = "SELECT state FROM files WHERE owner = ? AND name = ?"
        stale = {place: state for place, state in states.items() if self._all(sql, *place) != [(state,)]}
        if not stale:
            return found
        with self._connection:
            self._all("BEGIN IMMEDIATE")
            for (owner, name), state in stale.items():
                self._read(self._folders[owner], name, state)
            self._all(HIDE)
        return self._search(question, limit, wanted)

    def newest(self, limit: int = -1, wanted: NoteFilter = EVERYTHING) -> list[Note]:
        """Notes by their days, the newest first; all of them without a limit."""
        where, values = wanted.where()
        sql = f"SELECT {FIELDS} FROM notes WHERE {where} ORDER BY date DESC, row DESC LIMIT ?"
        return [_note(row) for row in self._all(sql, *values, limit)]

    def find(self, id: str) -> Note | None:
        """The note of an id, superseded ones included; that of the project before that of the person."""
        sql = f"SELECT {FIELDS} FROM notes WHERE id = ? AND hidden != 'double' ORDER BY owner DESC LIMIT 1"
        return next((_note(row) for row in self._all(sql, id)), None)

    def list_superseded(self) -> list[Note]:
        """The notes that newer ones replace."""
        return [_note(row) for row in self._all(f"SELECT {FIELDS} FROM notes WHERE hidden = 'superseded' ORDER BY row")]

    def _all(self, sql: str, *values: Any) -> list[Row]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            if self.file is None:
                raise
            if not isinstance(error, sqlite3.OperationalError):  # which tells of a busy file
                with suppress(OSError):
                    self.file.unlink()
            help = "Try again: a broken one is made anew."
            raise AgentError(f"the index of the notes cannot be used: {error}", help=help) from error

    # ---------------------------------------------------------------- searching

    def _search(self, question: str, limit: int, wanted: NoteFilter) -> list[FoundNote]:
        tokens = TOKEN.findall(question[:MAX_QUESTION_CHARS])
        spoken = {word: token.lower() for token in reversed(tokens) for word in words_of(token)}
        spoken |= {word: word for word in spoken if UNSPACED.match(word)}
        words = self._choose(list(spoken))
        scores = self._score(words)
        where, values = wanted.where()
        listed = ", ".join(map(str, scores))
        sql = f"SELECT row, {FIELDS} FROM notes WHERE row IN ({listed}) AND {where}"
        rows = {row: _note(fields) for row, *fields in self._all(sql, *values)}
        best = max(scores.values(), default=1.0)
        order = sorted(rows, key=lambda row: (round(scores[row] / best, 3), rows[row].date, -row), reverse=True)
        found: list[FoundNote] = []
        for row in order[:limit]:
            ((own,),) = self._all("SELECT text || ' ' || about FROM words WHERE rowid = ?", row)
            ((parts,),) = self._all("SELECT text FROM parts WHERE rowid = ?", row)
            shared = (word for word, count in words.items() if (word in own.split() if count else word in parts))
            found.append(FoundNote(rows[row], tuple(spoken[word] for word in shared), scores[row]))
        return found

    def _choose(self, words: Sequence[str]) -> dict[str, int]:
        """The words to look up with the number of notes that have them, rare ones first; 0 for unknown ones."""
        counts: dict[str, int] = {}
        distinct = list(dict.fromkeys(words))
        for start in range(0, len(distinct), MAX_MARKS):
            part = distinct[start : start + MAX_MARKS]
            marks = ", ".join("?" * len(part))
            counts |= dict(self._all(f"SELECT term, doc FROM terms WHERE term IN ({marks})", *part))
        most = self._count * COMMON_SHARE if self._count >= MIN_FOR_COMMON else self._count
        chosen: dict[str, int] = {}
        for count, word in sorted((count, word) for word, count in counts.items())[:MAX_WORDS]:
            if chosen and (count > most or sum(chosen.values()) + count > MAX_COUNTED):
                break
            chosen[word] = count
        unknown = [word for word in distinct if word not in counts and len(word) >= MIN_PART_CHARS]
        return chosen | dict.fromkeys(unknown[:MAX_WORDS], 0)

    def _score(self, words: Mapping[str, int]) -> dict[int, float]:
        """BM25 by row; a word that stands nowhere counts where it is a part of another, half as much as a rare word."""
        known = [word for word, count in words.items() if count]
        sql = "SELECT rowid, bm25(words, 1.0, 2.0) FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        match = " OR ".join(f'"{word}"' for word in known)
        scores = {row: -score for row, score in self._all(sql, match, MAX_RANKED)} if known else {}
        for word in words.keys() - known:
            rows = self._all("SELECT rowid FROM parts WHERE parts MATCH ? LIMIT ?", f'"{word}"', MAX_RANKED)
            for (row,) in rows:
                scores[row] = scores.get(row, 0.0) + math.log(1 + self._count / len(rows)) / 2
        return scores

    # ---------------------------------------------------------------- following the files

    def refresh(self, *, is_whole: bool) -> None:
        """Read the changes in the folders since they were read.

        Args:
            is_whole: whether all files are compared, and not only as many as a search has time for.
        """
        changes = 0
        for folder in self._folders.values():
            before, now = self._look(folder, is_whole)
            changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
            for name in sorted(changed):
                self._read(folder, name, now.get(name, ""))
            changes += len(changed)
        if changes:
            self._all(HIDE)
        self._count = self._all("SELECT count(*) FROM notes")[0][0]
        problems = self._all("SELECT problem FROM files WHERE problem != '' ORDER BY owner DESC, name")
        self.problems += [f"a note is left out: {problem}" for (problem,) in problems]
        for owner, name, id in self._all(DOUBLES):
            path = self._folders[owner].path_of(name)
            self.problems.append(f"a note is left out: `{path}` has the id `{id}`, which another note has")
        for owner, name, id in self._all(CIRCLES):
            path = self._folders[owner].path_of(name)
            self.problems.append(f"no note is replaced: `{path}` supersedes `{id}`, by which it is superseded itself")

    def _look(self, folder: NoteFolder, is_whole: bool) -> tuple[dict[str, str], dict[str, str]]:
        """The states of files by name as they are indexed, and as they are; of a folder without a change, of some."""
        try:
            base = folder.resolve()
            if base is not None:
                self._bases[folder.owner] = base
                now, changed = time.time_ns(), os.stat(base).st_mtime_ns
                known = self._all("SELECT path, changed FROM folders WHERE owner = ?", folder.owner)
                if known == [(str(base), changed)]:
                    stored = self._read_states(folder, -1 if is_whole else MAX_COMPARED)
                    return stored, {name: _state_of(f"{base}/{name}") for name in stored}
                with os.scandir(base) as entries:
                    found = {entry.name: _state_of(entry.path) for entry in entries if is_note_file(entry)}
                certain = changed if abs(now - changed) > UNCERTAIN_NS else 0
                self._all("INSERT OR REPLACE INTO folders VALUES (?, ?, ?)", folder.owner, str(base), certain)
                return self._read_states(folder), found
        except AgentError as error:
            self.problems.append(f"notes are left out: {error.message}")
        except OSError as error:
            self.problems.append(f"notes are left out: `{folder.shown}` cannot be listed: {reason(error)}")
        self._all("DELETE FROM folders WHERE owner = ?", folder.owner)
        return self._read_states(folder), {}

    def _read_states(self, folder: NoteFolder, most: int = -1) -> dict[str, str]:
        """The indexed states of files by name; of more than are wanted, some that stand beside each other."""
        ((last,),) = self._all("SELECT coalesce(max(rowid), 0) FROM files")
        first = 0 if most < 0 else random.randrange(max(last - most, 0) + 1)
        sql = "SELECT name, state FROM files WHERE owner = ? AND rowid >= ? ORDER BY rowid LIMIT ?"
        return dict(self._all(sql, folder.owner, first, most))

    def _read(self, folder: NoteFolder, name: str, state: str) -> None:
        """Index a file anew; without a state it is gone."""
        place = (folder.owner, name)
        for (row,) in self._all("SELECT row FROM notes WHERE owner = ? AND name = ?", *place):
            for condition in ("notes WHERE row", "words WHERE rowid", "parts WHERE rowid"):
                self._all(f"DELETE FROM {condition} = ?", row)
        self._all("DELETE FROM files WHERE owner = ? AND name = ?", *place)
        if not state:
            return
        problem = ""
        try:
            note = read_note(folder, self._bases[folder.owner], name)
        except AgentError as error:
            problem = error.message
        self._all("INSERT INTO files VALUES (?, ?, ?, ?)", *place, state, problem)
        if problem:
            return
        about = "\n".join(note.about)
        values = (note.id, note.kind, note.text, about, note.source, note.run, note.date, note.supersedes)
        self._all(f"INSERT INTO notes ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *values, *place)
        texts = (" ".join(words_of(each)) for each in (note.text, f"{about} {note.id}"))
        self._all("INSERT INTO words (rowid, text, about) VALUES ((SELECT max(row) FROM notes), ?, ?)", *texts)
        parts = " ".join(stems_of(f"{note.text} {about}", SAYING_NOTHING))
        self._all("INSERT INTO parts (rowid, text) VALUES ((SELECT max(row) FROM notes), ?)", parts)


def open_notes(project: Path, *, is_whole: bool = False) -> NoteIndex:
    """The notes of a project and its person; an index that is missing or broken is made again.

    Args:
        is_whole: whether every file is compared with the index.

    Raises:
        AgentError: this SQLite has no full-text search.
    """
    file = settings.cache_folder() / "notes" / f"{sha256(str(project.resolve()).encode()).hexdigest()[:24]}.db"
    for place in (file, file, None):
        try:
            return _open_index(note_folders(project), place, is_whole=is_whole)
        except sqlite3.Error as error:
            if "no such module" in str(error) or "no such tokenizer" in str(error):
                help = "Use a Python whose SQLite has FTS5 from version 3.34 on."
                raise AgentError("notes need the full-text search of SQLite, which is missing", help=help) from error
            if place is None:
                raise AgentError(f"the notes cannot be searched: {error}", help="Try again.") from error
            if not isinstance(error, sqlite3.OperationalError):  # which tells of a busy or read-only file
                with suppress(OSError):
                    file.unlink()
    raise AssertionError("an index in memory")


def _open_index(folders: Sequence[NoteFolder], file: Path | None, *, is_whole: bool) -> NoteIndex:
    """The index in a file; one in memory where the cache folder cannot be written. Raises sqlite3.Error."""
    try:
        if file is not None:
            file.parent.mkdir(0o700, parents=True, exist_ok=True)
    except OSError:
        file = None
    connection = sqlite3.connect(file or ":memory:", timeout=BUSY_TIMEOUT_S, isolation_level=None)
    with undone_by(connection.close):
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        form = connection.execute("PRAGMA user_version").fetchone()[0]
        if form not in (0, FORM):
            raise sqlite3.DatabaseError("an index of another version")
        if not form:
            for statement in filter(str.strip, TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORM}")
        index = NoteIndex(folders, connection)
        index.refresh(is_whole=is_whole)
        connection.execute("COMMIT")
        index.file = file
    return index


def words_of(text: str) -> list[str]:
    """The words of a text as they stand in the index: stems, and pairs of characters where no blanks part words."""
    plain = unicodedata.normalize("NFKC", text)
    pairs = [
        run[at : at + 2]
        for run in UNSPACED.findall(plain)
        for at in range(max(len(run) - 1, 1))
        if not KANA.fullmatch(run[at : at + 2])
    ]
    return stems_of(UNSPACED.sub(" ", plain), SAYING_NOTHING) + pairs


def _state_of(file: str) -> str:
    """What changes with a file; empty where it is gone."""
    try:
        about = os.stat(file, follow_symlinks=False)
    except OSError:
        return ""
    return f"{about.st_mtime_ns} {about.st_size} {about.st_ino}"


def _note(row: Sequence[Any]) -> Note:
    fields = dict(zip(FIELDS.split(", "), row, strict=True))
    return Note(**fields | {"about": tuple(fields["about"].split("\n")) if fields["about"] else ()})
