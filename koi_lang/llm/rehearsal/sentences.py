"""The text of a playbook turned into sentences, one instruction each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
    """

    text: str
    pieces: tuple[QuotedPiece, ...]
    depth: int = 0
    ending: str = ""

    @property
    def source(self) -> str:
        """The instruction as it was written, on one line."""
        return " ".join(unmask(self.text, self.pieces).split())

    def with_text(self, text: str) -> Sentence:
        """A part of this sentence as a sentence."""
        ending = self.ending if self.text.endswith(text) else ""
        return Sentence(text.strip(), self.pieces, self.depth, ending)


def sentences_of(playbook: str) -> list[Sentence]:
    """The instructions of a playbook in order; headings and descriptions of the agent are left out."""
    masked = mask(_FENCE.sub("", playbook))
    found: list[Sentence] = []
    for line, depth in _lines(masked.text):
        for part in _END.split(line):
            text = without_lead(part.replace("**", ""))
            ending = "!" if text.endswith("!") else ""
            text = text.rstrip(" .;!")
            if re.search(rf"[^\W_]|{OPEN}", text) and not _is_background(text):
                found.append(Sentence(text, masked.pieces, depth, ending))
    return found


def without_lead(text: str) -> str:
    """The sentence without `first,`, `then`, `please` and the like in front."""
    text = text.strip()
    while found := compile_words(LEAD).match(text):
        text = text[found.end() :].strip()
    return text


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Lines without bullets and their depth; a line that goes on in lower case is joined to the one before."""
    pending, depth = "", 0
    for raw in text.splitlines():
        line = raw.strip()
        if pending and _goes_on(pending, line):
            pending = f"{pending} {line}"
            continue
        if pending:
            yield pending, depth
        bullet = compile_words(BULLET).match(line)
        depth = len(raw) - len(raw.lstrip()) + (1 if bullet else 0)
        pending = line[bullet.end() :] if bullet else line
    if pending:
        yield pending, depth


def _goes_on(pending: str, line: str) -> bool:
    """Whether a line belongs to the one before it: it starts in lower case, or is the object after a colon."""
    if pending.endswith(":"):
        return line.startswith(OPEN)
    return line[:1].islower() and pending[-1] not in ".!?;" and not compile_words(BULLET).match(line)


def _is_background(text: str) -> bool:
    if compile_words(NO_STEP).match(text):
        return True
    return bool(_HEADING.fullmatch(text)) and len(text.split()) <= 3 and not compile_words(r"\d|{times}").search(text)
