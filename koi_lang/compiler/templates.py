"""Texts with `{{…}}` and `${…}` to pieces of text and expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.parser import parse_expression
from koi_lang.compiler.scope import resolve
from koi_lang.compiler.walk import everything
from koi_lang.source import Source, Span
from koi_lang.system.interpolation import CLOSED

HOLE = re.compile(rf"\{{\{{(?P<braces>{CLOSED})\}}\}}|\$\{{(?P<dollar>{CLOSED})\}}")
PATH = re.compile(r"[A-Za-z_]\w*(?:\??\.[A-Za-z_$][\w$]*|\[\d+\])*")
LINK = re.compile(r"\.([A-Za-z_$][\w$]*)|\[(\d+)\]")
# Names that the holes of playbooks and prompts may use wherever they stand.
PURE = frozenset({"JSON", "Math", "Date", "String", "Number", "Boolean", "Object", "Array", "undefined", "NaN"})

COMPUTED = "compute it in code, and pass it on in the payload."
# Methods that change a value, with an expression for the changed one. No expression of a text or an action calls them.
CHANGING: Mapping[str, str] = {
    "push": "[...list, x]", "unshift": "[x, ...list]", "pop": "list.at(-1)", "shift": "list[0]",
    "splice": "list.slice(…)", "fill": "list.map(() => x)",
    "copyWithin": "list.slice(…)", "assign": "({ ...a, ...b })", "defineProperty": "({ ...a, key: x })",
    "defineProperties": "({ ...a, ...b })",
    "set": "", "add": "", "delete": "", "clear": "", "append": "",
}  # fmt: skip
# Methods that are called there as others, which make a copy.
COPYING = {"sort": "toSorted", "reverse": "toReversed"}
SETTER = re.compile(r"set[A-Z]\w*")  # those of dates


class Obstacle(NamedTuple):
    """A part that an expression of a text cannot have, and the advice to give."""

    what: str
    help: str = COMPUTED


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place in a text that an expression fills.

    Attributes:
        source: the hole as written, braces included; it stays when the expression cannot be used.
        expression: its meaning; offsets in it are meaningless.
        span: where it stands in the program (for quoted texts with escapes: the whole text).
        braces: whether it is written `{{…}}`.
    """

    source: str
    expression: n.Expression
    span: Span
    braces: bool

    def roots(self) -> Iterator[n.Name]:
        """The names that the expression starts from."""
        return free_names(self.expression)

    @property
    def obstacle(self) -> Obstacle | None:
        """What stands in the expression that has no place in a text; None where all can be computed at once."""
        return next((found for found in map(_obstacle, everything(self.expression)) if found is not None), None)


def free_names(expression: n.Expression) -> Iterator[n.Name]:
    """The names of an expression without those that functions in it declare themselves."""
    if any(isinstance(node, n.Function) for node in everything(expression)):
        return iter(resolve(expression, frozenset()).unknown)
    return (node for node in everything(expression) if isinstance(node, n.Name))


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """What a name of a handler's parameter stands for: a path from the payload, and a default for what is missing."""

    path: tuple[str | int, ...] = ()
    default: n.Literal | n.Text | None = None


def payload_parts(parameters: tuple[n.Parameter, ...]) -> dict[str, PayloadPart]:
    """The names that a handler gives to its payload or, by taking it apart, to pieces of it."""
    return dict(_parts_of(parameters[0].pattern, PayloadPart())) if parameters else {}


def _parts_of(pattern: n.Node, part: PayloadPart) -> Iterator[tuple[str, PayloadPart]]:
    match pattern:
        case n.Binding(name=name):
            yield name, part
        case n.ArrayPattern(elements=elements) | n.ObjectPattern(elements=elements) if part.default is None:
            for index, element in enumerate(elements):
                is_plain = element.default is None or isinstance(element.default, (n.Literal, n.Text))
                if is_plain and not element.rest and not isinstance(element.key, n.Node):
                    key = index if element.key is None else element.key
                    yield from _parts_of(element.pattern, PayloadPart((*part.path, key), element.default))  # type: ignore[arg-type]


def _obstacle(node: n.Node) -> Obstacle | None:
    match node:
        case n.Await() | n.Send():
            return Obstacle("`await`")
        case n.Property(value=n.Function()) | n.Function(is_async=True) | n.Function(body=n.Block()):
            return Obstacle("a function in braces")
        case n.Function(parameters=parameters) if not all(parameter.is_plain for parameter in parameters):
            return Obstacle("a function in braces")
    return changes(node)


def changes(node: n.Node) -> Obstacle | None:
    """A part of an expression that changes a value, such as an assignment or a call of `push`; None for others."""
    match node:
        case n.Assignment() | n.Update() | n.Prefix(operator="delete"):
            return Obstacle("an assignment")
        case n.Call(callee=n.Member(object=n.Name(name="registry"))):
            return None
        case n.Call(callee=n.Member(name=name) | n.Index(index=n.Text(value=name))):
            written = f"list.{COPYING[name]}()" if name in COPYING and node.optional else CHANGING.get(name)
            if written is not None or SETTER.fullmatch(name):
                return Obstacle(f"`{name}`, which changes a value,", f"write `{written}`." if written else COMPUTED)
    return None


def parts(text: n.Text) -> tuple[str | Placeholder, ...]:
    """Split a text. What has the form of a hole but is no expression stays text."""
    result: list[str | Placeholder] = []
    done = 0
    for match in HOLE.finditer(text.value):
        expression = _expression((match["braces"] or match["dollar"] or "").strip())
        if expression is None:
            continue
        span = text.span if text.start is None else Span(text.start + match.start(), text.start + match.end())
        result += [
            text.value[done : match.start()],
            Placeholder(match[0], expression, span, match["braces"] is not None),
        ]
        done = match.end()
    result.append(text.value[done:])
    return tuple(part for part in result if part != "")


def _expression(text: str) -> n.Expression | None:
    if PATH.fullmatch(text) and text not in ("null", "true", "false"):
        return _path(text)
    if not text:
        return None
    expression, _ = parse_expression(Source("", text), Span(0, len(text)))
    return expression


def _path(text: str) -> n.Expression:
    """A dotted path without the parser: nearly all holes are one."""
    nowhere = Span(0, 0)
    root = re.match(r"\w+", text)
    assert root is not None
    result: n.Expression = n.Name(nowhere, root[0])
    for name, index in LINK.findall(text, root.end()):
        if name:
            result = n.Member(nowhere, result, name, nowhere)
        else:
            result = n.Index(nowhere, result, n.Literal(nowhere, int(index)))
    return result
