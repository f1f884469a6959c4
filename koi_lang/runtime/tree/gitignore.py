"""`.gitignore` files: their rules, and the chain of rules that are valid in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from koi_lang.system.wildmatch import SPECIAL, PatternFaultError, regex_of

NAME = ".gitignore"


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """A line of a file.

    Attributes:
        pattern: without what says the rest.
        regex: of whole names, or of whole paths below the folder of the file.
        is_path: which of both.
        only_folders: whether it is about folders alone.
        ignores: whether what it matches is ignored; else it is not, whatever lines before it say.
    """

    pattern: str
    regex: str
    is_path: bool
    only_folders: bool
    ignores: bool


class IgnoreFile:
    """The rules of one file; most names are seen at once to be none of its business.

    Args:
        text: its content, a character of Latin-1 for each byte.
    """

    def __init__(self, text: str) -> None:
        lines = filter(None, map(_line_of, text.removeprefix("\xef\xbb\xbf").split("\n")))
        self._rules = [rule for rule in map(_rule_of, lines) if rule is not None]
        names = [rule for rule in self._rules if not rule.is_path]
        self._names = frozenset(rule.pattern for rule in names if not SPECIAL.search(rule.pattern))
        self._endings = tuple(rule.pattern[1:] for rule in names if _is_ending(rule.pattern))
        self._others = _any_of(
            [rule for rule in names if SPECIAL.search(rule.pattern) and not _is_ending(rule.pattern)]
        )
        # Which rule counts is found out where one may: for what is no folder, and for folders.
        self._last: dict[bool, _LastRule] = {}
        self._paths = _any_of([rule for rule in self._rules if rule.is_path])

    def verdict(self, name: str, path: str, *, is_folder: bool) -> bool | None:
        """Whether something is ignored; None where no rule is about it.

        Args:
            path: from the folder of the file, without a `/` at its end.
        """
        if not self._may_match(name, path):
            return None
        if is_folder not in self._last:
            self._last[is_folder] = _LastRule([rule for rule in self._rules if is_folder or not rule.only_folders])
        return self._last[is_folder].verdict(name, path)

    def _may_match(self, name: str, path: str) -> bool:
        if name in self._names or (self._endings and name.endswith(self._endings)):
            return True
        if self._others is not None and self._others.fullmatch(name):
            return True
        return self._paths is not None and self._paths.fullmatch(path) is not None


class _LastRule:
    """Finds the last of some rules that matches something, at once for all of them."""

    def __init__(self, rules: Sequence[IgnoreRule]) -> None:
        self._rules = rules
        names, paths = ([number for number, rule in enumerate(rules) if rule.is_path is kind] for kind in (False, True))
        self._names, self._paths = names[::-1], paths[::-1]
        self._name, self._path = (self._compile(numbers) for numbers in (self._names, self._paths))

    def _compile(self, numbers: Sequence[int]) -> re.Pattern[str]:
        """An expression with a group for each rule; it matches nothing where there is none."""
        return re.compile("|".join(f"({self._rules[number].regex})" for number in numbers) or "(?!)", re.DOTALL)

    def verdict(self, name: str, path: str) -> bool | None:
        """The verdict of the rule; None where none matches."""
        by_name, by_path = self._name.fullmatch(name), self._path.fullmatch(path)
        last = max(
            -1 if by_name is None else self._names[(by_name.lastindex or 0) - 1],
            -1 if by_path is None else self._paths[(by_path.lastindex or 0) - 1],
        )
        return None if last < 0 else self._rules[last].ignores


class IgnoreLevel(NamedTuple):
    """A file that counts in a folder.

    Attributes:
        before: what stands between it and the project, with a `/` at its end, where it lies above.
        cut: how many characters of a path in the project stand for the folder of the file.
    """

    file: IgnoreFile
    before: str
    cut: int


def is_ignored(levels: Sequence[IgnoreLevel], path: str, *, is_folder: bool) -> bool:
    """Whether git would ignore something for these files; that no folder around it is ignored is known.

    Args:
        levels: the nearest first.
        path: from the folder of the project, a character of Latin-1 for each byte.
    """
    name = path[path.rfind("/") + 1 :]
    for level in levels:
        verdict = level.file.verdict(name, level.before + path[level.cut :], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _line_of(line: str) -> str:
    """The effective part of a line: no comment, and no final blanks without a backslash."""
    if not line or line.startswith("#"):
        return ""
    line = line.removesuffix("\r").partition("\0")[0]
    at, end = 0, None
    while at < len(line):
        if line[at] == " ":
            end = at if end is None else end
        else:
            at += line[at] == "\\"
            end = None
        at += 1
    return line if end is None or at > len(line) else line[:end]


def _rule_of(line: str) -> IgnoreRule | None:
    """The rule of a line, taken apart as git does it; None where git matches nothing with it."""
    pattern = line.removeprefix("!")
    only_folders = pattern.endswith("/")
    pattern = pattern[: len(pattern) - only_folders]
    is_path = "/" in pattern
    try:
        regex = regex_of(pattern.removeprefix("/") if is_path else pattern, is_path=is_path)
    except PatternFaultError:
        return None
    return IgnoreRule(pattern, regex, is_path, only_folders, ignores=not line.startswith("!"))


def _is_ending(pattern: str) -> bool:
    return pattern.startswith("*") and not SPECIAL.search(pattern, 1)


def _any_of(rules: Sequence[IgnoreRule]) -> re.Pattern[str] | None:
    """One expression for all of some rules; None for none."""
    return re.compile("|".join(rule.regex for rule in rules), re.DOTALL) if rules else None
