"""Where reading a program stopped, and the table of functions that know why."""

from __future__ import annotations

import inspect
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from lark import Token
from lark.exceptions import UnexpectedInput

from koi_lang.compiler.syntax_errors.scanner import CLOSERS, Scan, ScannedToken, scan
from koi_lang.source import Source, Span

# How many characters after the failure are looked at for the closers of open brackets.
LOOK_AHEAD = 20_000
# Longer lines are not looked through for forms of other languages.
MAX_LINE_CHARS = 400
# Words that do not say what a bracket belongs to.
SILENT = frozenset("DEFAULT NULL BOOLEAN STRING TRIPLE NUMBER NAME WORD ASYNC BACKTICK OVER TIMES PASS".split())


class Frame(NamedTuple):
    """A bracket that is open, its offset, and the word that introduced it (`agent`, `on`, `if`, …; may be empty)."""

    word: str
    bracket: str
    start: int


class Surroundings(NamedTuple):
    """What explanations need of a file besides the part that is read.

    Attributes:
        begins_file: whether the part is the beginning of the file.
        role: the name of the first role that the file declares; empty if there is none.
    """

    begins_file: bool = True
    role: str = ""


class SyntaxHelp(NamedTuple):
    """What a hint has to say; `others` are further places with their labels, `meant` is what may stand at the span."""

    message: str
    span: Span
    help: str
    label: str = ""
    others: tuple[tuple[Span, str], ...] = ()
    meant: str | None = None


# Forms of other languages on one line: a pattern, what is said of it, and what to write.
ForeignForm: TypeAlias = tuple[str, str, str]


def form_at(source: Source, at: int, forms: Sequence[ForeignForm]) -> SyntaxHelp | None:
    """What is said of the first form that covers an offset on its line; None for lines that are too long."""
    start = source.text.rfind("\n", 0, at) + 1
    line = source.text[start : source.text.find("\n", at) % (len(source.text) + 1)]
    if len(line) > MAX_LINE_CHARS:
        return None
    for pattern, message, help in forms:
        for found in re.finditer(pattern, line):
            if found.start() <= at - start <= found.end():
                span = Span(start + found.start() + len(found[0]) - len(found[0].lstrip()), start + found.end())
                return SyntaxHelp(found.expand(message), span, found.expand(help))
    return None


@dataclass(frozen=True, slots=True)
class Failure:
    """The place where reading stopped.

    Attributes:
        index: the piece that could not be read; one past the last when the text ended.
        frames: the open brackets, outermost first.
        tail: what was read since the last brace, as names of the grammar.
        expected: what the grammar allows instead, as names of the grammar.
        end: where the text ends that is looked at, some of it behind the part that is read.
    """

    source: Source
    scan: Scan
    index: int
    frames: tuple[Frame, ...]
    tail: tuple[str, ...]
    expected: frozenset[str]
    end: int
    around: Surroundings

    def piece(self, offset: int = 0) -> ScannedToken:
        """The piece that many places after (or before) the one that could not be read; empty outside the text."""
        at = self.index + offset
        if 0 <= at < len(self.scan.pieces):
            return self.scan.pieces[at]
        edge = self.end if at >= 0 else 0
        return ScannedToken("end", "", Span(edge, edge), True)

    def word(self, offset: int = 0) -> str:
        """The text of a piece in lower case."""
        return self.piece(offset).text.lower()

    def comment_behind(self, index: int) -> Span:
        """The `//` comment at the end of a piece's line; empty where there is none."""
        text, pieces = self.source.text, self.scan.pieces
        end = text.find("\n", pieces[index].span.end) % (len(text) + 1)
        last = next((at for at in range(index + 1, len(pieces)) if pieces[at].span.start >= end), len(pieces)) - 1
        start = pieces[last].span.end
        start += len(text[start:end]) - len(text[start:end].lstrip())
        return Span(start, end) if text.startswith("//", start) else Span(end, end)

    @property
    def span(self) -> Span:
        """Where the piece that could not be read stands."""
        return self.piece().span

    @property
    def excerpt(self) -> str:
        """The piece that could not be read as messages name it: one line, not too long."""
        text = self.piece().text.split("\n", 1)[0]
        return f"`{text[:37]}…`" if len(text) > 40 else f"`{text}`"

    @property
    def frame(self) -> Frame:
        """The innermost open bracket."""
        return self.frames[-1] if self.frames else Frame("", "", 0)

    @property
    def is_code(self) -> bool:
        """Whether the place is inside a handler or function."""
        return any(
            frame.bracket == "{" and frame.word in ("on", "function", "=>", "test", "eval") for frame in self.frames
        )

    @property
    def is_top(self) -> bool:
        """Whether the place is outside of every declaration."""
        may_begin = "PACKAGE" in self.expected and (self.piece().fresh or self.word(-1) == "}")
        return not self.frames and (not self.tail or may_begin)

    @property
    def wants_value(self) -> bool:
        """Whether nothing but a value may stand here."""
        return "BOOLEAN" in self.expected and not self.expected & {"PERCENT", "VARIABLE"}

    def same_line(self) -> Iterator[int]:
        """Offsets of the pieces before the failure on its line, nearest first."""
        offset = 0
        while not self.piece(offset).fresh:
            offset -= 1
            yield offset

    def at(self, start: int) -> int:
        """The index of the piece that covers an offset of the source."""
        return bisect_right(self.scan.pieces, start, key=lambda piece: piece.span.start) - 1


def failure_of(source: Source, error: UnexpectedInput, read: Span, around: Surroundings) -> Failure:
    """The parser's error as a place among the pieces of the text; at its end, what follows it cannot be read."""
    token = getattr(error, "token", None)
    at = read.end if token is not None and token.type == "$END" else error.pos_in_stream or 0
    end = len(source.text)
    found = scan(source.text, read, at + LOOK_AHEAD, end)
    stack = getattr(error, "state", None)
    values: Sequence[Any] = stack.value_stack if stack is not None else ()
    expected = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    index = bisect_right(found.pieces, at, key=lambda piece: piece.span.start) - 1
    if index < 0 or at >= found.pieces[index].span.end:
        index += 1
    frames, tail = _context(values)
    return Failure(source, found, index, frames, tail, frozenset(expected), end, around)


def _context(values: Sequence[Any]) -> tuple[tuple[Frame, ...], tuple[str, ...]]:
    """The open brackets of the parser's stack, and what stands behind the last brace."""
    frames: list[Frame] = []
    tails: list[list[str]] = [[]]
    word = ""
    for value in values:
        tails[-1].append(value.type if isinstance(value, Token) else type(value).__name__)
        if tails[-1][-1] == "Tree":
            tails[-1], word = [], ""
        elif not isinstance(value, Token):
            continue
        elif _closes(value, frames):
            word, inner = frames.pop().word, tails.pop()
            tails[-1] = [inner[-1]] if value == "}" else [*tails[-1], inner[-1]]
        elif value in CLOSERS:
            frames.append(Frame(word, str(value), value.start_pos or 0))
            tails.append([])
            word = ""
        elif value == "=>" or (value.type not in SILENT and value[:1].isalpha()):
            word = value.lower()
    return tuple(frames), tuple(tails[-1])


def _closes(value: Token, frames: list[Frame]) -> bool:
    """Whether a token of the stack closes the innermost bracket."""
    return bool(frames) and value in (")", "]", "}", "`") and value == CLOSERS[frames[-1].bracket]


HintFunction = Callable[[Failure], SyntaxHelp | None]


class Hint(NamedTuple):
    """A recognised mistake: its code and the function that recognises it; the function's docstring explains it."""

    code: str
    find: HintFunction

    @property
    def explanation(self) -> str:
        """What the mistake is, with a wrong and a right example."""
        return inspect.getdoc(self.find) or ""


def hint(table: list[Hint], code: str) -> Callable[[HintFunction], HintFunction]:
    """Add the decorated function to a table under a code; earlier entries are asked first."""

    def add(find: HintFunction) -> HintFunction:
        table.append(Hint(code, find))
        return find

    return add
