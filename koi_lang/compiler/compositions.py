"""The template of a `compose` prompt to a tree of its directives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.parser import parse_expression
from koi_lang.compiler.templates import Placeholder, changes, free_names, parts
from koi_lang.compiler.walk import everything
from koi_lang.source import Source, Span

LET = re.compile(r"@let\s+([A-Za-z_]\w*)\s*=\s*(.+)")
IF = re.compile(r"@if\s*\((.*)\)\s*\{")
ELSE_IF = re.compile(r"(?:\}\s*)?@else\s+if\s*\((.*)\)\s*\{")
ELSE = re.compile(r"(?:\}\s*)?@else\s*\{")
NO_EXPRESSION = "write a value, such as `args.formal`, or a comparison."
# What a template that uses it waits for.
ACTING = ("callAction", "registry", "fetch")
FRAGMENT = re.compile(r"`([A-Za-z_]\w*)`")


class TemplateError(Exception):
    """A directive cannot be read; `span` is its line."""

    def __init__(self, span: Span, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.help = help


@dataclass(frozen=True, slots=True)
class Fragment:
    """`` `name` ``: the text of another prompt."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class TemplateLine:
    """A line of text with its holes and fragments."""

    span: Span
    pieces: tuple[str | Placeholder | Fragment, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """`@let name = value`; offsets in the value are those of the template's text."""

    span: Span
    name: str
    value: n.Expression


@dataclass(frozen=True, slots=True)
class TemplateConditional:
    """`@if`, its `@else if`s, and what `@else` holds; offsets in conditions are those of the template's text."""

    span: Span
    branches: tuple[tuple[n.Expression, tuple[Directive, ...]], ...]
    otherwise: tuple[Directive, ...]


Directive = TemplateLine | Let | TemplateConditional


def directives(text: n.Text, fragments: frozenset[str]) -> tuple[Directive, ...]:
    """Read a template line by line. Raises TemplateError."""
    reader = _TemplateReader(text, fragments)
    result = reader.body()
    if reader.lines:
        help = "begin with `@if (condition) {` on a line before it."
        raise TemplateError(reader.lines[0][0], "this `@else` has no `@if` before it", help)
    return result


def acts(items: Iterable[Directive]) -> bool:
    """Whether a template carries out actions, or asks the registry or the network."""
    names = (name for expression in _expressions(items) for name in free_names(expression))
    return any(name.name in ACTING for name in names)


def in_order(items: Iterable[Directive]) -> Iterator[tuple[str | None, n.Expression]]:
    """The values of `@let`, with the names that they declare, and the conditions, in the order of the text."""
    for item in items:
        match item:
            case Let():
                yield item.name, item.value
            case TemplateConditional():
                for condition, body in item.branches:
                    yield None, condition
                    yield from in_order(body)
                yield from in_order(item.otherwise)


def variables(items: Iterable[Directive]) -> Iterator[str]:
    """The names that a template declares with `@let`."""
    return (name for name, _ in in_order(items) if name is not None)


def _expressions(items: Iterable[Directive]) -> Iterator[n.Expression]:
    for item in items:
        match item:
            case TemplateLine():
                yield from (piece.expression for piece in item.pieces if isinstance(piece, Placeholder))
            case Let():
                yield item.value
            case TemplateConditional():
                for condition, body in (*item.branches, (None, item.otherwise)):
                    yield from () if condition is None else (condition,)
                    yield from _expressions(body)


class _Row(NamedTuple):
    """A line of a template: its place in the source, its offset in the text, and what it says without its indent."""

    span: Span
    start: int
    text: str
    indented: str


class _TemplateReader:
    def __init__(self, text: n.Text, fragments: frozenset[str]) -> None:
        self.fragments = fragments
        self.lines = list(_rows(text))
        self.code = Source("", text.value)

    def body(self, opener: Span | None = None) -> tuple[Directive, ...]:
        """Directives up to a line that closes an `@if`, which is left."""
        result: list[Directive] = []
        while self.lines:
            text = self.lines[0].text
            if ELSE_IF.fullmatch(text) or ELSE.fullmatch(text) or (text == "}" and opener is not None):
                return tuple(result)
            result.append(self.directive(self.lines.pop(0)))
        if opener is not None:
            raise TemplateError(opener, "this `@if` is never closed", "close it with `}` on a line of its own.")
        return tuple(result)

    def directive(self, row: _Row) -> Directive:
        if match := LET.fullmatch(row.text):
            return Let(row.span, match[1], self.expression(row, *match.span(2)))
        if match := IF.fullmatch(row.text):
            return self.choice(row, match)
        if row.text.startswith(("@if", "@let")):
            form = "@if (condition) {" if row.text.startswith("@if") else "@let name = value"
            raise TemplateError(row.span, f"`{row.text.split()[0]}` is not complete", f"write `{form}` on one line.")
        return TemplateLine(row.span, tuple(_pieces(row.indented, row.span, self.fragments)))

    def expression(self, row: _Row, start: int, end: int) -> n.Expression:
        """What stands between two offsets of a line, with offsets of the template's text."""
        found, problem = parse_expression(self.code, Span(row.start + start, row.start + end))
        if found is None:
            text = row.text[start:end].strip()
            raise TemplateError(row.span, f"`{text}` is no expression", (problem and problem.help) or NO_EXPRESSION)
        obstacle = next((each for each in map(changes, everything(found)) if each is not None), None)
        if obstacle is not None:
            raise TemplateError(row.span, f"{obstacle.what} has no place in a directive", obstacle.help)
        return found

    def choice(self, row: _Row, condition: re.Match[str]) -> TemplateConditional:
        branches = [(self.expression(row, *condition.span(1)), self.body(row.span))]
        otherwise: tuple[Directive, ...] = ()
        while (following := self.following()) is not None:
            if match := ELSE_IF.fullmatch(following.text):
                branches.append((self.expression(following, *match.span(1)), self.body(following.span)))
                continue
            otherwise = self.body(following.span)
            self.close()
            break
        return TemplateConditional(row.span, tuple(branches), otherwise)

    def following(self) -> _Row | None:
        """The `@else` line behind a branch, also one behind the brace; None when the choice ends."""
        row = self.lines.pop(0)
        if row.text != "}":
            return row
        if self.lines and (ELSE.fullmatch(self.lines[0].text) or ELSE_IF.fullmatch(self.lines[0].text)):
            return self.lines.pop(0)
        return None

    def close(self) -> None:
        """Take the brace that ends an `@else`."""
        self.lines.pop(0)


def _rows(text: n.Text) -> Iterator[_Row]:
    at = 0
    for line in text.value.split("\n"):
        span = text.span if text.start is None else Span(text.start + at, text.start + at + len(line))
        yield _Row(span, at + len(line) - len(line.lstrip()), line.strip(), line)
        at += len(line) + 1


def _pieces(line: str, span: Span, fragments: frozenset[str]) -> Iterator[str | Placeholder | Fragment]:
    done = 0
    for match in FRAGMENT.finditer(line):
        if match[1] in fragments:
            yield from parts(n.Text(span, line[done : match.start()], None))
            yield Fragment(match[1], match[0])
            done = match.end()
    yield from parts(n.Text(span, line[done:], None))
