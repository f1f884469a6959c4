"""The pattern of a JavaScript regular expression to a pattern of Python's `re`."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import category

from koi_lang.js.errors import SyntaxErrorValue

UNEVEN_LOOKBEHIND = "a lookbehind has to match a fixed number of characters here"
_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# What a class escape holds, written as the inside of a Python set; the capital ones are spelled out complements.
_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    # Without ı, ſ and K: Python would match i, s and k through them when case is ignored.
    "W": r"\x00-/:-@\[-\^`{-\u012f\u0132-\u017e\u0180-\u2129\u212b-\U0010ffff",
    "s": _SPACES,
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff",
}
# Letters whose other case is an ASCII letter in Python, and in JavaScript without the flag `u` is none.
_APART = "\u0130\u0131\u017f\u212a"
_LIKE_THEM = "iIsSkK"
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f", "0": "\0"}
_WORD = "(?-i:[A-Za-z0-9_])"
_BOUNDARY = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_INSIDE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_CODE = re.compile(r"u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_PROPERTY = re.compile(r"[pP]\{(?:(?:General_Category|gc)=)?(\w+)\}")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(?:(\d+)\}|(\d+),(\d*)\}))\??", re.ASCII)
# What stands between brackets and means ASCII characters only.
_ASCII_SET = re.compile(r"(?:[\x00-\x5b\x5e-\x7f]|\\[^uxDWSpP])+\]")
_GROUP = re.compile(r"\?(?::|<?[=!])")
_BACK_REFERENCE = re.compile(r"\\[1-9k]")
_NAMED = re.compile(r"\(\?<([A-Za-z_$][\w$]*)>")
_BRACKETS = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|\((?:\?<?[:=!])?|\)", re.DOTALL)
# Around a group that is repeated and has groups: the number of these, which show by it in which round they took part.
_ROUNDS = re.compile(r"__rounds\d+_(\d+)__")
_LONG_NAMES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Number": "N", "Decimal_Number": "Nd",
    "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Mark": "M", "Other": "C",
}  # fmt: skip


# How messages of Python about patterns begin, with those of JavaScript.
_REASONS = {
    "look-behind": UNEVEN_LOOKBEHIND, "missing )": "Unterminated group", "unbalanced": "Unmatched ')'",
    "bad character range": "Range out of order in character class",
    "min repeat": "numbers out of order in {} quantifier",
    "unknown group": "Invalid named capture referenced", "redefinition": "Duplicate capture group name",
    "multiple repeat": "Nothing to repeat", "nothing to repeat": "Nothing to repeat",
    "cannot refer to": "Invalid named reference", "Python int too large": "the count is too large",
    "the repetition number": "the count is too large", "maximum recursion": "it is nested too deeply",
}  # fmt: skip


@lru_cache(maxsize=512)
def compile_pattern(pattern: str, flags: str) -> re.Pattern[str]:
    """A pattern and flags to a Python pattern.

    Raises:
        SyntaxErrorValue: the pattern or a flag is wrong, or Python cannot match it (a lookbehind without fixed width).
    """
    if set(flags) - set("dgimsuvy") or len(set(flags)) != len(flags):
        raise SyntaxErrorValue(f"Invalid flags supplied to RegExp constructor '{flags}'")
    options = (re.IGNORECASE if "i" in flags else 0) | (re.DOTALL if "s" in flags else 0)
    try:
        return re.compile(Translation(pattern, flags).run(), options)
    except (re.error, OverflowError, RecursionError) as error:
        said = str(getattr(error, "msg", "") or error)
        reason = next((reason for start, reason in _REASONS.items() if said.startswith(start)), said)
        raise SyntaxErrorValue(f"Invalid regular expression: /{pattern}/{flags}: {reason}") from error


class Translation:
    """One walk over a pattern, which raises `re.error` where it is none; `at` is the next character to read.

    Attributes:
        size: after `run`, the characters of the pattern with all counts written out.
        groups: how many groups of the pattern capture.
        numbers: of each of these that was opened, its number in Python's pattern.
    """

    def __init__(self, pattern: str, flags: str, *, captures: bool = True) -> None:
        """Without `captures` only groups that the pattern itself refers to are kept apart."""
        self.pattern = pattern
        self.flags = flags
        # Patterns of schemas and of searches have the escapes of Unicode without a flag, as JSON Schema wants it.
        self._has_properties = "u" in flags or not captures
        self.captures = captures or _BACK_REFERENCE.search(pattern) is not None
        self.groups, self._rounds = _find_repeated(pattern)
        self.numbers = [0]
        self.at = 0
        self.size = 0
        self._outer_sizes: list[int] = []
        self._last_size = 0
        self._can_repeat = False
        if not captures:
            self._rounds.clear()
        self._opened = 0

    def run(self) -> str:
        """The whole pattern, translated."""
        parts = []
        while self.at < len(self.pattern):
            count = _QUANTIFIER.match(self.pattern, self.at)
            parts.append(self._quantifier(count) if count else self._part())
        return "".join(parts)

    def _part(self) -> str:
        start = self.pattern[self.at : self.at + 2]
        part = self._next()
        self._can_repeat = start[0] not in "(|^$" and start not in ("\\b", "\\B")
        self._measure(start[0])
        return part

    def _measure(self, first: str) -> None:
        """Count the part that was read; `first` is its first character."""
        self._last_size = 1
        if first == "(":
            self._outer_sizes.append(self.size)
            self.size = 0
        elif first == ")" and self._outer_sizes:
            self._last_size = self.size + 1
            self.size += self._outer_sizes.pop()
        self.size += 1

    def _quantifier(self, found: re.Match[str]) -> str:
        if not self._can_repeat:
            raise re.error("Nothing to repeat")
        self.at = found.end()
        self._can_repeat = False
        most = max(int(digits[:9] or 0) for digits in found.groups(""))
        self.size += self._last_size * max(most - 1, 0)
        return found[0]

    def _take(self, count: int = 1) -> str:
        taken = self.pattern[self.at : self.at + count]
        self.at += count
        return taken

    def _next(self) -> str:
        character = self._take()
        if character == "\\":
            return self._escape()
        if character == "[":
            return self._set()
        if character == "(":
            rounds = self._rounds.get(self.at - 1, "")
            self._opened += bool(rounds)
            return rounds + self._group()
        if character == ")" and self.at - 1 in self._rounds:
            return "))"
        if character == "^" and "m" in self.flags:
            return f"(?<![^{_LINE_ENDS}])"
        if character == "$":
            return f"(?![^{_LINE_ENDS}])" if "m" in self.flags else r"\Z"
        if character == "." and "s" not in self.flags:
            return f"[^{_LINE_ENDS}]"
        return character if character in "^.|)" else self._in_its_cases(character)

    def _in_its_cases(self, character: str) -> str:
        """One character; when case is ignored, JavaScript keeps some apart that Python does not."""
        if "i" not in self.flags or "u" in self.flags or character not in _APART + _LIKE_THEM:
            return re.escape(character)
        return f"(?-i:[{character.lower()}{character.upper()}])" if character.isascii() else f"(?-i:{character})"

    def _group(self) -> str:
        if self.pattern[self.at : self.at + 1] != "?":
            self._open()
            return "(" if self.captures else "(?:"
        if found := _NAMED.match(self.pattern, self.at - 1):
            self.at = found.end()
            self._open()
            return f"(?P<{_python_name(found[1])}>" if self.captures else "(?:"
        if found := _GROUP.match(self.pattern, self.at):
            self.at = found.end()
            return f"({found[0]}"
        raise re.error("Invalid group")

    def _open(self) -> None:
        self._opened += 1
        self.numbers.append(self._opened)

    def _escape(self) -> str:
        character = self.pattern[self.at : self.at + 1]
        if character in _CLASSES:
            self.at += 1
            inside = f"^{_CLASSES[character.lower()]}" if character.isupper() else _CLASSES[character]
            inside += self._others_of_words(character)
            return f"(?-i:[{inside}])" if "i" in self.flags else f"[{inside}]"
        if character in ("b", "B"):
            self.at += 1
            return _BOUNDARY if character == "b" else _INSIDE
        is_named = "u" in self.flags or _NAMED.search(self.pattern) is not None
        if is_named and (found := re.compile(r"k<([\w$]+)>").match(self.pattern, self.at)):
            self.at = found.end()
            return f"(?P={_python_name(found[1])})"
        found = re.compile("[1-9][0-9]*").match(self.pattern, self.at)
        if found and int(found[0]) <= self.groups:
            self.at = found.end()
            number = self.numbers[int(found[0])] if int(found[0]) < len(self.numbers) else 0
            return f"(?({number})\\{number})" if number else ""
        if name := self._property():
            return f"[{_category(name)}]"
        return self._in_its_cases(self._character())

    def _others_of_words(self, escape: str) -> str:
        r"""The letters beyond ASCII that `\w` has where the flags `i` and `u` stand together."""
        return "\u017f\u212a" if escape in ("w", "W") and {"i", "u"} <= set(self.flags) else ""

    def _property(self) -> str:
        """`p{L}` of an escape, which only stands for a category with the flag `u`; empty for others."""
        found = _PROPERTY.match(self.pattern, self.at) if self._has_properties else None
        self.at += len(found[0]) if found else 0
        return found[0] if found else ""

    def _character(self) -> str:
        """The one character that an escape stands for."""
        found = _CODE.match(self.pattern, self.at)
        if found and (found[1] is None or self._has_properties):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            if code > 0x10FFFF:
                raise re.error("Invalid Unicode escape")
            return chr(code)
        character = self._take()
        if not character:
            raise re.error("\\ at end of pattern")
        if character == "c":
            letter = self.pattern[self.at : self.at + 1]
            if letter.isascii() and letter.isalpha():
                return chr(ord(self._take()) % 32)
            self.at -= 1  # a backslash in front of a `c`
            return "\\"
        return _CONTROLS.get(character, character)

    def _set(self) -> str:
        start = self.at
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        items = []
        while self.pattern[self.at : self.at + 1] != "]":
            if self.at >= len(self.pattern):
                raise re.error("Unterminated character class")
            items.append(self._range())
        self.at += 1
        if not items:
            return r"[\x00-\U0010ffff]" if negated else "(?!)"
        found = f"[{'^' if negated else ''}{''.join(items)}]"
        if "i" not in self.flags or "u" in self.flags or not _ASCII_SET.match(self.pattern, start):
            return found
        apart = f"(?-i:[{_APART}])"
        return f"(?:{apart}|{found})" if negated else f"(?:(?!{apart}){found})"

    def _range(self) -> str:
        first = self._member()
        after = self.pattern[self.at + 1 : self.at + 2]
        if len(first) > 1 or self.pattern[self.at : self.at + 1] != "-" or after in ("]", ""):
            return first if len(first) > 1 else _in_set(first)
        self.at += 1
        last = self._member()
        if len(last) > 1:
            return f"{_in_set(first)}\\-{last}"
        return f"{_in_set(first)}-{_in_set(last)}"

    def _member(self) -> str:
        """One character of a set, or the inside of a set of several."""
        character = self._take()
        if character != "\\":
            return character
        character = self.pattern[self.at : self.at + 1]
        if character in _CLASSES:
            self.at += 1
            return _CLASSES[character] + (self._others_of_words(character) if character == "w" else "")
        if name := self._property():
            return _category(name)
        if character == "b":
            self.at += 1
            return "\b"
        return self._character()


def _find_repeated(pattern: str) -> tuple[int, dict[int, str]]:
    """How many groups of a pattern capture, and where groups begin and end that are repeated and have such groups.

    In JavaScript each round begins with empty groups; in Python they keep what they had. So a group is put around the
    repeated one, by whose last place `group_spans` tells what is left of earlier rounds. Groups in a lookbehind may lie
    before their round, so nothing is done about these.
    """
    opened: list[tuple[int, int]] = []
    captures = made = 0
    rounds: dict[int, str] = {}
    for found in _BRACKETS.finditer(pattern):
        if found[0] == ")" and opened:
            start, before = opened.pop()
            is_capturing = pattern[start : start + 2] != "(?" or _NAMED.match(pattern, start) is not None
            inside = captures + made - before
            quantifier = _QUANTIFIER.match(pattern, found.end())
            is_repeated = quantifier is not None and not quantifier[0].startswith("?")
            if is_repeated and inside > is_capturing and "(?<" not in re.sub(_NAMED, "", pattern[start : found.end()]):
                rounds[start] = rounds[found.start()] = f"(?P<__rounds{start}_{inside}__>"
                made += 1
        elif found[0][0] == "(":
            opened.append((found.start(), captures + made))
            captures += found[0] == "("
    return captures, rounds


@lru_cache(maxsize=512)
def _find_rounds(pattern: re.Pattern[str]) -> tuple[list[int], list[tuple[int, int]]]:
    """The numbers of the groups that a pattern was written with, and each repeated group with the last one in it."""
    counts = {at: _ROUNDS.fullmatch(name) for name, at in pattern.groupindex.items()}
    rounds = {at: at + int(found[1]) for at, found in counts.items() if found}
    return [at for at in range(pattern.groups + 1) if at not in rounds], list(rounds.items())


def group_spans(found: re.Match[str]) -> list[tuple[int, int]]:
    """Where a match and each group of the written pattern begin and end; -1 for one that took no part."""
    groups, rounds = _find_rounds(found.re)
    return [
        (-1, -1)
        if any(at < group <= last and found.start(group) < found.start(at) for at, last in rounds)
        else found.span(group)
        for group in groups
    ]


def group_names(found: re.Match[str]) -> dict[str, int]:
    """The names of groups as the pattern wrote them, each with its number there."""
    groups, _ = _find_rounds(found.re)
    names = found.re.groupindex.items()
    return {name.replace("__dollar__", "$"): groups.index(at) for name, at in names if at in groups}


def _python_name(name: str) -> str:
    """Python's group names have no `$`."""
    return name.replace("$", "__dollar__")


def _in_set(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else character


@lru_cache(maxsize=32)
def _category(escape: str) -> str:
    """The inside of a set with the characters of a Unicode category, such as `p{L}`."""
    found = _PROPERTY.fullmatch(escape)
    name = found[1] if found else ""
    short = _LONG_NAMES.get(name, name)
    wanted = escape.startswith("p")
    codes = [code for code in range(0x110000) if category(chr(code)).startswith(short) == wanted]
    if not short or not any(category(chr(code)).startswith(short) for code in range(0x3000)):
        raise re.error(f"Invalid property name in character class: \\{escape}")
    return "".join(_runs(codes))


def _runs(codes: list[int]) -> list[str]:
    """Ascending codes to ranges."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return [f"\\U{first:08x}-\\U{last:08x}" for first, last in runs]
