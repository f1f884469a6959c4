"""The text of a regular expression to a tree of what it accepts.

The syntax is JavaScript's. Look-around, back-references and Unicode properties are refused: without them a pattern can
be run by `automaton` in time that grows with the text it is tried on and not with what the pattern makes of it, which
matters where a pattern may come from a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.errors import RegistryError
from koi_lang.runtime.registry.characters import (
    CLASSES,
    CharTest,
    any_of,
    in_any_case,
    is_any,
    is_char,
    is_inside_line,
    negation,
)

LONGEST = 1000
DEEPEST = 30
MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Char:
    """One character that passes a test."""

    test: CharTest


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters: `^`, `$`, `b` (edge of a word) or `B` (no edge of a word)."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; none is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of several."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `low` to `high` times; without an upper bound `high` is None."""

    part: Node
    low: int
    high: int | None


Node = Char | Edge | Sequence | Alternation | Repeat


def parse_pattern(pattern: str, *, ignore_case: bool = False, dot_all: bool = False) -> Node:
    """The tree of a pattern.

    Raises:
        RegistryError: the pattern is malformed, too long, or uses what is refused; the message shows it.
    """
    if len(pattern) > LONGEST:
        raise RegistryError(f"the regular expression `{pattern[:40]}…` is longer than {LONGEST} characters")
    return _Parser(pattern, ignore_case, dot_all).parse()


class _Parser:
    """A recursive descent over one pattern; `_at` is the next character to read."""

    def __init__(self, pattern: str, ignore_case: bool, dot_all: bool) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._dot_all = dot_all
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        tree = self._choice()
        if self._at < len(self._pattern):
            raise self._bad("`)` without `(`")
        return tree

    def _bad(self, reason: str) -> RegistryError:
        return RegistryError(
            f"the regular expression `{self._pattern}` cannot be used: {reason}",
            help="Correct the pattern of `$regex`; put a backslash before a sign that is meant literally.",
        )

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, what: str) -> str:
        char = self._peek()
        if not char:
            raise self._bad(f"{what} is not complete")
        self._at += 1
        return char

    def _skip(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) * found
        return found

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._skip("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return part
        if isinstance(part, Edge):
            raise self._bad("nothing to repeat")
        # A lazy quantifier accepts the same texts.
        self._skip("?")
        low, high = bounds
        if max(low, high or 0) > MOST_REPEATS:
            raise self._bad(f"more than {MOST_REPEATS} repetitions")
        if high is not None and high < low:
            raise self._bad("the numbers of a repetition are out of order")
        return Repeat(part, low, high)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in _QUANTIFIERS.items():
            if self._skip(sign):
                return bounds
        return self._counted() if self._peek() == "{" else None

    def _counted(self) -> tuple[int, int | None] | None:
        """Bounds written `{2}`, `{2,}` or `{2,4}`; a brace that is none of these stands for itself."""
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at + 1 : max(end, 0)].partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            return None
        self._at = end + 1
        if not comma:
            return int(low), int(low)
        return int(low), int(high) if high else None

    def _atom(self) -> Node:
        if self._bounds() is not None:
            raise self._bad("nothing to repeat")
        char = self._take("the pattern")
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escaped()
        if char in "^$":
            return Edge(char)
        if char == ".":
            return Char(is_any if self._dot_all else is_inside_line)
        return self._char(is_char(char))

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._bad(f"groups inside each other more than {DEEPEST} deep")
        self._skip_group_name()
        tree = self._choice()
        if not self._skip(")"):
            raise self._bad("`(` without `)`")
        self._depth -= 1
        return tree

    def _skip_group_name(self) -> None:
        if self._skip("?:") or not self._skip("?"):
            return
        end = self._pattern.find(">", self._at)
        if not self._skip("<") or self._peek() in {"=", "!"} or end < 0:
            raise self._bad("look-around is not available")
        self._at = end + 1

    def _escaped(self) -> Node:
        if self._skip("b"):
            return Edge("b")
        if self._skip("B"):
            return Edge("B")
        if self._peek() in set("123456789k"):
            raise self._bad("back-references are not available")
        return self._char(self._escape())

    def _escape(self) -> CharTest:
        """What follows a backslash, inside and outside of a class."""
        letter = self._take("the escape at its end")
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in "pP":
            raise self._bad("Unicode properties are not available")
        return is_char(self._escaped_char(letter))

    def _escaped_char(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter not in "xu":
            return letter
        if letter == "u" and self._skip("{"):
            end = self._pattern.find("}", self._at)
            digits, self._at = self._pattern[self._at : max(end, self._at)], end + 1
        else:
            width = 2 if letter == "x" else 4
            digits, self._at = self._pattern[self._at : self._at + width], self._at + width
            digits = digits if len(digits) == width else ""
        if not digits or set(digits) - _HEX or int(digits, 16) > 0x10FFFF:
            raise self._bad(f"`\\{letter}` needs hexadecimal digits")
        return chr(int(digits, 16))

    def _class(self) -> Node:
        negated = self._skip("^")
        tests: list[CharTest] = []
        while not self._skip("]"):
            tests.append(self._class_item())
        found = any_of(tests)
        if self._ignore_case:
            found = in_any_case(found)
        return Char(negation(found) if negated else found)

    def _class_item(self) -> CharTest:
        low = self._class_char()
        if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in {"", "]"}:
            return low if callable(low) else is_char(low)
        self._skip("-")
        high = self._class_char()
        if callable(low) or callable(high):
            return any_of([part if callable(part) else is_char(part) for part in (low, "-", high)])
        if high < low:
            raise self._bad(f"the range `{low}-{high}` is out of order")
        return lambda char: low <= char <= high

    def _class_char(self) -> str | CharTest:
        char = self._take("the class `[`")
        if char != "\\":
            return char
        letter = self._peek()
        if letter in CLASSES or letter in {"p", "P", ""}:
            return self._escape()
        self._at += 1
        return "\b" if letter == "b" else self._escaped_char(letter)

    def _char(self, test: CharTest) -> Char:
        return Char(in_any_case(test) if self._ignore_case else test)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_HEX = set("0123456789abcdefABCDEF")
