"""A journal's file to its entries, with everything in it that could not be read; the file is not changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from koi_lang.errors import JournalError, reason
from koi_lang.runtime.journal.entries import Entry, Header, entry_in, header_of

# No header is longer; a foreign file may be one endless line.
LONGEST_HEADER = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One line behind the header.

    Attributes:
        number: counts from 1, which is the header.
        text: its bytes as they stand in the file, the line break included.
        entry: None when it holds none.
    """

    number: int
    text: bytes
    entry: Entry | None

    @property
    def is_whole(self) -> bool:
        """Whether it was written to its end; the last one may still be on its way, or was cut by a crash."""
        return self.text.endswith(b"\n")


@dataclass(frozen=True, slots=True)
class Journal:
    """What is in a journal.

    Attributes:
        damaged: numbers of whole lines that hold no entry.
        torn: the bytes of a last line that is not whole.
    """

    header: Header
    entries: tuple[Entry, ...]
    damaged: tuple[int, ...] = ()
    torn: bytes = b""


def read(path: Path) -> Journal:
    """Everything in a journal. Raises JournalError when it cannot be read or has no header."""
    entries: list[Entry] = []
    damaged: list[int] = []
    torn = b""
    for line in lines(path):
        if not line.is_whole:
            torn = line.text
        elif line.entry is None:
            damaged.append(line.number)
        else:
            entries.append(line.entry)
    return Journal(read_header(path), tuple(entries), tuple(damaged), torn)


def program_of(path: Path, header: Header) -> Path:
    """The file of the program that a journal is of; a relative one is looked for from the journal."""
    return path.absolute().parent / header.program


def read_header(path: Path) -> Header:
    """The header of a journal. Raises JournalError."""
    with opened(path) as file:
        return header_of(file.readline(LONGEST_HEADER), path.name)


@contextmanager
def opened(path: Path, how: Literal["rb", "r+b"] = "rb") -> Iterator[BinaryIO]:
    """The file of a journal. Raises JournalError when it cannot be opened, read or changed."""
    try:
        with path.open(how) as file:
            yield file
    except OSError as error:
        done = "read" if how == "rb" else "changed"
        raise JournalError(f"`{path}` cannot be {done}: {reason(error)}") from error


def lines(path: Path) -> Iterator[Line]:
    """The lines behind the header, one at a time. Raises JournalError."""
    read_header(path)
    with opened(path) as file:
        for number, text in enumerate(file, 1):
            if number > 1:
                yield Line(number, text, entry_in(text) if text.endswith(b"\n") else None)
