"""A journal's file to its entries, with everything in it that could not be read; the file is not changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from koi_lang.errors import JournalError, reason
from koi_lang.runtime.journal.entries import Header, JournalEntry, entry_in, header_of
from koi_lang.runtime.journal.line_ends import Authenticity, Signer, is_changed, is_sealed
from koi_lang.runtime.journal.totals import AT_REST, CallEnd, UsageTotals
from koi_lang.system.open_folders import STATE_FOLDER

# No header is longer; a foreign file may be one endless line.
MAX_HEADER_BYTES = 1 << 20
# How the line of an entry begins, and where its number ends at the latest.
NUMBER, NUMBER_WITHIN = b'{"n":', 30
# Behind its number and its time, which take some 40 bytes, it has its kind.
KIND, KIND_WITHIN = re.compile(rb'"kind":"(\w+)"'), 120


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One line behind the header.

    Attributes:
        number: counts from 1, which is the header.
        text: its bytes as they stand in the file, the line break included.
        entry: None when it holds none that can be relied on.
        fault: what is wrong with it, a clause; empty for a sound line, and for one that is not whole.
    """

    number: int
    text: bytes
    entry: JournalEntry | None
    fault: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it was written to its end; the last one may still be on its way, or was cut by a crash."""
        return self.text.endswith(b"\n")


@dataclass(frozen=True, slots=True)
class End:
    """Where a journal goes on.

    Attributes:
        count: entries that it has.
        totals: what models have taken.
        last_call: the end of the last call; None where there is none.
        updated: when the run worked last, in seconds since the epoch; None where that is not known.
        size: bytes of the file; None where it may have grown.
        state: of its signatures, empty where they are not known.
        signer: what it is signed with; None where that is not known.
    """

    run: str
    count: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)
    last_call: CallEnd | None = None
    updated: float | None = None
    size: int | None = None
    state: bytes = b""
    signer: Signer | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """The content of a journal.

    Attributes:
        entries: those that can be relied on, in the order in which they were written, each once.
        faults: whatever else is in the file, and what is missing from it, a clause each that names the place.
        torn: the bytes of a last line that is not whole.
        size: bytes of the file.
        authenticity: up to where its signatures are right; None where nobody has asked.
    """

    header: Header
    entries: tuple[JournalEntry, ...]
    faults: tuple[str, ...] = ()
    torn: bytes = b""
    size: int = field(default=0, compare=False)
    authenticity: Authenticity | None = field(default=None, compare=False)

    @property
    def end(self) -> End:
        """Where it goes on."""
        count = self.entries[-1].n if self.entries else 0
        last_call: CallEnd | None = None
        for entry in self.entries:
            last_call = CallEnd.after(entry, last_call)
        updated = max((entry.ts for entry in self.entries if entry.kind not in AT_REST), default=None)
        end = End(self.header.run, count, UsageTotals.of(self.entries), last_call, updated, self.size)
        signed = self.authenticity
        return end if signed is None else replace(end, state=signed.state, signer=signed.signer)


def read(path: Path, signer: Signer | None = None) -> Journal:
    """Everything in a journal. Raises JournalError when it cannot be read or has no header.

    Args:
        signer: what its signatures are to be of, where these matter.
    """
    authenticity = None if signer is None else Authenticity(signer)
    size = 0

    def take(text: bytes) -> None:
        nonlocal size
        size += len(text)
        if authenticity is not None:
            authenticity.add(text)

    with open_journal(path) as file:
        first = file.readline(MAX_HEADER_BYTES)
        header = header_of(first, path.name)
        take(first)
        found = list(_lines_in(file, header, first, take))
    torn = found.pop().text if found and not found[-1].is_whole else b""
    kept = in_order(found)
    entries = tuple(line.entry for line in kept if line.entry is not None)
    of_lines = (f"line {line.number} {line.fault}" for line in found if line.fault)
    faults = (*of_lines, *_faults_of_order(found), *_missing(kept, found))
    return Journal(header, entries, faults, torn, size, authenticity)


def in_order(found: Sequence[JournalLine]) -> list[JournalLine]:
    """The sound lines in the order in which they were written, of those that stand twice the first."""
    by_number: dict[int, JournalLine] = {}
    for line in found:
        if line.entry is not None:
            by_number.setdefault(line.entry.n, line)
    return [by_number[n] for n in sorted(by_number)]


def _faults_of_order(found: Sequence[JournalLine]) -> Iterator[str]:
    seen: set[int] = set()
    last = 0
    for line in found:
        n = 0 if line.entry is None else line.entry.n
        if n in seen:
            yield f"line {line.number} holds entry {n} again"
        elif line.entry is not None and n < last:
            yield f"line {line.number} holds entry {n}, which belongs before entry {last}"
        seen |= {n} - {0}
        last = max(last, n)


def _missing(kept: Sequence[JournalLine], found: Sequence[JournalLine]) -> Iterator[str]:
    """The entries that no line holds, but for those whose lines are there and damaged."""
    damaged = [line.number for line in found if line.fault]
    before, place = 0, 1
    for line in kept:
        n = 0 if line.entry is None else line.entry.n
        first, last = sorted((place, line.number))
        if n - before - 1 > sum(first < number < last for number in damaged):
            yield f"{_name_entries(before + 1, n - 1)} missing behind line {place}"
        before, place = n, line.number


def _name_entries(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"


def program_of(path: Path, header: Header) -> Path:
    """The file of the program that a journal is of.

    A relative one is looked for from the project, where the journal is among those of its runs, else from the journal.
    """
    place = path.absolute().parent
    return (place.parents[1] if place.parts[-2:] == (STATE_FOLDER, "runs") else place) / header.program


def read_header(path: Path) -> Header:
    """The header of a journal. Raises JournalError."""
    with open_journal(path) as file:
        return header_of(file.readline(MAX_HEADER_BYTES), path.name)


@contextmanager
def open_journal(path: Path, how: Literal["rb", "r+b"] = "rb") -> Iterator[BinaryIO]:
    """The file of a journal. Raises JournalError when it cannot be opened, read or changed."""
    try:
        with path.open(how) as file:
            yield file
    except OSError as error:
        done = "read" if how == "rb" else "changed"
        raise JournalError(f"`{path}` cannot be {done}: {reason(error)}") from error


def lines(path: Path, behind: int = 0, kinds: Collection[str] = ()) -> Iterator[JournalLine]:
    """The lines behind the header, one at a time. Raises JournalError.

    Args:
        behind: the number of an entry; those up to it are left out, as far as their lines begin with it.
        kinds: of the entries that are wanted; lines that tell another one are left out unread. Empty for all.
    """
    with open_journal(path) as file:
        first = file.readline(MAX_HEADER_BYTES)
        header = header_of(first, path.name)
        texts: Iterable[bytes] = file if behind < 1 else _skip_to(file, behind)
        if kinds:
            wanted = {None, *(kind.encode() for kind in kinds)}
            read = ((text, KIND.search(text, 0, KIND_WITHIN)) for text in texts)
            texts = (text for text, kind in read if (kind and kind[1]) in wanted)
        yield from _lines_in(texts, header, first)


def _skip_to(file: BinaryIO, behind: int) -> Iterator[bytes]:
    """The lines of a file without those that say to be an entry up to one."""
    for text in file:
        number = text[len(NUMBER) : text.find(b",", 0, NUMBER_WITHIN)] if text.startswith(NUMBER) else b""
        if not number.isdigit() or int(number) > behind:
            yield text


def _lines_in(
    file: Iterable[bytes], header: Header, first: bytes, take: Callable[[bytes], None] = lambda text: None
) -> Iterator[JournalLine]:
    has_checksums = is_sealed(first)
    for number, text in enumerate(file, 2):
        take(text)
        line = _line(number, text, header.run, has_checksums=has_checksums)
        yield line
        if not line.is_whole:  # what may have grown behind it meanwhile is its rest and no line
            return


def _line(number: int, text: bytes, run: str, *, has_checksums: bool) -> JournalLine:
    """A line with its faults; where the header has a checksum, each line must have one."""
    if not text.endswith(b"\n"):
        return JournalLine(number, text, None)
    if is_changed(text, run):
        return JournalLine(number, text, None, "was changed: it does not fit its checksum")
    entry = entry_in(text)
    if entry is None or entry.n < 1:
        return JournalLine(number, text, None, "is damaged: it holds no entry")
    if has_checksums and not is_sealed(text):
        return JournalLine(number, text, None, "was changed: its checksum is gone")
    return JournalLine(number, text, entry)
