"""Statements."""

from __future__ import annotations

from typing import Literal as OneOf

from koi_lang.compiler.nodes.base import Expression, Node, Pattern, Statement, node
from koi_lang.compiler.nodes.expressions import Binding, Function, Name, Text, Type


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
    """`playbook part + part budget { … }`: texts, prompts and calls of prompts."""

    parts: tuple[Text | Name | PromptCall, ...]
    budget: Budget | None = None


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
