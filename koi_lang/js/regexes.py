"""Regular expressions, and what the methods of strings do with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

from koi_lang.js.calling import apply
from koi_lang.js.conversions import integer, text
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.undefined import Value, undefined
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.js import regex_translation
else:
    regex_translation = lazy_module("koi_lang.js.regex_translation")

# What stands for a part of a match in the text that takes its place.
MARK = re.compile(r"\$(?:(\$)|(&)|(`)|(')|(\d\d?)|<([^>]*)>)")


class RegExpValue:
    """A regular expression; `lastIndex` counts characters."""

    __slots__ = ("flags", "last_index", "pattern", "source")
    __koi_members__: ClassVar[dict[str, str]] = {
        "source": "source", "flags": "flags", "global": "is_global", "ignoreCase": "ignore_case", "sticky": "sticky",
        "multiline": "multiline", "dotAll": "dot_all", "unicode": "unicode", "hasIndices": "has_indices",
        "lastIndex": "last_index", "test": "test", "exec": "exec", "toString": "__str__",
    }  # fmt: skip

    def __init__(self, source: str, flags: str = "") -> None:
        self.pattern = regex_translation.compile_pattern(source, flags)
        self.source = source or "(?:)"
        self.flags = "".join(sorted(flags))
        self.last_index: Value = 0

    def __str__(self) -> str:
        return f"/{self.source}/{self.flags}"

    is_global = property(lambda self: "g" in self.flags)
    ignore_case = property(lambda self: "i" in self.flags)
    multiline = property(lambda self: "m" in self.flags)
    dot_all = property(lambda self: "s" in self.flags)
    unicode = property(lambda self: "u" in self.flags)
    sticky = property(lambda self: "y" in self.flags)
    has_indices = property(lambda self: "d" in self.flags)

    def test(self, subject: Value) -> bool:
        """Whether the text matches; with the flags g or y, from `lastIndex` on."""
        return self.find(text(subject)) is not None

    def exec(self, subject: Value) -> Value:
        """The next match as an array with `index`, `input` and `groups`, or null."""
        found = self.find(text(subject))
        return None if found is None else RegexMatch(found, has_indices=self.has_indices)

    def find(self, subject: str) -> re.Match[str] | None:
        """The next match; moves `lastIndex` if the flags say so."""
        if not self.is_global and not self.sticky:
            return self.pattern.search(subject)
        start = integer(self.last_index)
        search = self.pattern.match if self.sticky else self.pattern.search
        found = search(subject, start) if start <= len(subject) else None
        self.last_index = found.end() if found else 0
        return found

    def find_all(self, subject: str) -> Iterator[re.Match[str]]:
        """All matches from the start; where one is empty, the next begins a character later."""
        search = self.pattern.match if self.sticky else self.pattern.search
        at = 0
        while at <= len(subject) and (found := search(subject, at)):
            yield found
            at = found.end() + (found.end() == found.start())


class Groups(dict[str, Value]):
    """The named groups of a match; they print as an object without a prototype."""


class RegexMatch(list[Value]):
    """What `exec` and `match` give: the match and its groups, with where it was.

    Args:
        has_indices: whether it says where each group was, as with the flag `d`.
    """

    __koi_members__: ClassVar[dict[str, str]] = {
        "index": "start", "input": "input", "groups": "groups", "indices": "indices"
    }  # fmt: skip

    def __init__(self, found: re.Match[str], *, has_indices: bool = False) -> None:
        super().__init__([found[0], *captures(found)])
        self.start = found.start()
        self.input = found.string
        self.groups = named_captures(found)
        self.indices: Value = MatchIndices(found) if has_indices else undefined


class MatchIndices(list[Value]):
    """Where a match and its groups begin and end; undefined for a group that took no part."""

    __koi_members__: ClassVar[dict[str, str]] = {"groups": "groups"}

    def __init__(self, found: re.Match[str]) -> None:
        spans = [undefined if start < 0 else [start, end] for start, end in regex_translation.group_spans(found)]
        super().__init__(spans)
        names = regex_translation.group_names(found)
        self.groups: Value = Groups({name: spans[at] for name, at in names.items()}) if names else undefined


def captures(found: re.Match[str]) -> list[Value]:
    """The groups of a match; undefined where one took no part."""
    spans = regex_translation.group_spans(found)[1:]
    return [undefined if start < 0 else found.string[start:end] for start, end in spans]


def named_captures(found: re.Match[str]) -> Value:
    """The named groups of a match, undefined when the pattern names none."""
    names = regex_translation.group_names(found)
    groups = captures(found)
    return Groups({name: groups[at - 1] for name, at in names.items()}) if names else undefined


def regex(pattern: str, flags: str = "") -> RegExpValue:
    """The value of a literal `/pattern/flags`."""
    return RegExpValue(pattern, flags)


def _build(pattern: Value = undefined, flags: Value = undefined) -> RegExpValue:
    if isinstance(pattern, RegExpValue):
        return RegExpValue(pattern.source, pattern.flags if flags is undefined else text(flags))
    source = "" if pattern is undefined else text(pattern)
    # As it would stand between slashes.
    source = re.sub(
        r"(\\.)|/|\n", lambda found: found[1] or {"/": "\\/", "\n": "\\n"}[found[0]], source, flags=re.DOTALL
    )
    return RegExpValue(source, "" if flags is undefined else text(flags))


def match(subject: str, wanted: Value) -> Value:
    """`subject.match(wanted)`: with the flag g all matched texts, else the first match, null without any."""
    expression = wanted if isinstance(wanted, RegExpValue) else _build(wanted)
    if not expression.is_global:
        return expression.exec(subject)
    expression.last_index = 0
    return [found[0] for found in expression.find_all(subject)] or None


def match_all(subject: str, wanted: Value) -> Iterator[RegexMatch]:
    """`subject.matchAll(wanted)`: every match."""
    expression = wanted if isinstance(wanted, RegExpValue) else _build(wanted, "g")
    if not expression.is_global:
        raise TypeErrorValue("String.prototype.matchAll called with a non-global RegExp argument")
    has_indices = expression.has_indices
    return (RegexMatch(found, has_indices=has_indices) for found in expression.find_all(subject))


def search(subject: str, wanted: Value) -> int:
    """`subject.search(wanted)`: where the first match is, or -1."""
    expression = wanted if isinstance(wanted, RegExpValue) else _build(wanted)
    found = expression.pattern.search(subject)
    return found.start() if found else -1


def replace(subject: str, wanted: Value, replacement: Value, every: bool) -> str:
    """`replace` and `replaceAll`: the replacement is a text with `$1`, or a function of the match."""
    if not isinstance(wanted, RegExpValue):
        found = re.compile(re.escape(text(wanted)))
        return _replace_matches(
            subject, found.finditer(subject) if every else _first(found.search(subject)), replacement
        )
    if every and not wanted.is_global:
        raise TypeErrorValue("String.prototype.replaceAll called with a non-global RegExp argument")
    if wanted.is_global:
        wanted.last_index = 0
        return _replace_matches(subject, wanted.find_all(subject), replacement)
    return _replace_matches(subject, _first(wanted.find(subject)), replacement)


def _first(found: re.Match[str] | None) -> Iterator[re.Match[str]]:
    return iter(() if found is None else (found,))


def _replace_matches(subject: str, matches: Iterator[re.Match[str]], replacement: Value) -> str:
    substitute = _calling(replacement) if callable(replacement) else _filling(text(replacement))
    pieces, at = [], 0
    for found in list(matches):
        pieces += [subject[at : found.start()], substitute(found)]
        at = found.end()
    return "".join([*pieces, subject[at:]])


def _calling(replacement: Value) -> Callable[[re.Match[str]], str]:
    def substitute(found: re.Match[str]) -> str:
        groups = named_captures(found)
        more = () if groups is undefined else (groups,)
        return text(apply(replacement, found[0], *captures(found), found.start(), found.string, *more))

    return substitute


def _filling(replacement: str) -> Callable[[re.Match[str]], str]:
    if "$" not in replacement:
        return lambda found: replacement
    return lambda found: MARK.sub(lambda mark: _expand_mark(mark, found), replacement)


def _expand_mark(mark: re.Match[str], found: re.Match[str]) -> str:
    if mark[5]:
        return _expand_number(mark, found)
    if mark[6] is not None:
        groups = named_captures(found)
        if groups is undefined:  # there are no names, so that these are marks like others
            return f"$<{MARK.sub(lambda inner: _expand_mark(inner, found), mark[6])}>"
        return _or_empty(groups.get(mark[6], undefined))
    before, after = found.string[: found.start()], found.string[found.end() :]
    return {"$$": "$", "$&": found[0], "$`": before, "$'": after}[mark[0]]


def _expand_number(mark: re.Match[str], found: re.Match[str]) -> str:
    """`$12` is group 12, or else group 1 and a 2, or else text."""
    groups = [found[0], *captures(found)]
    digits = mark[5]
    if 0 < int(digits) < len(groups):
        return _or_empty(groups[int(digits)])
    if len(digits) == 2 and 0 < int(digits[0]) < len(groups):
        return _or_empty(groups[int(digits[0])]) + digits[1]
    return mark[0]


def _or_empty(group: Value) -> str:
    return "" if group is undefined else str(group)


def split(subject: str, separator: RegExpValue) -> list[Value]:
    """`subject.split(/…/)`, groups included."""
    if not subject:
        return [] if separator.pattern.fullmatch(subject) else [subject]
    pieces: list[Value] = []
    start = at = 0
    while at < len(subject) and (found := separator.pattern.search(subject, at)):
        if found.start() >= len(subject):
            break
        if found.end() == start:
            at = found.start() + 1
            continue
        pieces += [subject[start : found.start()], *captures(found)]
        start = at = found.end()
    return [*pieces, subject[start:]]


REGEXP = Constructor("RegExp", _build, _build, holder(RegExpValue))
