"""Messages about a program: what is wrong, where, and what to do; rendered for a terminal or as data."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from typing import Any, Literal, NamedTuple

from koi_lang.errors import EXIT_SOURCE, KoiError
from koi_lang.source import Source, Span

Severity = Literal["error", "warning"]
# How much of a name is left, as `nearest` and `difflib` count it, with one wrong letter in four, and in five.
SLIP_IN_FOUR, SLIP_IN_FIVE = 0.75, 0.8
MAX_COLUMNS = 240
MAX_NAMES = 8
# Comparing two names takes some 20 microseconds: so many at most for one unknown name, from at most so many with one
# pair of characters; of names such as `item1` to `item5000` nearly all share most of their pairs.
MAX_COMPARED = 64
MAX_SHARING_A_PAIR = 400


@dataclass(frozen=True, slots=True)
class LabeledSpan:
    """A span of a source with what there is to say about it."""

    source: Source
    span: Span
    label: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a source with the text that takes its place; an empty span inserts."""

    source: Source
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that mends a problem; `title` begins with a verb, lower case; the edits do not overlap."""

    title: str
    edits: tuple[Edit, ...]


class Advice(NamedTuple):
    """What to do about a problem, in words and as changes."""

    help: str
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem of a program.

    Attributes:
        code: stable name, `E` and four digits (`koi check --explain` knows it); W for what is never an error.
        message: what is wrong, lower case, names in backticks, no full stop.
        place: where; `others` are further places that explain it.
        help: one thing to do, a whole sentence.
        causes: what led to it, one for the other, lower case.
        fixes: what an editor may offer to do, the likeliest first; each of them mends it alone.
    """

    code: str
    severity: Severity
    message: str
    place: LabeledSpan
    others: tuple[LabeledSpan, ...] = ()
    help: str | None = None
    causes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The JSON form: lines and columns count from 1, columns in characters, the end is exclusive."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            **_place_data(self.place),
            "others": [_place_data(place) for place in self.others],
            "causes": list(self.causes),
            "help": self.help,
            "fixes": [
                {
                    "title": fix.title,
                    "edits": [_span_data(edit.source, edit.span) | {"text": edit.text} for edit in fix.edits],
                }
                for fix in self.fixes
            ],
        }


class CompileError(KoiError):
    """A program cannot be compiled; `diagnostics` says why, in the order of the source."""

    exit_code = EXIT_SOURCE

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(render(diagnostic) for diagnostic in diagnostics))
        self.diagnostics = tuple(diagnostics)


def render(diagnostic: Diagnostic, folder: str = "") -> str:
    """The text form: the message, the excerpt with its marks, other places, the help.

    Files in `folder` are named relative to it.
    """
    places = (diagnostic.place, *diagnostic.others)
    numbers = [place.source.position(place.span.start).line for place in places]
    gutter = " " * len(str(max(numbers)))
    lines = [f"{diagnostic.severity}: {_one_line(diagnostic.message)} [{diagnostic.code}]"]
    shown = None
    for place, number in zip(places, numbers, strict=True):
        if place.source.path != shown:
            column = place.source.position(place.span.start).column
            lines += [f"{gutter}--> {_relative(place.source.path, folder)}:{number}:{column}", f"{gutter} |"]
            shown = place.source.path
        lines += _excerpt(place, number, gutter)
    lines += [f"{gutter} = cause: {_one_line(cause)}" for cause in diagnostic.causes]
    if diagnostic.help:
        lines.append(f"{gutter} = help: {_one_line(diagnostic.help)}")
    return "\n".join(lines)


def _relative(path: str, folder: str) -> str:
    return _printable(path.removeprefix(folder.rstrip("/") + "/") if folder else path)


def nearest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """The known name that a person most likely meant; letter case does not count.

    Of many known names only those are compared that share most with it, so that a program full of unknown names is
    told of in time that is proportional to their number.

    Args:
        alike: from 0 to 1, how much the names must have in common.
    """
    from difflib import get_close_matches

    names = tuple(known)
    candidates = {candidate.lower(): candidate for candidate in names}
    compared = candidates if len(names) <= MAX_COMPARED else _likeliest(name.lower(), _by_pairs(names))
    found = get_close_matches(name.lower(), compared, n=1, cutoff=alike)
    return candidates[found[0]] if found else None


def _likeliest(name: str, by_pairs: Mapping[str, Sequence[str]]) -> list[str]:
    """Names that share pairs of characters with another one; the rarer a pair, the more it counts."""
    shared: dict[str, float] = {}
    for pair in _pairs(name):
        sharing = by_pairs.get(pair, ())
        for candidate in sharing[:MAX_SHARING_A_PAIR]:
            shared[candidate] = shared.get(candidate, 0.0) + 1 / len(sharing)
    return nlargest(MAX_COMPARED, shared, key=shared.__getitem__)


@lru_cache(maxsize=8)
def _by_pairs(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Names in lower case by the pairs of characters in them."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(each.lower() for each in names):
        for pair in _pairs(name):
            found.setdefault(pair, []).append(name)
    return found


def _pairs(name: str) -> list[str]:
    """Neighbouring characters, the first and the last with their edge, each pair once."""
    framed = f"^{name}$"
    return list(dict.fromkeys(framed[at : at + 2] for at in range(len(framed) - 1)))


def suggestion(
    name: str, known: Sequence[str], kind: str, there_is: str = "this program declares", *, most: int = MAX_NAMES
) -> str:
    """A help sentence: the nearest name, else at most so many names of that kind; `there_is` begins it."""
    near = nearest(name, known)
    if near is not None:
        return f"did you mean `{near}`?"
    if not known:
        return f"{there_is} no {kind}."
    more = ", …" if len(known) > most else ""
    listed = ", ".join(f"`{candidate}`" for candidate in list(known)[:most]) + more
    return f"{there_is} one {kind}: {listed}." if len(known) == 1 else f"known {kind}s are {listed}."


def replacement(source: Source, span: Span, text: str | None, *more: Span) -> tuple[Fix, ...]:
    """The fix that writes another text in place of spans, such as the name that was meant; none without a text."""
    if text is None:
        return ()
    return (Fix(f"replace with `{text}`", tuple(Edit(source, each, text) for each in (span, *more))),)


def _place_data(place: LabeledSpan) -> dict[str, Any]:
    return _span_data(place.source, place.span) | {"label": place.label}


def _span_data(source: Source, span: Span) -> dict[str, Any]:
    start, end = source.position(span.start), source.position(span.end)
    return {
        "path": source.path,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    }


def _excerpt(place: LabeledSpan, number: int, gutter: str) -> list[str]:
    """The source line of a place and the marks under it; long lines are cut around the place."""
    column = place.source.position(place.span.start).column - 1
    text = _printable(place.source.line(number).replace("\t", " "))
    if len(text) > MAX_COLUMNS:
        cut = max(0, column - MAX_COLUMNS // 3)
        text, column = text[cut : cut + MAX_COLUMNS], column - cut
    length = max(1, min(place.span.end - place.span.start, len(text) - column))
    marks = " " * _width(text[:column]) + "^" * max(1, _width(text[column : column + length]))
    return [f"{number:>{len(gutter)}} | {text}".rstrip(), f"{gutter} | {marks} {place.label}".rstrip()]


def _one_line(text: str) -> str:
    """A text of a program or a server, whose lines are joined: one that stood alone could pretend something."""
    return _printable(" ".join(filter(None, map(str.strip, text.splitlines()))))


def _printable(text: str) -> str:
    """A text without line ends and control characters, which could pretend something to a reader."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _width(text: str) -> int:
    """Columns a terminal gives to a text: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)
