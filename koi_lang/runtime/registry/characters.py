"""One character of a regular expression to a test: classes such as `\\d`, and letters in either case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

CharTest = Callable[[str], bool]

LINE_ENDS = "\n\r\u2028\u2029"


def is_word(char: str) -> bool:
    """Whether a character belongs to a word, as `\\w` says; the empty text does not."""
    return char.isascii() and (char.isalnum() or char == "_")


def is_any(char: str) -> bool:
    """Whether a character is a character: `.` with the flag `s`."""
    return True


def is_inside_line(char: str) -> bool:
    """Whether a character ends no line: `.` without flags."""
    return char not in LINE_ENDS


def is_char(expected: str) -> CharTest:
    """The test for one character."""
    return expected.__eq__


def any_of(tests: Sequence[CharTest]) -> CharTest:
    """The test that passes when one of several does."""
    return lambda char: any(test(char) for test in tests)


def negation(test: CharTest) -> CharTest:
    """The test that passes when another does not."""
    return lambda char: not test(char)


def in_any_case(test: CharTest) -> CharTest:
    """The test that a character passes when one of its cases passes another."""
    return lambda char: any(test(form) for form in _cases(char))


def _cases(char: str) -> list[str]:
    """A character with those of its cases that are one character; ASCII and other letters do not mix."""
    forms = {char.lower(), char.upper()} - {char}
    return [char, *(form for form in forms if len(form) == 1 and form.isascii() == char.isascii())]


def _is_digit(char: str) -> bool:
    return "0" <= char <= "9"


def _is_space(char: str) -> bool:
    return char == "\ufeff" or (char.isspace() and char not in "\x1c\x1d\x1e\x1f\x85")


CLASSES: Mapping[str, CharTest] = {
    "d": _is_digit,
    "D": negation(_is_digit),
    "w": is_word,
    "W": negation(is_word),
    "s": _is_space,
    "S": negation(_is_space),
}
