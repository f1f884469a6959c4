"""The expression of `-k` as a test of names: pieces of text with `and`, `or`, `not` and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable

from koi_lang.errors import UsageError

WORD = re.compile(r"[()]|[^\s()]+")
WORDS = ("and", "or", "not", "(", ")", "")
Selects = Callable[[str], bool]


def selection(text: str) -> Selects:
    """A function that says whether a name is chosen; capital letters do not count.

    Words beside each other are one piece of text: `greets by and not name`. Raises UsageError.
    """
    reader = _SelectionReader(text, WORD.findall(text.lower()))
    found = reader.either()
    if reader.word:
        raise reader.problem()
    return found


class _SelectionReader:
    def __init__(self, text: str, words: list[str]) -> None:
        self._text, self._words = text, words

    @property
    def word(self) -> str:
        """The next word, empty at the end."""
        return self._words[0] if self._words else ""

    def problem(self) -> UsageError:
        """The fault of the text."""
        where = f"`{self.word}` cannot stand where it does" if self.word else "something is missing at its end"
        return UsageError(f"`-k {self._text}` cannot be read: {where}", help="write -k 'greets and not (slow or old)'.")

    def either(self) -> Selects:
        """Parts joined with `or`."""
        parts = [self.both()]
        while self._take("or"):
            parts.append(self.both())
        return lambda name: any(part(name) for part in parts)

    def both(self) -> Selects:
        """Parts joined with `and`."""
        parts = [self.single()]
        while self._take("and"):
            parts.append(self.single())
        return lambda name: all(part(name) for part in parts)

    def single(self) -> Selects:
        """A piece of text, `not` with a part behind it, or parentheses."""
        if self._take("not"):
            part = self.single()
            return lambda name: not part(name)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise self.problem()
            return inner
        return self._piece()

    def _piece(self) -> Selects:
        words = []
        while self.word not in WORDS:
            words.append(self._words.pop(0))
        if not words:
            raise self.problem()
        piece = " ".join(words)
        return lambda name: piece in " ".join(name.lower().split())

    def _take(self, word: str) -> bool:
        if self.word != word:
            return False
        self._words.pop(0)
        return True
