"""`.gitignore` files to what git would ignore for them: rules, and the chain of those that count in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from koi_lang.std.tree.wildmatch import SPECIAL, PatternFaultError, regex_of

NAME = ".gitignore"


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """A line of a file.

    Attributes:
        regex: of whole names, or of whole paths below the folder of the file.
        is_path: which of both.
        only_folders: whether it is about folders alone.
        ignores: whether what it matches is ignored; else it is not, whatever lines before it say.
    """

    regex: re.Pattern[str]
    is_path: bool
    only_folders: bool
    ignores: bool


class IgnoreFile:
    """The rules of one file; most names are seen at once to be none of its business.

    Args:
        text: its content, a character of Latin-1 for each byte.
    """

    def __init__(self, text: str) -> None:
        lines = [each for each in map(_line_of, text.removeprefix("\xef\xbb\xbf").split("\n")) if each]
        self._rules = [rule for rule in map(_rule_of, lines) if rule is not None]
        patterns = [_Pattern.of(line) for line in lines]
        names = [each.text for each in patterns if not each.is_path]
        self._names = frozenset(name for name in names if not SPECIAL.search(name))
        self._endings = tuple(name[1:] for name in names if name[:1] == "*" and not SPECIAL.search(name, 1))
        others = [name for name in names if SPECIAL.search(name) and (name[:1] != "*" or SPECIAL.search(name, 1))]
        self._others = _any_of(others, is_path=False)
        self._paths = _any_of([each.text for each in patterns if each.is_path], is_path=True)

    def verdict(self, name: str, path: str, *, is_folder: bool) -> bool | None:
        """Whether something is ignored; None where no rule is about it.

        Args:
            path: from the folder of the file, without a `/` at its end.
        """
        if not self._may_match(name, path):
            return None
        for rule in reversed(self._rules):
            if (is_folder or not rule.only_folders) and rule.regex.fullmatch(path if rule.is_path else name):
                return rule.ignores
        return None

    def _may_match(self, name: str, path: str) -> bool:
        if name in self._names or (self._endings and name.endswith(self._endings)):
            return True
        if self._others is not None and self._others.fullmatch(name):
            return True
        return self._paths is not None and self._paths.fullmatch(path) is not None


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


def as_bytes_text(text: str) -> str:
    """A path with a character of Latin-1 for each of its bytes."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A line taken apart, as git does it."""

    text: str
    is_path: bool
    only_folders: bool
    ignores: bool

    @staticmethod
    def of(line: str) -> _Pattern:
        ignores = not line.startswith("!")
        text = line if ignores else line[1:]
        only_folders = text.endswith("/")
        text = text[: len(text) - only_folders]
        return _Pattern(text, "/" in text, only_folders, ignores)


def _line_of(line: str) -> str:
    """What counts of a line: nothing of a comment, no blanks at its end unless a backslash stands before them."""
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
    """The rule of a line; None where git matches nothing with it."""
    pattern = _Pattern.of(line)
    try:
        regex = _regex_of(pattern.text, is_path=pattern.is_path)
    except PatternFaultError:
        return None
    return IgnoreRule(re.compile(regex, re.DOTALL), pattern.is_path, pattern.only_folders, pattern.ignores)


def _regex_of(text: str, *, is_path: bool) -> str:
    return regex_of(text.removeprefix("/") if is_path else text, is_path=is_path)


def _any_of(patterns: Iterable[str], *, is_path: bool) -> re.Pattern[str] | None:
    """One expression for all of some patterns; None for none."""
    found = []
    for text in patterns:
        try:
            found.append(_regex_of(text, is_path=is_path))
        except PatternFaultError:
            continue
    return re.compile("|".join(found), re.DOTALL) if found else None
