"""A plain answer that a model is writing to its text for people, told while it grows."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from koi_lang.runtime.playbook.framing import THOUGHT, without_thoughts

# What has a model write one.
CALL_LLM = "call_llm"
OPENING_FENCE, CLOSING_FENCE = re.compile(r"\A```[a-z]*\n?"), re.compile(r"\n?```\Z")
# What may become the tag of a thought, or a fence.
BEGUN = re.compile(r"\s*(?:[<\[][^<>\[\]]{0,40}|`{1,2}|```[a-z]*)?\Z")
ENDS_TAG = frozenset(">]")
AROUND = string.whitespace + "`"


def plain_text(answer: str) -> str:
    """The text of a plain answer without thoughts, and without the fence around it."""
    return CLOSING_FENCE.sub("", OPENING_FENCE.sub("", without_thoughts(answer).strip()))


class WrittenAnswer:
    """Reports the text of a plain answer piece by piece; together they equal `plain_text`.

    Args:
        tell: is given each piece.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        # Pieces, since a text that is an attribute is copied whenever it grows.
        self._held: list[str] = []
        self._is_begun = self._is_thought = False

    def add(self, piece: str) -> None:
        """Add the next piece."""
        if self._is_begun:
            self._grow(piece)
            return
        self._held.append(piece)
        if self._is_thought and ENDS_TAG.isdisjoint(piece):
            return
        text = without_thoughts("".join(self._held))
        self._is_thought = THOUGHT.match(text) is not None
        if not self._is_thought and BEGUN.match(text) is None:
            self._begin(text)

    def end(self) -> None:
        """Report the rest that was held back and belongs to the text."""
        held, self._held = "".join(self._held), []
        rest = CLOSING_FENCE.sub("", held.rstrip()) if self._is_begun else plain_text(held)
        if rest:
            self._tell(rest)

    def _begin(self, text: str) -> None:
        self._is_begun, self._held = True, []
        self._grow(OPENING_FENCE.sub("", text.lstrip()))

    def _grow(self, piece: str) -> None:
        """Tell a piece but for blanks and backticks at its end, which may end the answer."""
        text = piece.rstrip(AROUND)
        if text:
            self._tell("".join(self._held) + text)
            self._held = [piece[len(text) :]]
        else:
            self._held.append(piece)
