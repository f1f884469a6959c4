"""Values in a playbook: marks stand for them while it is read, and they are put in when that is done."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from koi_lang.system.interpolation import HOLE, OPENING, Interpolation, Part

# Marks are made of noncharacters, which no text has by accident; \ufde0 to \ufdef are the digits of their numbers.
INTERNAL = re.compile("[\ufdd0-\ufdef]")
VALUE = "\ufdd0[\ufde0-\ufdef]+\ufdd1"
_VALUE = re.compile(VALUE)
_IN_CODE = {ord(character): f"\\u{ord(character):04x}" for character in "${}"}
# In front of a reference a backslash makes it plain text, and two stand for one.
ONE, TWO = "\\", "\\\\"
MAX_SHOWN_CHARS = 60


class Values:
    """The values of one playbook, under marks that nobody outside can guess.

    Args:
        parts: the playbook; interpolations become marks, texts are read.

    Attributes:
        text: the playbook with marks.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._secret = _digits(secrets.randbits(64) | 1 << 64)
        self._known: dict[str, Interpolation] = {}
        self.text = "".join(INTERNAL.sub("", part) if isinstance(part, str) else self._mark(part) for part in parts)

    def _mark(self, value: Interpolation) -> str:
        mark = f"\ufdd0{self._secret}{_digits(len(self._known))}\ufdd1"
        self._known[mark] = value
        return mark

    def find(self, words: str) -> Interpolation | None:
        """The value that a text consists of; None for every other text."""
        return self._known.get(words)

    def put_in(self, text: str) -> str:
        """A text that was read, with its values."""
        return self._each(text, lambda value: value.text)

    def excerpt(self, text: str) -> str:
        """A text that was read as people are told of it: on one line, long values cut off."""
        return " ".join(self._each(text, lambda value: _short(value.text)).split())

    def in_code(self, text: str) -> str:
        """The inside of a quoted text of an expression, with its values."""
        return self._each(text, lambda value: code_of(value.text)[1:-1])

    def _each(self, text: str, write: Callable[[Interpolation], str]) -> str:
        return _VALUE.sub(lambda mark: write(self._known[mark[0]]) if mark[0] in self._known else mark[0], text)

    def literal(self, value: Any) -> Any:
        """A value as a field of an action, escaped so that it arrives unchanged at any depth."""
        if isinstance(value, str):
            return without_references(((self.put_in(value), False),))
        return self._inside(value, self.literal)

    def plain(self, value: Any) -> Any:
        """The same for fields in which the runtime looks for no references."""
        return self.put_in(value) if isinstance(value, str) else self._inside(value, self.plain)

    def _inside(self, value: Any, change: Callable[[Any], Any]) -> Any:
        if isinstance(value, Mapping):
            return {self.put_in(key) if isinstance(key, str) else key: change(item) for key, item in value.items()}
        return [change(item) for item in value] if isinstance(value, list | tuple) else value


def has_value(text: str) -> bool:
    """Whether there is a mark in a text of the playbook."""
    return _VALUE.search(text) is not None


def code_of(value: Any) -> str:
    """A value as an expression that stands for it, in which nothing looks like a reference."""
    text = json.dumps(value, default=str)
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda quoted: quoted[0].translate(_IN_CODE), text)


def without_references(parts: Iterable[tuple[str, bool]]) -> str:
    """Parts of a text as one, in which the runtime finds no references but those that their author wrote.

    Args:
        parts: texts, and whether the author of the playbook wrote them; what begins in one and ends in another is
            no reference of the author's.
    """
    listed = list(parts)
    text = "".join(part for part, _ in listed)
    if HOLE.search(text) is None:
        return text
    written = bytes(own for part, own in listed for _ in range(len(part)))
    done, pieces = 0, list[str]()
    while (found := HOLE.search(text, done)) is not None:
        start, end = found.span()
        own = all(written[start:end])
        starts = [start]
        # A backslash behind another opening makes a reference of that one: `${{{x}}}` would become `${\{{x}}}`.
        while not own and (before := starts[0] - OPENING) >= done:
            if HOLE.match(text[before : starts[0]] + ONE + text[starts[0] :]) is None:
                break
            starts.insert(0, before)
        first = _first_backslash(text, starts[0])
        pieces += [text[done:first], *(ONE if own and at else TWO for at in written[first : starts[0]])]
        pieces += [text[start:end]] if own else [ONE + text[at : at + OPENING] for at in starts]
        done = end if own else start + OPENING
    return "".join([*pieces, text[done:]])


def _first_backslash(text: str, end: int) -> int:
    """Where the backslashes begin that stand in front of a place."""
    while end and text[end - 1] == ONE:
        end -= 1
    return end


def _digits(number: int) -> str:
    return "".join(chr(0xFDE0 + int(digit, 16)) for digit in f"{number:x}")


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
