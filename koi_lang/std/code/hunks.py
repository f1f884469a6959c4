"""The text of a unified diff to its hunks, as tools write it and as models do: without counts, numbers or headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Self

from koi_lang.errors import AgentError

MAX_HUNKS, MAX_CHARS = 200, 1_000_000
COUNTS = re.compile(r"@@+ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@+ ?(.*)")
FENCE = re.compile(r"\s*```[a-z]*\s*", re.IGNORECASE)
PROLOGUE = re.compile(
    r"(?:diff --git |index [0-9a-f]+\.\.|(?:old|new|new file|deleted file) mode \d|similarity index |Index: |={20})"
    r"|\*\*\* (?:Begin Patch|End Patch|End of File)"
)
FILES = ("*** Update File: ", "*** Add File: ")
MOVES = ("rename from ", "*** Move to: ", "*** Delete File: ", "GIT binary patch")


@dataclass(frozen=True, slots=True)
class Hunk:
    r"""A hunk: neighbouring lines, and their replacement.

    Attributes:
        name: what messages call it.
        lines: each with its mark: a blank for one that stays, `-` for one that goes, `+` for a new one.
        start: the first line by the header, from 0; None without a header whose counts fit the lines.
        heading: what stands behind the header, which is a line above the hunk.
        unended: the marks of lines that are said to end the file without an end of line.
        unmarked: the lines again where lines that stay might have no mark; empty where they all have one.
    """

    name: str
    lines: tuple[tuple[str, str], ...]
    start: int | None = None
    heading: str = ""
    unended: str = ""
    unmarked: tuple[tuple[str, str], ...] = ()

    @property
    def before(self) -> list[str]:
        """The expected lines in the file."""
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def after(self) -> list[str]:
        """The new lines."""
        return [text for mark, text in self.lines if mark != "-"]

    @property
    def new_lines(self) -> list[str]:
        """The new lines."""
        return [text for mark, text in self.lines if mark == "+"]

    def with_new_lines(self, lines: Iterable[str]) -> Hunk:
        """The same with other new lines."""
        new = iter(lines)
        return replace(self, lines=tuple((mark, next(new) if mark == "+" else text) for mark, text in self.lines))


@dataclass(slots=True)
class _OpenHunk:
    """A hunk whose lines are being read; `missing` is how many old and new ones its header still promises."""

    header: str
    raw: list[str] = field(default_factory=list)
    missing: list[int] | None = None

    @classmethod
    def of(cls, header: str) -> Self:
        """One that begins; numbers in its header count only with all of them."""
        counts = COUNTS.fullmatch(header)
        return cls(header, [], [int(counts[2] or 1), int(counts[4] or 1)] if counts else None)

    def add(self, line: str) -> None:
        """Read one more line."""
        self.raw.append(line)
        if self.missing is not None:
            self.missing[0] -= not line.startswith(("+", "\\"))
            self.missing[1] -= not line.startswith(("-", "\\"))

    def is_complete(self) -> bool:
        """Whether it has the lines that its header promises; without numbers it may end anywhere."""
        return self.missing is None or max(self.missing) <= 0


def parse_diff(diff: str) -> list[Hunk]:
    """The hunks of a diff for one file. Raises AgentError for a diff of several, and for one without changes."""
    if len(diff) > MAX_CHARS:
        raise AgentError(
            f"the diff is longer than {MAX_CHARS:,} characters", help="Give a part of the changes at a time."
        )
    lines = _without_fence(diff.removesuffix("\n").split("\n"))
    hunks = [_close(f"hunk {number}", each) for number, each in enumerate(_gather(lines), 1)]
    if not any(mark != " " for hunk in hunks for mark, _ in hunk.lines):
        help = "Begin lines that go with `-`, new ones with `+`, and those around them with a blank."
        raise AgentError("the diff changes nothing", help=help)
    if len(hunks) > MAX_HUNKS:
        raise AgentError(f"the diff has {len(hunks)} hunks, and {MAX_HUNKS} is the most", help="Give a part at a time.")
    return [hunk for hunk in hunks if any(mark != " " for mark, _ in hunk.lines)]


def _without_fence(lines: list[str]) -> list[str]:
    while lines and not lines[0].strip():
        lines = lines[1:]
    if lines and FENCE.fullmatch(lines[0]):
        ends = [number for number, line in enumerate(lines) if number and line.rstrip() == "```"]
        lines = lines[1 : ends[-1] if ends else len(lines)]
    return lines


def _gather(lines: Sequence[str]) -> Iterator[_OpenHunk]:
    """The lines of each hunk with its header. Raises AgentError where a second file begins."""
    hunk: _OpenHunk | None = None
    files, names_end = 0, 0
    for at, line in enumerate(lines):
        if at < names_end or PROLOGUE.match(line):
            continue
        if line.startswith(FILES) or _begins_file(lines, at, hunk):
            files, names_end = files + 1, at + (1 if line.startswith(FILES) else 2)
            if files > 1:
                raise AgentError("the diff changes more than one file", help="Give one file and its changes at a time.")
        elif line.startswith(MOVES) and hunk is None:
            raise AgentError("a diff can change lines here, but neither move nor remove a file")
        elif line.startswith("@@"):
            if hunk is not None:
                yield hunk
            hunk = _OpenHunk.of(line.rstrip())
        else:
            hunk = hunk or _OpenHunk("")
            hunk.add(line)
    if hunk is not None:
        yield hunk


def _begins_file(lines: Sequence[str], at: int, hunk: _OpenHunk | None) -> bool:
    """Whether `---` and `+++` are the names of a file; removed and new lines may look like them."""
    if not (lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")):
        return False
    return hunk is None or (hunk.is_complete() and at + 2 < len(lines) and lines[at + 2].startswith("@@"))


def _close(name: str, hunk: _OpenHunk) -> Hunk:
    raw = _without_end(hunk)
    lines = tuple(_mark_line(each) for each in raw if not each.startswith("\\"))
    whole = [(" ", each) for each in raw if not each.startswith("\\")]
    unmarked = tuple(own if own[0] != " " else each for own, each in zip(lines, whole, strict=True))
    unended = "".join(before[:1] or " " for before, each in pairwise(hunk.raw) if each.startswith("\\"))
    counts = COUNTS.fullmatch(hunk.header)
    start = int(counts[1]) - 1 if counts and _is_counted(hunk, raw) else None
    heading = counts[5] if counts else hunk.header.strip("@ .")
    return Hunk(name, lines, start, heading.strip(), unended, () if lines == unmarked else unmarked)


def _without_end(hunk: _OpenHunk) -> list[str]:
    """The lines of a hunk, without empty ones behind it that its header does not count."""
    empty = sum(1 for _ in takewhile(lambda line: not line, reversed(hunk.raw)))
    surplus = empty if hunk.missing is None else max(0, min(empty, -hunk.missing[0]))
    return hunk.raw[: len(hunk.raw) - surplus]


def _is_counted(hunk: _OpenHunk, raw: Sequence[str]) -> bool:
    """Whether the numbers of a header fit its lines: others say nothing of the place either."""
    surplus = len(hunk.raw) - len(raw)
    return hunk.missing == [-surplus, -surplus]


def _mark_line(line: str) -> tuple[str, str]:
    """A line with its mark; one that has none stays, whole: an empty one, or one that is not indented."""
    return (line[0], line[1:]) if line[:1] in (" ", "-", "+") else (" ", line)
