"""Journals whose lines were lost, changed, moved or doubled: nothing else is read than what was written."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.errors import JournalError
from koi_lang.events import Event, LinePrinted, UnknownEvent
from koi_lang.runtime.events import Events
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.line_ends import seal_line, unseal_line
from koi_lang.runtime.journal.reader import Journal, read
from koi_lang.runtime.journal.writer import Writer
from tests.journal.conftest import HEADER, Recorded, printed

COUNT = 12


def written(folder: Path, run: str = HEADER.run) -> Path:
    """A journal as it is written, with some entries."""
    path = store.path_of(folder, run)
    writer, events = Writer(path, HEADER, str, print), Events(run)
    events.subscribe(writer)
    for number in range(1, COUNT + 1):
        events.emit(LinePrinted(f"line {number}\u2028 ñ"), "Ada", path=("Ada.go#1", f"printed#{number}"))
    writer.close()
    return path


with TemporaryDirectory() as folder:
    LINES = tuple(written(Path(folder)).read_bytes().splitlines(keepends=True))
    ENTRIES = read(store.path_of(Path(folder), HEADER.run)).entries


def read_of(lines: list[bytes]) -> tuple[Journal | str, Journal | str]:
    """What is read of some lines, before they are repaired and after that; the message where that cannot be."""
    with TemporaryDirectory() as folder:
        path = store.path_of(Path(folder), HEADER.run)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines))
        try:
            found = read(path)
            store.repair(path)
            store.put_in_order(path)
            return found, read(path)
        except JournalError as error:
            return error.message, error.message


def changed(line: bytes, at: int, byte: int) -> bytes:
    """A line with another byte at a place."""
    at %= len(line)
    return line[:at] + bytes([byte]) + line[at + 1 :]


@some.composite
def mutations(draw: some.DrawFn) -> list[bytes]:
    """The lines with one to four of them lost, changed, swapped, doubled or cut short."""
    lines = list(LINES)
    for _ in range(draw(some.integers(1, 4))):
        here, there = draw(some.integers(0, len(lines) - 1)), draw(some.integers(1, len(lines) - 1))
        kind = draw(some.sampled_from(["lost", "changed", "swapped", "doubled", "cut"]))
        if kind == "lost" and len(lines) > 2:
            del lines[there]
        elif kind == "changed":
            lines[here] = changed(lines[here], draw(some.integers(0, 400)), draw(some.integers(0, 255)))
        elif kind == "swapped":
            lines[here], lines[there] = lines[there], lines[here]
        elif kind == "doubled":
            lines.insert(here, lines[there])
        elif kind == "cut":
            lines[here] = lines[here][: draw(some.integers(0, 400)) % (len(lines[here]) + 1)] or b"\n"
    return lines


@settings(max_examples=150, deadline=None)
@given(mutations())
def test_every_mutation_is_noticed_or_does_no_harm(lines: list[bytes]) -> None:
    """No entry is read that was not written; where one is missing, its place is named; repairing keeps all the rest."""
    found, repaired = read_of(lines)

    if isinstance(found, str) or isinstance(repaired, str):
        assert re.search("was broken off before|does not begin as a journal does|is damaged|journal format", str(found))
        return
    numbers = [entry.n for entry in found.entries]
    assert [ENTRIES[n - 1] for n in numbers] == list(found.entries)
    named = " ".join(found.faults)
    inner = [n for n in range(1, (numbers or [0])[-1]) if n not in numbers]
    assert all(is_named(n, named) or "line" in named for n in inner)
    assert bool(inner) <= bool(named)
    assert (found.entries, b"") == (repaired.entries, repaired.torn)
    assert all("missing" in fault for fault in repaired.faults)


def is_named(n: int, told: str) -> bool:
    """Whether an entry is told to be missing."""
    spans = re.findall(r"entr(?:y|ies) (\d+)(?: to (\d+))? (?:is|are) missing", told)
    return any(int(first) <= n <= int(last or first) for first, last in spans)


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        ([*LINES[:3], *LINES[5:]], ["entries 3 to 4 are missing behind line 3"]),
        ([LINES[0], *LINES[2:]], ["entry 1 is missing behind line 1"]),
        ([*LINES[:4], LINES[3], *LINES[4:]], ["line 5 holds entry 3 again"]),
        ([*LINES[:3], LINES[4], LINES[3], *LINES[5:]], ["line 5 holds entry 3, which belongs before entry 4"]),
        (
            [*LINES[:3], LINES[3].replace(b"line 3", b"line 9"), *LINES[4:]],
            ["line 4 was changed: it does not fit its checksum"],
        ),
        ([*LINES[:3], unseal_line(LINES[3]), *LINES[4:]], ["line 4 was changed: its checksum is gone"]),
        (
            [*LINES[:3], seal_line(unseal_line(LINES[3]), "other"), *LINES[4:]],
            ["line 4 was changed: it does not fit its checksum"],
        ),
    ],
)
def test_faults_are_named(lines: list[bytes], faults: list[str]) -> None:
    """A person reads which line is meant, and which entries are missing; a line of another run is none of this one."""
    found, _ = read_of(lines)

    assert isinstance(found, Journal)
    assert tuple(faults) == found.faults


def test_journals_without_checksums_are_read(tmp_path: Path) -> None:
    """What an older version wrote counts, also where this one has gone on with it."""
    older = [*map(unseal_line, LINES[:6]), *LINES[6:]]

    assert (Journal(HEADER, ENTRIES),) * 2 == read_of(older)


def test_values_may_look_like_checksums(tmp_path: Path) -> None:
    """An event whose last field is called as the checksum is comes back whole."""
    path = tmp_path / "a.jsonl"
    writer = Writer(path, HEADER, str, print)
    writer(Event(1, 5.0, HEADER.run, "Ada", UnknownEvent("noted", {"crc": "01234567"})))
    writer(printed(2, "two"))
    writer.close()

    assert [JournalEntry(1, 5.0, "noted", (), "Ada", {"crc": "01234567"})] == list(read(path).entries[:1])


def test_a_changed_run_is_repaired_by_command(recorded: Recorded) -> None:
    """What is wrong is shown, what cannot be relied on goes aside, the rest is put in order, a gap stays told."""
    lines = recorded.path.read_bytes().splitlines(keepends=True)
    recorded.path.write_bytes(b"".join([*lines[:3], lines[4], lines[3], b"x\n", *lines[6:]]))
    shown = recorded.project.koi("runs", "show", "last").stderr.splitlines()
    repaired = recorded.project.koi("runs", "repair", "last")

    told = ["line 5 holds entry 3, which belongs before entry 4", "line 6 is damaged: it holds no entry"]
    assert [f"warning: {one}" for one in reversed(told)] == shown
    assert "1 line that cannot be relied on moved to" in repaired.stdout
    assert "warning: entry 5 is missing behind line 5\n" == repaired.stderr
    assert [*lines[:5], *lines[6:]] == recorded.path.read_bytes().splitlines(keepends=True)
    assert b"x\n" == recorded.path.with_suffix(".torn").read_bytes()
