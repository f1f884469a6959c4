"""The syntax tree of Koi: one frozen class a construct, named like its grammar rule.

Nodes compare and hash by identity, so that tables may be keyed by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from koi_lang.source import Span

node = dataclass(frozen=True, slots=True, eq=False)


@node
class Node:
    """A piece of the program; `span` covers it from its first to its last character."""

    span: Span


class Expression(Node):
    """Something with a value."""

    __slots__ = ()


class Statement(Node):
    """One step of a handler or function."""

    __slots__ = ()


class Declaration(Node):
    """Something the program declares."""

    __slots__ = ()


class Pattern(Node):
    """The left side of a binding."""

    __slots__ = ()


# ---------------------------------------------------------------- expressions


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


# ---------------------------------------------------------------- types


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


# ---------------------------------------------------------------- patterns and functions


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
    """`[a, b = 1, ...rest]`; None is a hole."""

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
    is_arrow: bool
    returns: Type | None = None
    exported: bool = False


# ---------------------------------------------------------------- statements


@node
class Block(Statement):
    """Statements in braces, a scope of its own."""

    statements: tuple[Statement, ...]


@node
class ExpressionStatement(Statement):
    """An expression evaluated for its effect."""

    expression: Expression


@node
class FunctionStatement(Statement):
    """A named function declared among statements."""

    function: Function


@node
class Declarator(Node):
    """One name or pattern of a variable statement."""

    pattern: Pattern
    type: Type | None
    value: Expression | None


@node
class Variable(Statement):
    """`const`, `let` or `var` with its declarators."""

    kind: OneOf["const", "let", "var"]
    declarators: tuple[Declarator, ...]


@node
class If(Statement):
    """`if` with all its `else if` branches in order, and the last `else`."""

    branches: tuple[tuple[Expression, Block], ...]
    otherwise: Block | None


@node
class ForEach(Statement):
    """`for (const x of values)`, or `in` for keys."""

    kind: OneOf["const", "let", "var"]
    pattern: Pattern
    over: OneOf["of", "in"]
    iterable: Expression
    body: Block


@node
class For(Statement):
    """`for (first; condition; update)`."""

    first: Variable | ExpressionStatement | None
    condition: Expression | None
    update: Expression | None
    body: Block


@node
class While(Statement):
    """`while condition { … }`."""

    condition: Expression
    body: Block


@node
class Return(Statement):
    """`return value`."""

    value: Expression | None


@node
class Throw(Statement):
    """`throw value`."""

    value: Expression


@node
class Break(Statement):
    """`break`."""


@node
class Continue(Statement):
    """`continue`."""


@node
class Try(Statement):
    """`try` with a `catch`, a `finally` or both."""

    body: Block
    error: Binding | None
    handler: Block | None
    finalizer: Block | None


@node
class PromptCall(Node):
    """A prompt with arguments in a playbook: `Greeting(args.name, "x")`."""

    name: Name
    arguments: tuple[Expression, ...]


@node
class Playbook(Statement):
    """`playbook part + part`: texts, prompts and calls of prompts."""

    parts: tuple[Text | Name | PromptCall, ...]


@node
class UsePlaybook(Statement):
    """`use playbook X`; has no effect."""

    name: str


@node
class Affordance(Statement):
    """A description for other agents' prompts."""

    text: Text


# ---------------------------------------------------------------- declarations


@node
class Import(Declaration):
    """`import name: type from "path"`."""

    name: Name | None
    type: str | None
    path: Text


@node
class Package(Declaration):
    """`package "name"`, a spelling of Koi 1.0 without meaning."""

    name: Text


@node
class Role(Declaration):
    """`role Name { can a, can b }`."""

    name: Name
    capabilities: tuple[Name, ...]


@node
class TeamMember(Node):
    """`key: Agent` or `key: mcp://server/tool`."""

    key: Name
    value: Name | Text | McpAddress


@node
class Team(Declaration):
    """`team Name { key: Agent }`."""

    name: Name
    members: tuple[TeamMember, ...]


@node
class Mcp(Declaration):
    """`mcp name = { … }`."""

    name: Name
    options: Object


@node
class PromptParameter(Node):
    """`name: type` of a prompt."""

    name: Name
    type: str


@node
class Compose(Node):
    """`compose { fragments: { … } template: "…" }`; fragments map a name in the template to a prompt."""

    names: tuple[Name, ...]
    fragments: tuple[tuple[Name, Name], ...]
    template: Text | None
    model: Text | None


@node
class Prompt(Declaration):
    """`prompt Name(parameters) = text + Other` or `= compose { … }`."""

    name: Name
    parameters: tuple[PromptParameter, ...] | None
    value: tuple[Text | Name, ...] | Compose
    exported: bool


@node
class Run(Declaration):
    """`run Agent.handler(argument)`."""

    agent: Name
    handler: Name
    arguments: tuple[Expression, ...]


# ---------------------------------------------------------------- parts of agents and skills


@node
class Uses(Node):
    """`uses skill A, B`; `kind` is `skill`, `team` or `mcp`."""

    kind: str
    names: tuple[Name, ...]


@node
class ExposeMcp(Node):
    """`expose mcp`."""


@node
class Llm(Node):
    """`llm default = { … }`."""

    name: str
    options: Object


@node
class Amnesia(Node):
    """`amnesia = true`."""

    value: bool


@node
class Handler(Node):
    """`private on name(parameters) async { … }`."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: Block
    private: bool
    is_async: bool


@node
class Field(Node):
    """A field of an agent's state."""

    name: Name
    type: Type | None
    value: Expression | None


@node
class State(Node):
    """`state { field: type = value }`."""

    fields: tuple[Field, ...]


@node
class NamedPlaybook(Node):
    """`playbook "name" text` in an agent: a description of the handler of that name."""

    name: Text
    text: Text


@node
class Resilience(Node):
    """`resilience "handler" { retry_max_attempts = 3 }`."""

    name: Text
    properties: tuple[tuple[Name, Expression], ...]


AgentItem = (
    Uses | ExposeMcp | Affordance | Llm | Amnesia | Handler | State | NamedPlaybook | Resilience | Function
)


@node
class Agent(Declaration):
    """`agent Name : Role { … }`."""

    name: Name
    role: Name
    items: tuple[AgentItem, ...]


SkillItem = Affordance | Agent | Team | Variable | Function


@node
class Skill(Declaration):
    """`skill Name { … }`."""

    name: Name
    items: tuple[SkillItem, ...]


@node
class Program(Node):
    """One file: its declarations in order."""

    declarations: tuple[Declaration, ...]
