"""Expressions, with functions, patterns and types."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Literal as OneOf

from koi_lang.compiler.nodes.base import Expression, Node, Pattern, node
from koi_lang.source import Span

if TYPE_CHECKING:
    from koi_lang.compiler.nodes.statements import Block


@node
class Name(Expression):
    """An identifier that stands for a value."""

    name: str


@node
class Literal(Expression):
    """A number, boolean, null or piece of text, as its Python value."""

    value: str | int | float | bool | None


@node
class Text(Expression):
    """A quoted or triple-quoted text; `start` is the offset where `value` begins in the source when it stands there
    unchanged (triple-quoted), else None."""

    value: str
    start: int | None


@node
class Regex(Expression):
    """`/pattern/flags`."""

    pattern: str
    flags: str


@node
class McpAddress(Expression):
    """`mcp://server/tool`."""

    address: str


@node
class Template(Expression):
    """A backtick text: pieces of text and expressions in turn."""

    parts: tuple[str | Expression, ...]


@node
class Spread(Expression):
    """`...value` in a call, an array or an object."""

    value: Expression


@node
class Hole(Expression, Pattern):
    """Nothing before a `,` of a list; only right where the list is a pattern, which leaves out a value there."""


@node
class Array(Expression):
    """`[a, ...b]`."""

    items: tuple[Expression, ...]


@node
class Property(Node):
    """`key: value` in an object; a computed key is an expression. `default` only exists in patterns (`{a = 1}`)."""

    key: str | Expression
    value: Expression
    shorthand: bool = False
    default: Expression | None = None


@node
class Object(Expression):
    """`{ a: 1, ...b }`."""

    properties: tuple[Property | Spread, ...]


@node
class Member(Expression):
    """`object.name`; `chain_start` marks the `?.` where a chain may stop."""

    object: Expression
    name: str
    name_span: Span
    optional: bool = False


@node
class Index(Expression):
    """`object[index]`."""

    object: Expression
    index: Expression
    optional: bool = False


@node
class Call(Expression):
    """`callee(arguments)`."""

    callee: Expression
    arguments: tuple[Expression, ...]
    optional: bool = False


@node
class New(Expression):
    """`new Class(arguments)`."""

    callee: Expression
    arguments: tuple[Expression, ...]


@node
class Prefix(Expression):
    """`!a`, `-a`, `+a`, `typeof a`, `delete a.b`."""

    operator: str
    operand: Expression


@node
class Update(Expression):
    """`++a`, `a++`, `--a`, `a--`."""

    operator: str
    target: Expression
    prefix: bool


@node
class Await(Expression):
    """`await value`."""

    value: Expression


@node
class Send(Expression):
    """`await send base.event("e").role(R).any()(arguments) timeout 5s`; `select` is `any`, `all` or empty."""

    base: Expression
    event: str
    event_span: Span
    role: Name | None
    select: OneOf["any", "all", ""]
    arguments: tuple[Expression, ...]
    timeout_s: float | None


@node
class Operation(Expression):
    """Operands joined by operators of one rank, evaluated from the left (`**`: two operands)."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@node
class Conditional(Expression):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@node
class Assignment(Expression):
    """`target = value`; the operator is the one in front of `=` or empty."""

    target: Expression | Pattern
    operator: str
    value: Expression


@node
class Parenthesized(Expression):
    """`(value)`; kept so that a chain of `?.` ends at the parenthesis."""

    value: Expression


@node
class Type(Node):
    """A type annotation; `text` is its source, `name` its outermost kind.

    Kinds: a type's name, `array` (one argument), `object` (fields), `union` (arguments), `literal` (text).
    """

    name: str
    text: str
    arguments: tuple[Type, ...] = ()
    fields: tuple[TypeField, ...] = ()


@node
class TypeField(Node):
    """`name?: type` in an object type."""

    name: str
    type: Type
    optional: bool


@node
class Binding(Pattern):
    """A name that receives a value."""

    name: str


@node
class Element(Node):
    """A part of an array or object pattern; `key` only in objects, `rest` takes what is left."""

    pattern: Pattern | Expression
    key: str | None = None
    default: Expression | None = None
    rest: bool = False


@node
class ArrayPattern(Pattern):
    """`[a, , b = 1, ...rest]`; the pattern of an element may be a hole."""

    elements: tuple[Element, ...]


@node
class ObjectPattern(Pattern):
    """`{ a, b: c = 1, ...rest }`."""

    elements: tuple[Element, ...]


@node
class Parameter(Node):
    """One parameter of a handler or function."""

    pattern: Pattern
    type: Type | None = None
    default: Expression | None = None
    rest: bool = False
    optional: bool = False


@node
class Function(Expression):
    """A function or arrow function; an arrow's body may be a single expression."""

    name: str | None
    parameters: tuple[Parameter, ...]
    body: Block | Expression
    is_async: bool
    returns: Type | None = None
    exported: bool = False
