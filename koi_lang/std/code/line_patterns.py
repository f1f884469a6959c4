"""A regular expression to the lines of a text that it fits, found by searching the text as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from koi_lang.errors import AgentError, PatternError
from koi_lang.js.bounded_regex import compile_bounded
from koi_lang.js.regex_translation import Translation
from koi_lang.std.code.required_words import required_words

# One search may take so long, in seconds of the processor.
LIMIT_S = 2.0
LOOKAROUND = re.compile(r"\?<?[=!]")
IGNORES_CASE = "(?i)"


class LineMatch(NamedTuple):
    """A line that fits.

    Attributes:
        number: from 1.
        start: where it begins in the text; `end` is where its end of line stands.
        at: where the first match begins in the text.
    """

    number: int
    start: int
    end: int
    at: int


class LinePattern:
    """A regular expression in the syntax of JavaScript that is looked for in each line by itself.

    Args:
        pattern: `(?i)` before it means what `ignore_case` does.

    Attributes:
        words: a text that it fits holds all of one of these, letter case aside if it `ignores_case`; empty if unknown.

    Raises:
        AgentError: it is empty, or no text.
        PatternError: it is malformed or too large.
    """

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        if not isinstance(pattern, str) or not pattern:
            raise AgentError(f"{pattern!r} is no regular expression", help="Give the text to search for.")
        self.pattern = pattern
        flags = "i" if ignore_case or pattern.startswith(IGNORES_CASE) else ""
        pattern = pattern.removeprefix(IGNORES_CASE)
        self._in_line = compile_bounded(pattern, flags)
        self._in_text = compile_bounded(pattern, f"{flags}m", _WholeText)
        self.ignores_case, self.words = bool(flags), required_words(pattern)
        self._wanted = [[(word.lower() if flags else word).encode() for word in words] for words in self.words]
        self._looks_around = LOOKAROUND.search(pattern) is not None

    def may_be_in(self, data: bytes) -> bool:
        """Whether the bytes of a text may hold what fits, without a search; mostly they do not."""
        if not self._wanted:
            return True
        searched = data.lower() if self.ignores_case else data
        return any(all(word in searched for word in words) for words in self._wanted)

    def lines(self, text: str, tick: Callable[[], None]) -> Iterator[LineMatch]:
        r"""The lines that fit, in order.

        Args:
            text: its lines end with `\n`; what follows the last one is no line.
            tick: is called for each line that is looked at closely.

        Raises:
            PatternError: a search takes too long.
        """
        number, counted, position = 1, 0, 0
        try:
            while found := self._in_text.search(text, position, timeout=LIMIT_S, concurrent=True):
                start, end = _line_around(text, found.start())
                if start == len(text):
                    return
                tick()
                number += text.count("\n", counted, start)
                counted = start
                at = self._place(text, start, end, found.span())
                if at >= 0:
                    yield LineMatch(number, start, end, at)
                position = end + 1
                if position >= len(text):
                    return
        except TimeoutError as error:
            told = f"the regular expression `{self.pattern}` takes too long: {LIMIT_S:.0f} s were not enough"
            raise PatternError(told, help="Write it without repetitions inside repetitions.") from error

    def _place(self, text: str, start: int, end: int, found: tuple[int, int]) -> int:
        """Where the match in a line begins that was found in the text as a whole; -1 where there is none in it."""
        if found[1] <= end and not self._looks_around:
            return found[0]
        own = self._in_line.search(text[start:end], timeout=LIMIT_S, concurrent=True)
        return -1 if own is None else start + own.start()


class _WholeText(Translation):
    """A pattern about lines to one about texts: where it fits a line, this fits there, too.

    It may fit more: it reaches over ends of lines, and what it should look at around a match may be there or not.
    """

    def run(self) -> str:
        return f"(?m){super().run()}"

    def _next(self) -> str:
        mark = self.pattern[self.at]
        if mark not in "^$":
            return super()._next()
        self.at += 1
        return mark

    def _group(self) -> str:
        found = LOOKAROUND.match(self.pattern, self.at)
        if found is None:
            return super()._group()
        self.at = found.end()
        return "(?:|"


def _line_around(text: str, place: int) -> tuple[int, int]:
    """Where the line begins and ends that a place is in; the end of a line belongs to it."""
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, len(text) if end < 0 else end
