"""Patterns of `.gitignore` to regular expressions, with the meaning that git's own matcher gives them.

Git compares bytes: a text here holds one character of Latin-1 for each of them, patterns and paths alike.
"""

from __future__ import annotations

import re
import string

# Classes as git knows them: of ASCII only, and its white space is no more than this.
CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
SPECIAL = re.compile(r"[*?\[\\]")
BYTES = [chr(number) for number in range(256)]
# What a piece of a pattern may be beside the expression of one character.
STAR = "*"
DEEP = "**"
FOLDERS = "**/"


class PatternFaultError(Exception):
    """A pattern that git takes for one that matches nothing, such as `a[b`."""


def as_bytes_text(text: str) -> str:
    """A path with a character of Latin-1 for each of its bytes."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def regex_of(pattern: str, *, is_path: bool) -> str:
    """An expression for whole texts that match a pattern; at most quadratic time for any text.

    Args:
        is_path: whether the pattern is about paths, so that `**/` stands for folders.

    Raises:
        PatternFaultError: nothing can match.
    """
    # Git compares what stands before the first wildcard first, and sees the rest as a pattern of its own.
    found = SPECIAL.search(pattern)
    literal = len(pattern) if found is None else found.start()
    pieces = _pieces(pattern[literal:], is_path)
    return re.escape(pattern[:literal]) + _join_pieces(pieces)


def _pieces(pattern: str, is_path: bool) -> list[str]:
    """A pattern taken apart: `STAR`, `DEEP`, `FOLDERS`, and expressions of one character each."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        if mark == "*":
            piece, at = _stars(pattern, at, is_path)
        elif mark == "?":
            piece, at = "[^/]", at + 1
        elif mark == "[":
            piece, at = _set(pattern, at)
        elif mark == "\\":
            if at + 1 == len(pattern):
                raise PatternFaultError(pattern)
            piece, at = re.escape(pattern[at + 1]), at + 2
        else:
            piece, at = re.escape(mark), at + 1
        pieces.append(piece)
    return pieces


def _stars(pattern: str, start: int, is_path: bool) -> tuple[str, int]:
    """The meaning of stars, and their end; two between slashes reach through folders."""
    end = start
    while pattern[end : end + 1] == "*":
        end += 1
    is_bounded = start == 0 or pattern[start - 1] == "/"
    if not is_path or end - start < 2 or not is_bounded:
        return STAR, end
    if pattern[end : end + 1] == "/":
        return FOLDERS, end + 1
    return (DEEP if end == len(pattern) or pattern.startswith("\\/", end) else STAR), end


def _join_pieces(pieces: list[str]) -> str:
    """An expression. Text behind wildcards is searched once from the left, which finds it at any place."""
    parts: list[list[str]] = [[]]
    for piece in pieces:
        if piece in (DEEP, FOLDERS):
            parts.append([piece])
        else:
            parts[-1].append(piece)
    first, *others = parts
    text = _in_folder(first)
    for number, (deep, *rest) in enumerate(others, 1):
        through = "(?:.*?/)??" if deep == FOLDERS else ".*?"
        part = through + _in_folder(rest)
        text += part if number == len(others) else f"(?>{part})"
    return text


def _in_folder(pieces: list[str]) -> str:
    """An expression for pieces without those that reach through folders."""
    first, *others = _split_at_stars(pieces)
    text = first
    for number, part in enumerate(others, 1):
        text += f"[^/]*{part}" if number == len(others) else f"(?>[^/]*?{part})"
    return text


def _split_at_stars(pieces: list[str]) -> list[str]:
    parts = [""]
    for piece in pieces:
        if piece == STAR:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _set(pattern: str, start: int) -> tuple[str, int]:
    """The expression of a set such as `[!a-z]`, and where it ends. Raises PatternFaultError."""
    at = start + 1
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    chosen: set[str] = set()
    before, is_first = "", True
    while is_first or pattern[at : at + 1] != "]":
        is_first = False
        before, at = _member(pattern, at, before, chosen)
    kept = [mark for mark in BYTES if (mark in chosen) != is_negated and mark != "/"]
    return "[" + "".join(f"\\x{ord(mark):02x}" for mark in kept) + "]" if kept else "(?!)", at + 1


def _member(pattern: str, at: int, before: str, chosen: set[str]) -> tuple[str, int]:
    """Read one member of a set; returns the possible begin of a range behind it, and its end."""
    mark = pattern[at : at + 1]
    if mark == "-" and before and pattern[at + 1 : at + 2] not in ("", "]"):
        last, at = _character(pattern, at + 1)
        chosen.update(BYTES[ord(before) : ord(last) + 1])
        return "", at
    if mark == "[" and pattern[at + 1 : at + 2] == ":":
        return _class(pattern, at, chosen)
    mark, at = _character(pattern, at)
    chosen.add(mark)
    return mark, at


def _class(pattern: str, at: int, chosen: set[str]) -> tuple[str, int]:
    """Read `[:alpha:]`, or the `[` alone where that is none."""
    end = pattern.find("]", at + 2)
    if end < 0:
        raise PatternFaultError(pattern)
    if end < at + 3 or pattern[end - 1] != ":":
        chosen.add("[")
        return "[", at + 1
    name = pattern[at + 2 : end - 1]
    if name not in CLASSES:
        raise PatternFaultError(pattern)
    chosen.update(CLASSES[name])
    return "", end + 1


def _character(pattern: str, at: int) -> tuple[str, int]:
    """One character of a set, which a backslash may stand before."""
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise PatternFaultError(pattern)
    return pattern[at], at + 1
