"""Journals that crashes, full disks and other programs have left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from koi_lang.errors import JournalError
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.line_ends import seal_line
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.summary import summarise
from tests.journal.conftest import HEADER, lines_of, printed

Make = Callable[..., Path]
HEAD, ONE, TWO, THREE = lines_of(*(printed(n, f"line {n}\u2028 ñ") for n in (1, 2, 3)))
UNKNOWN = b'{"n":2,"ts":5,"kind":"dreamt","path":["Ada.go#1"],"depth":3}\n'


@pytest.mark.parametrize(
    ("content", "numbers", "damaged", "torn"),
    [
        (HEAD, [], (), b""),
        (HEAD + ONE + TWO + THREE, [1, 2, 3], (), b""),
        (HEAD + ONE + TWO[:20], [1], (), TWO[:20]),
        (HEAD + ONE + TWO[:-1], [1], (), TWO[:-1]),
        (HEAD + b"\xff\xfe", [], (), b"\xff\xfe"),
        (HEAD + ONE[:20] + b"\n" + TWO, [2], (2,), b""),
        (HEAD + ONE + b"\n" + THREE, [1, 3], (3,), b""),
        (HEAD + b"\0" * 4096 + b"\n" + TWO, [2], (2,), b""),
        (HEAD + b"\xff\n" + b"[" * 100_000 + b"\n" + TWO, [2], (2, 3), b""),
        (HEAD + b'{"n":true,"ts":1,"kind":"a"}\n{"n":1,"ts":"1","kind":"a"}\n{"n":1,"ts":1}\n', [], (2, 3, 4), b""),
        (HEAD + b'{"n":1,"ts":1,"kind":"a","path":[1]}\n[]\n7\n' + TWO, [2], (2, 3, 4), b""),
        (HEAD + ONE + UNKNOWN + THREE, [1, 2, 3], (), b""),
        (HEAD + ONE + HEAD + TWO, [1, 2], (3,), b""),
    ],
)
def test_damaged_files(
    journal: Make, content: bytes, numbers: list[int], damaged: tuple[int, ...], torn: bytes
) -> None:
    """Whole entries are read, damaged lines are skipped and named, a torn end is told apart; the file stays."""
    path = journal(content)
    found = read(path)

    assert (numbers, torn) == ([entry.n for entry in found.entries], found.torn)
    assert [f"line {number} is damaged: it holds no entry" for number in damaged] == list(found.faults)
    assert content == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "was broken off before it began"),
        (HEAD[:-1], "does not begin as a journal does"),
        (ONE + TWO, "does not begin as a journal does"),
        (b"role Worker { can execute }\n", "does not begin as a journal does"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "does not begin as a journal does"),
        (b"x" * (1 << 21), "does not begin as a journal does"),
        (HEAD.replace(b'"journal":2', b'"journal":3') + ONE, "has the journal format 3, not 2 or less"),
        (HEAD.replace(b'"run"', b'"ran"') + ONE, "is damaged"),
        (HEAD.replace(b"100.0", b'"then"') + ONE, "is damaged"),
        (seal_line(HEAD, HEADER.run).replace(b"100.0", b"100.5") + ONE, "is damaged"),
    ],
)
def test_foreign_files_are_left_alone(journal: Make, content: bytes, told: str) -> None:
    """Without a header it knows, nothing reads or repairs a file; the message says what to do."""
    path = journal(content)

    for use in (read, summarise, store.repair):
        with pytest.raises(JournalError, match=told) as caught:
            use(path)
        assert caught.value.help is not None
        assert "Nothing was changed." in caught.value.help
    assert ([path], content) == (list(path.parent.iterdir()), path.read_bytes())


def test_what_is_not_known_is_kept(journal: Make) -> None:
    """An entry of a later version keeps its kind and fields."""
    found = read(journal(HEAD + UNKNOWN))

    assert (JournalEntry(2, 5, "dreamt", ("Ada.go#1",), "", {"depth": 3}),) == found.entries
    assert HEADER == found.header


def test_repair_keeps_what_it_cuts_off(journal: Make) -> None:
    """The torn end goes to a file beside the journal, also the second time; everything else stays."""
    path = journal(HEAD + ONE + b"\xff\n" + TWO[:30])

    assert (30, 0) == (store.repair(path), store.repair(path))
    with path.open("ab") as file:
        file.write(THREE[:10])
    assert 10 == store.repair(path)
    assert HEAD + ONE + b"\xff\n" == path.read_bytes()
    assert TWO[:30] + THREE[:10] == path.with_suffix(".torn").read_bytes()


def test_repair_cuts_a_torn_line_of_any_length(journal: Make) -> None:
    """A torn line longer than what is read at a time is cut off at its beginning."""
    path = journal(HEAD + ONE + b"x" * 300_000)

    assert (300_000, HEAD + ONE) == (store.repair(path), path.read_bytes())


def test_runs_are_found_by_the_beginning_of_their_id(tmp_path: Path, journal: Make) -> None:
    """A unique beginning, a whole id and `last` name a run; the latest start is the last, whatever the ids."""
    for run, started in (("abc", b"300.0"), ("abcd", b"100.0"), ("b", b"200.0")):
        journal(HEAD.replace(b"100.0", started), run)

    found = [store.find(tmp_path, name).stem for name in ("last", "abc", "abcd", "b")]

    assert ["abc", "abc", "abcd", "b"] == found


@pytest.mark.parametrize(("name", "told"), [("x", "there is no run"), ("a", "several runs"), ("", "there is no run")])
def test_names_that_mean_no_run(tmp_path: Path, journal: Make, name: str, told: str) -> None:
    """What names none or several is an error that says how to go on."""
    journal(HEAD, "abc")
    journal(HEAD, "abd")

    with pytest.raises(JournalError, match=told) as caught:
        store.find(tmp_path, name)
    assert caught.value.help


def test_a_journal_that_vanishes_is_no_traceback(tmp_path: Path) -> None:
    """A journal that somebody removes while the folder is read, or that is none, is listed and then an error."""
    folder = store.runs_folder(tmp_path)
    (folder / "folder.jsonl").mkdir(parents=True)
    (folder / "gone.jsonl").symlink_to("nowhere")

    assert {path.stem for path in store.journals(tmp_path)} == {"folder", "gone"}
    for use in (summarise, store.is_running, store.repair, store.delete):
        for path in store.journals(tmp_path):
            with pytest.raises(JournalError, match=r"cannot be (read|changed): (is a directory|no such file)"):
                use(path)
