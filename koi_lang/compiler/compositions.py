"""The template of a `compose` prompt to a tree of its directives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.parser import parse_expression
from koi_lang.compiler.templates import STATE, STATE_WORD, Hole, parts
from koi_lang.compiler.walk import everything
from koi_lang.source import Source, Span

LET = re.compile(r"@let\s+([A-Za-z_]\w*)\s*=\s*(.+)")
IF = re.compile(r"@if\s*\((.*)\)\s*\{")
ELSE_IF = re.compile(r"(?:\}\s*)?@else\s+if\s*\((.*)\)\s*\{")
ELSE = re.compile(r"(?:\}\s*)?@else\s*\{")
NO_EXPRESSION = "write a value, such as `args.formal`, or a comparison."
FRAGMENT = re.compile(r"`([A-Za-z_]\w*)`")


class TemplateError(Exception):
    """A directive cannot be read; `span` is its line."""

    def __init__(self, span: Span, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.span, self.message, self.help = span, message, help


@dataclass(frozen=True, slots=True)
class Fragment:
    """`` `name` ``: the text of another prompt."""

    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text with its holes and fragments."""

    span: Span
    pieces: tuple[str | Hole | Fragment, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """`@let name = value`."""

    span: Span
    name: str
    value: n.Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """`@if`, its `@else if`s, and what `@else` holds."""

    span: Span
    branches: tuple[tuple[n.Expression, tuple[Directive, ...]], ...]
    otherwise: tuple[Directive, ...]


Directive = Line | Let | Choice


def directives(text: n.Text, fragments: frozenset[str]) -> tuple[Directive, ...]:
    """Read a template line by line. Raises TemplateError."""
    reader = _Reader(text, fragments)
    result = reader.body()
    if reader.lines:
        help = "begin with `@if (condition) {` on a line before it."
        raise TemplateError(reader.lines[0][0], "this `@else` has no `@if` before it", help)
    return result


def acts(items: Iterable[Directive]) -> bool:
    """Whether a template carries out actions."""
    nodes = (node for expression in _expressions(items) for node in everything(expression))
    return any(isinstance(node, n.Name) and node.name == "callAction" for node in nodes)


def _expressions(items: Iterable[Directive]) -> Iterator[n.Expression]:
    for item in items:
        match item:
            case Line():
                yield from (piece.expression for piece in item.pieces if isinstance(piece, Hole))
            case Let():
                yield item.value
            case Choice():
                for condition, body in (*item.branches, (None, item.otherwise)):
                    yield from () if condition is None else (condition,)
                    yield from _expressions(body)


class _Reader:
    def __init__(self, text: n.Text, fragments: frozenset[str]) -> None:
        self.fragments = fragments
        self.lines = list(_lines(text))

    def body(self, opener: Span | None = None) -> tuple[Directive, ...]:
        """Directives up to a line that closes an `@if`, which is left."""
        result: list[Directive] = []
        while self.lines:
            span, line = self.lines[0]
            stripped = line.strip()
            if ELSE_IF.fullmatch(stripped) or ELSE.fullmatch(stripped) or (stripped == "}" and opener is not None):
                return tuple(result)
            self.lines.pop(0)
            result.append(self.directive(span, line, stripped))
        if opener is not None:
            raise TemplateError(opener, "this `@if` is never closed", "close it with `}` on a line of its own.")
        return tuple(result)

    def directive(self, span: Span, line: str, stripped: str) -> Directive:
        if match := LET.fullmatch(stripped):
            return Let(span, match[1], _expression(match[2], span))
        if match := IF.fullmatch(stripped):
            return self.choice(span, match[1])
        if stripped.startswith(("@if", "@let")):
            form = "@if (condition) {" if stripped.startswith("@if") else "@let name = value"
            raise TemplateError(span, f"`{stripped.split()[0]}` is not complete", f"write `{form}` on one line.")
        return Line(span, tuple(_pieces(line, span, self.fragments)))

    def choice(self, span: Span, condition: str) -> Choice:
        branches = [(_expression(condition, span), self.body(span))]
        otherwise: tuple[Directive, ...] = ()
        while (following := self.following()) is not None:
            here, line = following
            if match := ELSE_IF.fullmatch(line):
                branches.append((_expression(match[1], here), self.body(here)))
                continue
            otherwise = self.body(here)
            self.close()
            break
        return Choice(span, tuple(branches), otherwise)

    def following(self) -> tuple[Span, str] | None:
        """The `@else` line behind a branch, with the brace before it taken away; None when the choice ends."""
        span, line = self.lines.pop(0)
        if line.strip() != "}":
            return span, line.strip()
        if self.lines and (ELSE.fullmatch(self.lines[0][1].strip()) or ELSE_IF.fullmatch(self.lines[0][1].strip())):
            span, line = self.lines.pop(0)
            return span, line.strip()
        return None

    def close(self) -> None:
        """Take the brace that ends an `@else`."""
        self.lines.pop(0)


def _lines(text: n.Text) -> Iterator[tuple[Span, str]]:
    at = 0
    for line in text.value.split("\n"):
        span = text.span if text.start is None else Span(text.start + at, text.start + at + len(line))
        yield span, line
        at += len(line) + 1


def _expression(text: str, span: Span) -> n.Expression:
    prepared = STATE_WORD.sub(STATE, text)
    expression, problem = parse_expression(Source("", prepared), Span(0, len(prepared)))
    if expression is None:
        raise TemplateError(span, f"`{text.strip()}` is no expression", (problem and problem.help) or NO_EXPRESSION)
    return expression


def _pieces(line: str, span: Span, fragments: frozenset[str]) -> Iterator[str | Hole | Fragment]:
    done = 0
    for match in FRAGMENT.finditer(line):
        if match[1] in fragments:
            yield from parts(n.Text(span, line[done : match.start()], None))
            yield Fragment(match[1], match[0])
            done = match.end()
    yield from parts(n.Text(span, line[done:], None))
