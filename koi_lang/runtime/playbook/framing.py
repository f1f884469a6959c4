"""The JSON that the text of an answer consists of, apart from the prose, fences and thoughts around it.

An answer that begins with JSON is carried out while it is written. This is for all others, and for what follows after
the JSON: it is looked at when it is complete, since what a model quotes can only be told by what stands behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

THOUGHTS = r"(?:think|thinking|thoughts?|reasoning|reflection)"
OPENING = rf"<(?P<name>{THOUGHTS})(?:\s[^<>]*)?>|(?P<mark>\[(?-i:THINK)\])"
CLOSING = rf"</{THOUGHTS}\s*>|\[/(?-i:THINK)\]"
FENCE = r"(?:`{3,}|~{3,})[\w.+-]*"
# What open models put around calls of tools.
CALL = r"</?(?:tool|function)_calls?>|<\|?(?:python_tag|tool_call)\|?>|\[(?-i:TOOL_CALLS)\]"
# An object with a key, or a list of objects; a bracket in prose is neither. Broken JSON counts: the model is told.
VALUE = r"""(?P<value>\{(?=\s{0,100}["'}])|\[(?=\s{0,100}\{))"""
OUTSIDE = re.compile(rf"{OPENING}|(?P<close>{CLOSING})|{FENCE}|{CALL}|{VALUE}", re.IGNORECASE)
THOUGHT = re.compile(rf"\s*(?:{OPENING})", re.IGNORECASE)
CLOSE = re.compile(CLOSING, re.IGNORECASE)
# A text in JSON, as far as it goes, or a bracket.
INSIDE = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?P<begin>[{\[])|(?P<end>[}\]])', re.DOTALL)
# What means nothing between values.
BLANK = re.compile(r"[\s,\ufeff\u200b\u2060]*+")
# The beginning of a line that quotes, or that is a comment.
QUOTING = re.compile(r"\s*(?:>|//|#)")


@dataclass(slots=True)
class Framed:
    """The parts of an answer.

    Attributes:
        values: the JSON texts in it, in order.
        has_prose: whether anything else in it says something.
        is_quoted: whether the last of the values does not end the answer, or stands in a line that quotes.
        unended: the text of a value that has no end; empty where there is none.
    """

    values: list[str] = field(default_factory=list)
    has_prose: bool = False
    is_quoted: bool = False
    unended: str = ""

    @property
    def is_meant(self) -> bool:
        """Whether its values are meant: there is nothing else, or there is one, which ends the answer."""
        return not self.has_prose or (len(self.values) == 1 and not self.is_quoted)

    def note(self, gap: str) -> None:
        """Take in the text before, between or behind values."""
        if BLANK.fullmatch(gap) is None:
            self.has_prose, self.is_quoted = True, bool(self.values)


def frame(text: str) -> Framed:
    """Split the text of an answer, or the rest of one, into its parts."""
    framed = Framed()
    at = 0
    last = 0
    while (found := OUTSIDE.search(text, at)) is not None:
        framed.note(text[at : found.start()])
        at = found.end()
        if found["close"]:  # of a thought whose beginning was not written
            framed = Framed()
        elif closing := closing_of(found):
            end = closing.search(text, at)
            if end is None:  # it goes on to the end of the answer, and may be about what stands before it
                framed.has_prose = framed.is_quoted = True
                return framed
            at = end.end()
        elif found["value"]:
            last = found.start()
            at = _end_of_value(text, last)
            if not at:
                return _without_end(framed, text, last)
            framed.values.append(text[last:at])
            framed.is_quoted = False
    framed.note(text[at:])
    framed.is_quoted |= QUOTING.match(text, text.rfind("\n", 0, last) + 1, last) is not None
    return framed


def without_thoughts(text: str) -> str:
    """A plain text without the thoughts at its beginning; unclosed thoughts may be its subject, and stay."""
    at = 0
    while (found := THOUGHT.match(text, at)) is not None and (closing := closing_of(found)) is not None:
        end = closing.search(text, found.end())
        if end is None:
            break
        at = end.end()
    return text[at:].lstrip() if at else text


def closing_of(found: re.Match[str]) -> re.Pattern[str] | None:
    """The end mark of the thought that a match of OPENING begins; None for other matches."""
    if found["name"]:
        return re.compile(rf"</{found['name']}\s*>", re.IGNORECASE)
    return re.compile(r"\[/THINK\]") if found["mark"] else None


def _end_of_value(text: str, start: int) -> int:
    """Where an object or list ends; 0 where it does not."""
    depth = 0
    for found in INSIDE.finditer(text, start):
        depth += bool(found["begin"]) - bool(found["end"])
        if found["end"] and not depth:
            return found.end()
    return 0


def _without_end(framed: Framed, text: str, start: int) -> Framed:
    """An answer with a value that has no end. One that was begun in a thought is forgotten with the thought."""
    ends = [found.end() for found in CLOSE.finditer(text, start)]
    if ends:
        return frame(text[ends[-1] :])
    framed.unended = text[start:]
    return framed
