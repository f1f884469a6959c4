"""What is executed: expressions with functions, patterns and types, and statements."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import overload

from koi_lang.compiler.nodes.base import Expression, Node, Pattern, Statement, node
from koi_lang.source import Span

# The name of `this` in functions where it stands for an object, and not for the agent.
OBJECT_THIS = "this of object"
# The name of a `yield` that stands alone.
BARE_YIELD = "yield of nothing"


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
    """A quoted or triple-quoted text.

    Attributes:
        value: the text.
        start: the offset where `value` begins in the source, if it stands there unchanged (triple-quoted); else None.
    """

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
class A2aAddress(Node):
    """`a2a://host/agent`."""

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
    """`key: value` in an object; a computed key is an expression. `default` only exists in patterns (`{a = 1}`).

    The value of an `accessor` is the function that reads or writes it.
    """

    key: str | Expression
    value: Expression
    shorthand: bool = False
    default: Expression | None = None
    accessor: OneOf["get", "set", ""] = ""


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
class Yield(Expression):
    """`yield value`; without a value alone. `delegates`: `yield* values`."""

    value: Expression | None
    delegates: bool = False


@node
class Send(Expression):
    """`await send base.event("e").role(R).as(B).any()(arguments) timeout 5s`; `select` is `any`, `all` or empty.

    Attributes:
        bounds: the roles that it is narrowed to.
    """

    base: Expression
    event: str
    event_span: Span
    role: Name | None
    select: OneOf["any", "all", ""]
    arguments: tuple[Expression, ...]
    timeout_s: float | None
    bounds: tuple[Name, ...] = ()

    @property
    def roles(self) -> tuple[Name, ...]:
        """The names of roles in it."""
        return self.bounds if self.role is None else (self.role, *self.bounds)


@node
class Start(Expression):
    """`start base.event("e").any()(arguments)`: a send that goes on beside the code that starts it."""

    sent: Send


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


@overload
def strip_parentheses(expression: Expression) -> Expression: ...


@overload
def strip_parentheses(expression: Expression | None) -> Expression | None: ...


def strip_parentheses(expression: Expression | None) -> Expression | None:
    """What stands in parentheses, however many; other expressions as they are."""
    while isinstance(expression, Parenthesized):
        expression = expression.value
    return expression


@node
class Bounds(Node):
    """`in low..high` or `matching /pattern/` behind a type: of a number, of the length of a text or list, of a text.

    Attributes:
        text: its source.
        low: None where the range is open there.
        high: None where the range is open there.
    """

    text: str
    low: int | float | None = None
    high: int | float | None = None
    pattern: Regex | None = None


@node
class Type(Node):
    """A type annotation; `text` is its source, `name` its outermost kind.

    Kinds: a type's name, `array` (one argument), `object` (fields), `union` (arguments), `literal` (text). An object
    that declares `[key: string]: …` beside its fields is open.
    """

    name: str
    text: str
    arguments: tuple[Type, ...] = ()
    fields: tuple[TypeField, ...] = ()
    is_open: bool = False
    bounds: tuple[Bounds, ...] = ()

    @property
    def one_line(self) -> str:
        """Its source with one space for each run of white space."""
        return " ".join(self.text.split())


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
    """A part of an array or object pattern; `key` only in objects, perhaps computed, `rest` takes what is left."""

    pattern: Pattern | Expression
    key: str | Expression | None = None
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

    @property
    def is_plain(self) -> bool:
        """Whether it is a name alone: no pattern, no default, no rest of the arguments."""
        return isinstance(self.pattern, Binding) and self.default is None and not self.rest


@node
class Function(Expression):
    """A function or arrow function; an arrow's body may be a single expression.

    `takes_this`: it stands in an object, and its `this` is the object that it is called on. `generics`: names of
    types that it declares. `needs`: the permission that an exported function says it needs.
    """

    name: str | None
    parameters: tuple[Parameter, ...]
    body: Block | Expression
    is_async: bool
    returns: Type | None = None
    exported: bool = False
    is_arrow: bool = False
    is_generator: bool = False
    takes_this: bool = False
    generics: tuple[str, ...] = ()
    needs: Name | None = None


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
    """`for (const x of values)`, or `in` for keys; `waits`: `for await`."""

    kind: OneOf["const", "let", "var"]
    pattern: Pattern
    over: OneOf["of", "in"]
    iterable: Expression
    body: Block
    waits: bool = False


@node
class Sequence(Expression):
    """`a, b` in the head of a `for`: one after the other."""

    expressions: tuple[Expression, ...]


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
class DoWhile(Statement):
    """`do { … } while (condition)`."""

    body: Block
    condition: Expression


@node
class Clause(Node):
    """`case test:` of a `switch` with the statements behind it; `default:` has no test."""

    test: Expression | None
    body: Block


@node
class Switch(Statement):
    """`switch (subject) { … }`; all its clauses share one scope."""

    subject: Expression
    clauses: tuple[Clause, ...]


@node
class Labelled(Statement):
    """`label: statement`, which `break` and, if it is a loop, `continue` may name."""

    label: str
    label_span: Span
    body: Statement


@node
class Break(Statement):
    """`break`, or `break label`."""

    label: str | None = None


@node
class Continue(Statement):
    """`continue`, or `continue label`."""

    label: str | None = None


@node
class Try(Statement):
    """`try` with a `catch`, a `finally` or both."""

    body: Block
    error: Pattern | None
    handler: Block | None
    finalizer: Block | None


@node
class Budget(Node):
    """`budget { tokens: 50000, usd: 0.5, time: 2m, turns: 40 }`; durations are in seconds."""

    limits: tuple[tuple[Name, int | float], ...]


@node
class PromptCall(Node):
    """A prompt with arguments in a playbook: `Greeting(args.name, "x")`."""

    name: Name
    arguments: tuple[Expression, ...]


@node
class Playbook(Statement):
    """`playbook part + part budget { … }`: texts, prompts and calls of prompts; `answers` where it is `answer …`."""

    parts: tuple[Text | Name | PromptCall, ...]
    budget: Budget | None = None
    answers: bool = False


@node
class UsePlaybook(Statement):
    """`use playbook X`; has no effect."""

    name: str


@node
class Affordance(Statement):
    """A description for other agents' prompts."""

    text: Text


@node
class Given(Statement):
    """`given model answers [ … ]` or `given person answers [ … ]`, in a test."""

    who: OneOf["model", "person"]
    answers: Expression


@node
class Expect(Statement):
    """`expect condition`, or `expect condition fails "text"`, in a test."""

    condition: Expression
    failure: Text | None


@node
class Score(Statement):
    """`score name = value`, in an eval."""

    name: str
    value: Expression
