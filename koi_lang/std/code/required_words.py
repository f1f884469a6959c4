"""A regular expression to words of which every text that it fits has one, so that most files need no search."""

from __future__ import annotations

# Escapes that stand for classes and places; all other letters and digits may begin longer ones.
SHORT_ESCAPES = frozenset("dDwWsSbBnrtfv")
SHORTEST = 2


def required_words(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Words of ASCII for each alternative of a pattern, the longest first, all of which what it fits has.

    Nothing is given where an alternative has none, or is not understood here.
    """
    words: list[tuple[str, ...]] = []
    runs = [""]
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        part = _PatternPart(pattern, at)
        if part.end < 0:
            return ()
        if mark == "|":
            words.append(_long_ones(runs))
            runs = [""]
        elif part.literal:
            runs[-1] += part.literal
        else:
            # What may be left out, or be there a number of times, is none of the word; `+` leaves it there once.
            runs[-1] = runs[-1][:-1] if mark in "*?{" else runs[-1]
            runs.append("")
        at = part.end
    words.append(_long_ones(runs))
    return tuple(dict.fromkeys(words)) if all(words) else ()


def _long_ones(runs: list[str]) -> tuple[str, ...]:
    words = {run: None for run in runs if run.isascii() and len(run) >= SHORTEST}
    return tuple(sorted(words, key=len, reverse=True))


class _PatternPart:
    """One part of a pattern.

    Attributes:
        end: where it ends; -1 for what is not understood.
        literal: the character that it stands for; empty for everything else.
    """

    def __init__(self, pattern: str, at: int) -> None:
        mark, following = pattern[at], pattern[at + 1 : at + 2]
        self.literal = ""
        if mark == "\\":
            is_known = following in SHORT_ESCAPES or (following != "" and not following.isalnum())
            self.end = at + 2 if is_known else -1
            self.literal = "" if following.isalnum() else following
        elif mark == "[":
            self.end = _set_end(pattern, at)
        elif mark == "(":
            self.end = _group_end(pattern, at)
        elif mark == "{":
            self.end = max(pattern.find("}", at), at) + 1
        else:
            self.end = at + 1
            self.literal = "" if mark in "|.^$*+?" else mark


def _set_end(pattern: str, at: int) -> int:
    """Where a set ends that begins at a place; -1 where it does not."""
    at += 1
    while at < len(pattern):
        if pattern[at] == "]":
            return at + 1
        at += 2 if pattern[at] == "\\" else 1
    return -1


def _group_end(pattern: str, at: int) -> int:
    """Where a group ends that begins at a place, with all that is in it; -1 where it does not."""
    depth = 0
    while 0 <= at < len(pattern):
        mark = pattern[at]
        depth += (mark == "(") - (mark == ")")
        if depth == 0:
            return at + 1
        at = _set_end(pattern, at) if mark == "[" else at + (2 if mark == "\\" else 1)
    return -1
