"""The text of a playbook turned into sentences, one instruction each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.quoting import OPEN, QuotedPiece, mask, unmask

_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.M)
BULLET = r"(?:[-*•–]|\(?\d+[.)]|[a-z]\))\s+|{step}\s+\d+\s*[:.)-]\s*"
_END = re.compile(r"(?<=[.!?;])\s+")
LEAD = r"{lead}\b[\s,:]*"
NO_STEP = r"#|{no_step}\b"
_HEADING = re.compile(r"[\w ]{1,40}:")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One instruction, with marks for quotes and objects.

    Attributes:
        depth: columns by which its line is indented; a bullet counts as deeper than the text around it.
        ending: the exclamation mark it ended with, which may be a part of what is to be said.
        start: where in the playbook the sentence begins that it is, or is a part of.
        end: where that ends, exclusive.
    """

    text: str
    pieces: tuple[QuotedPiece, ...]
    depth: int = 0
    ending: str = ""
    start: int = 0
    end: int = 0

    @property
    def source(self) -> str:
        """The instruction as it was written, on one line."""
        return " ".join(unmask(self.text, self.pieces).split())

    def with_text(self, text: str) -> Sentence:
        """A part of this sentence as a sentence."""
        return replace(self, text=text.strip(), ending=self.ending if self.text.endswith(text) else "")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without its bullet, to which those that go on with it are joined.

    Attributes:
        begins: for each of the lines where it begins in `text`, and where in the masked playbook.
    """

    text: str
    depth: int
    begins: tuple[tuple[int, int], ...]

    def join(self, text: str, at: int) -> _Line:
        """This line with another one behind it, which begins at an offset of the masked playbook."""
        return _Line(f"{self.text} {text}", self.depth, (*self.begins, (len(self.text) + 1, at)))

    def masked_offset(self, at: int) -> int:
        """Where in the masked playbook an offset of `text` is."""
        begin, masked = next(begins for begins in reversed(self.begins) if begins[0] <= at)
        return masked + at - begin


def sentences_of(playbook: str) -> list[Sentence]:
    """The instructions of a playbook in order; headings and descriptions of the agent are left out."""
    masked = mask(_FENCE.sub(lambda fence: " " * len(fence[0]), playbook))
    found: list[Sentence] = []
    for line in _lines(masked.text):
        start = 0
        for end in (*(gap.end() for gap in _END.finditer(line.text)), len(line.text)):
            part, at, start = line.text[start:end].rstrip(), start, end
            text = without_lead(part.replace("**", ""))
            ending = "!" if text.endswith("!") else ""
            text = text.rstrip(" .;!")
            if re.search(rf"[^\W_]|{OPEN}", text) and not _is_background(text):
                span = (masked.original_offset(line.masked_offset(each)) for each in (at, at + len(part)))
                found.append(Sentence(text, masked.pieces, line.depth, ending, *span))
    return found


def without_lead(text: str) -> str:
    """The sentence without `first,`, `then`, `please` and the like in front."""
    text = text.strip()
    while found := compile_words(LEAD).match(text):
        text = text[found.end() :].strip()
    return text


def _lines(text: str) -> Iterator[_Line]:
    """Lines without bullets and their depth; a line that goes on in lower case is joined to the one before."""
    pending: _Line | None = None
    start = 0
    for raw in text.splitlines(keepends=True):
        line, indent = raw.strip(), len(raw) - len(raw.lstrip())
        at = start + indent
        start += len(raw)
        if pending and pending.text and _goes_on(pending.text, line):
            pending = pending.join(line, at)
            continue
        if pending and pending.text:
            yield pending
        bullet = compile_words(BULLET).match(line)
        skipped = bullet.end() if bullet else 0
        pending = _Line(line[skipped:], indent + (1 if bullet else 0), ((0, at + skipped),))
    if pending and pending.text:
        yield pending


def _goes_on(pending: str, line: str) -> bool:
    """Whether a line belongs to the one before it: it starts in lower case, or is the object after a colon."""
    if pending.endswith(":"):
        return line.startswith(OPEN)
    return line[:1].islower() and pending[-1] not in ".!?;" and not compile_words(BULLET).match(line)


def _is_background(text: str) -> bool:
    if compile_words(NO_STEP).match(text):
        return True
    return bool(_HEADING.fullmatch(text)) and len(text.split()) <= 3 and not compile_words(r"\d|{times}").search(text)
