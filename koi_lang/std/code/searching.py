"""Lines that a regular expression fits, in the files of a project: `grep` of `std/code`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from koi_lang.errors import AgentError, PatternError
from koi_lang.js.bounded_regex import compile_bounded
from koi_lang.js.regex_translation import Translation
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.std.code.access import failure, whole_number
from koi_lang.std.code.project_files import MayRead, View, files_below, read_all
from koi_lang.std.code.time_limits import TimeOverError, tick_for
from koi_lang.std.code.tree_texts import TreeTexts, is_large
from koi_lang.std.ripgrep import Ripgrep
from koi_lang.system.globs import file_matcher
from koi_lang.system.open_folders import OpenFolders

# What is given at most: matches, lines around each, characters of a line, and of all together.
MAX_MATCHES = 1000
MAX_CONTEXT = 20
MAX_LINE_CHARS = 400
MAX_TEXT = 200_000
# From so many files on ripgrep is asked which of them hold what an expression needs, where it is installed.
WORTH_A_HELPER = 500
# How long all of it may take, in seconds of the processor.
MAX_S = 20.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search: its pattern, and its files.

    Attributes:
        pattern: in the syntax of JavaScript; it is looked for in each line by itself.
        path: of a file or a folder.
        glob: what files it is searched for in, such as `*.py`, `src/**/*.ts` or `!*.test.js`.
        context: how many lines before and after each match are given.
    """

    pattern: str
    path: str = "."
    glob: str = ""
    context: int = 0
    ignore_case: bool = True
    max_matches: int = 50


async def grep(root: Path, request: SearchRequest, *, may_read: MayRead = read_all) -> dict[str, Any]:
    """The lines of a project that a regular expression fits, by their files and numbers.

    Args:
        root: the folder of the project.
        may_read: says what rules leave of it.

    Returns:
        `success`, `count` of the `results`, whether they are `truncated`, and for each `file`, `line`, `text` and, with
        context, `before` and `after`; how many files that may hold it were `skipped`, by the reason; or `error`.

    Raises:
        AgentError: what is asked for is no search.
        PatternError: the expression is malformed, or takes too long.
        PermissionDeniedError: it is to be searched for in what is closed.
    """
    pattern = LinePattern(request.pattern, ignore_case=bool(request.ignore_case))
    limits = _ResultLimits(
        context=min(whole_number(request.context, "context"), MAX_CONTEXT),
        most=min(whole_number(request.max_matches, "maxMatches", least=1), MAX_MATCHES),
    )
    fits = file_matcher(request.glob) if request.glob else read_all

    def work(stop: Any) -> dict[str, Any]:
        view = View(root.resolve(), may_read, stop)
        files = _files(view, request.path)
        if files is None:
            return failure(f"there is no file or folder `{request.path}`", "`list_files` tells which there are")
        return _Search(view, pattern, limits).run([path for path in files if fits(path)])

    return await run_in_thread(work)


def _files(view: View, path: str) -> Sequence[str] | None:
    """The files below a path, or the one that it is; None where there is nothing. Raises PermissionDeniedError."""
    found = working_path(view.root, path or ".")
    name = found.relative_to(view.root).as_posix()
    if found.is_dir():
        return files_below(view, "" if name == "." else name)
    view.require_reading(name, path)
    return [name] if found.exists() else None


@dataclass(frozen=True, slots=True)
class _ResultLimits:
    """How much is given: lines around each match, and matches."""

    context: int
    most: int


class _Search:
    def __init__(self, view: View, pattern: LinePattern, limits: _ResultLimits) -> None:
        self._view = view
        self._pattern = pattern
        self._limits = limits
        self._skipped: Counter[str] = Counter()
        self._results: list[dict[str, Any]] = []
        self._left = MAX_TEXT
        self._tick = tick_for(view.stop, MAX_S)

    def run(self, files: Sequence[str]) -> dict[str, Any]:
        """The result of the action for these files."""
        hint = ""
        try:
            is_cut = self._search(self._narrow(files))
        except TimeOverError:
            is_cut, hint = True, f"not all was searched in {MAX_S:.0f} s; name a folder, or give a `glob`"
        result = {"success": True, "count": len(self._results), "truncated": is_cut, "results": self._results}
        if self._skipped:
            result["skipped"] = dict(sorted(self._skipped.items()))
        return result | ({"hint": hint} if hint else {})

    def _narrow(self, files: Sequence[str]) -> Sequence[str]:
        """The files that may match; all of them where no faster filter is available."""
        words = [longest for longest, *_ in self._pattern.words]
        helper = Ripgrep.find(self._view.root) if words and len(files) >= WORTH_A_HELPER else None
        if helper is None:
            return files
        large = {path for path in files if is_large(self._view.root / path)}
        small = [path for path in files if path not in large]
        held = helper.files_with(words, small, ignore_case=self._pattern.ignores_case, stop=self._view.stop)
        return files if held is None else [path for path in files if path in held or path in large]

    def _search(self, files: Sequence[str]) -> bool:
        """Note the matches; returns whether there are more."""
        with OpenFolders(self._view.root) as folders:
            texts = TreeTexts(folders, self._skipped)
            for path in files:
                self._tick()
                text = texts.text(path, self._pattern.may_be_in)
                for match in self._pattern.lines(text, self._tick) if text else ():
                    if len(self._results) == self._limits.most or self._left <= 0:
                        return True
                    self._note(path, text, match)
        return False

    def _note(self, path: str, text: str, match: LineMatch) -> None:
        line = _window(text[match.start : match.end], match.at - match.start)
        result: dict[str, Any] = {"file": path, "line": match.number, "text": line}
        if self._limits.context:
            result["before"] = [*_lines_before(text, match.start, self._limits.context)][::-1]
            result["after"] = [*_lines_after(text, match.end, self._limits.context)]
        self._left -= sum(map(len, (line, *result.get("before", ()), *result.get("after", ()))))
        self._results.append(result)


def _lines_before(text: str, start: int, count: int) -> Iterator[str]:
    """The lines before one that begins at `start`, the nearest first."""
    for _ in range(count):
        if start == 0:
            return
        before = text.rfind("\n", 0, start - 1) + 1
        yield _window(text[before : start - 1], 0)
        start = before


def _lines_after(text: str, end: int, count: int) -> Iterator[str]:
    for _ in range(count):
        start = end + 1
        if start >= len(text):
            return
        found = text.find("\n", start)
        end = len(text) if found < 0 else found
        yield _window(text[start:end], 0)


def _window(line: str, at: int) -> str:
    """A line, or the part of a long one around a place."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(at - MAX_LINE_CHARS // 4, len(line) - MAX_LINE_CHARS))
    end = start + MAX_LINE_CHARS
    return "…" * (start > 0) + line[start:end] + "…" * (end < len(line))


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
        """Whether the bytes of a text may match, without a search; mostly they do not."""
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
        number = 1
        counted = 0
        position = 0
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
            message = f"the regular expression `{self.pattern}` takes too long: {LIMIT_S:.0f} s were not enough"
            raise PatternError(message, help="Write it without repetitions inside repetitions.") from error

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


# Escapes that stand for classes and places; all other letters and digits may begin longer ones.
SHORT_ESCAPES = frozenset("dDwWsSbBnrtfv")
MIN_CHARS = 2


def required_words(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Required ASCII words of each alternative of a pattern, the longest first.

    Nothing is given where an alternative has none, or is not understood here.
    """
    words: list[tuple[str, ...]] = []
    runs = [""]
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        part = _PatternPart(pattern, at)
        if part.end < 0:
            return ()
        if mark == "|":
            words.append(_long_ones(runs))
            runs = [""]
        elif part.literal:
            runs[-1] += part.literal
        else:
            # What may be left out, or be there a number of times, is none of the word; `+` leaves it there once.
            runs[-1] = runs[-1][:-1] if mark in "*?{" else runs[-1]
            runs.append("")
        at = part.end
    words.append(_long_ones(runs))
    return tuple(dict.fromkeys(words)) if all(words) else ()


def _long_ones(runs: list[str]) -> tuple[str, ...]:
    words = {run: None for run in runs if run.isascii() and len(run) >= MIN_CHARS}
    return tuple(sorted(words, key=len, reverse=True))


class _PatternPart:
    """One part of a pattern.

    Attributes:
        end: where it ends; -1 for what is not understood.
        literal: the character that it stands for; empty for everything else.
    """

    def __init__(self, pattern: str, at: int) -> None:
        mark, following = pattern[at], pattern[at + 1 : at + 2]
        self.literal = ""
        if mark == "\\":
            is_known = following in SHORT_ESCAPES or (following != "" and not following.isalnum())
            self.end = at + 2 if is_known else -1
            self.literal = "" if following.isalnum() else following
        elif mark == "[":
            self.end = _set_end(pattern, at)
        elif mark == "(":
            self.end = _group_end(pattern, at)
        elif mark == "{":
            self.end = max(pattern.find("}", at), at) + 1
        else:
            self.end = at + 1
            self.literal = "" if mark in "|.^$*+?" else mark


def _set_end(pattern: str, at: int) -> int:
    """Where a set ends that begins at a place; -1 where it does not."""
    at += 1
    while at < len(pattern):
        if pattern[at] == "]":
            return at + 1
        at += 2 if pattern[at] == "\\" else 1
    return -1


def _group_end(pattern: str, at: int) -> int:
    """Where a group ends that begins at a place, with all that is in it; -1 where it does not."""
    depth = 0
    while 0 <= at < len(pattern):
        mark = pattern[at]
        depth += (mark == "(") - (mark == ")")
        if depth == 0:
            return at + 1
        at = _set_end(pattern, at) if mark == "[" else at + (2 if mark == "\\" else 1)
    return -1
