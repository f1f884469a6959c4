"""Rules of statements."""

from __future__ import annotations

from itertools import pairwise

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build.expressions import Expressions
from koi_lang.compiler.build.pieces import (
    BuildError,
    Children,
    between,
    cover,
    name_of,
    only,
    span_of,
)
from koi_lang.compiler.literals import duration_s, number

GIVEN_FORM = "write `given model answers [ … ]` or `given person answers [ … ]`."


class Statements(Expressions):
    """Rules of statements."""

    def block(self, children: Children) -> n.Block:
        return n.Block(between(children[0], children[2]), children[1])

    def statements(self, children: Children) -> tuple[n.Statement, ...]:
        found: tuple[n.Statement, ...] = only(children, n.Statement)
        self.neighbours += [(a.span, b.span) for a, b in pairwise(found) if _is_suspicious(a, b)]
        return found

    def terminated(self, children: Children) -> n.Statement:
        statement: n.Statement = children[0]
        return statement

    def expression_statement(self, children: Children) -> n.Statement:
        expression = children[0]
        if isinstance(expression, n.Function) and expression.name is not None:
            return n.FunctionStatement(expression.span, expression)
        return n.ExpressionStatement(expression.span, expression)

    def variable(self, children: Children) -> n.Variable:
        return n.Variable(cover(children), children[0].lower(), only(children, n.Declarator))

    def declarator(self, children: Children) -> n.Declarator:
        pattern, _, type, _, value = children
        return n.Declarator(cover(children), pattern, type, value)

    def if_statement(self, children: Children) -> n.If:
        _, condition, then, _, other = children
        branches: tuple[tuple[n.Expression, n.Block], ...] = ((condition, _block(then)),)
        otherwise = None if other is None else _block(other)
        if isinstance(other, n.If):
            branches, otherwise = branches + other.branches, other.otherwise
        return n.If(cover(children), branches, otherwise)

    def for_each(self, children: Children) -> n.ForEach:
        _, _, kind, pattern, _, _, over, iterable, _, body = children
        return n.ForEach(cover(children), kind.lower(), pattern, over.lower(), iterable, _block(body))

    def for_statement(self, children: Children) -> n.For:
        _, _, first, _, condition, _, update, _, body = children
        if isinstance(first, n.Expression):
            first = n.ExpressionStatement(first.span, first)
        return n.For(cover(children), first, condition, update, _block(body))

    def while_statement(self, children: Children) -> n.While:
        return n.While(cover(children), children[1], _block(children[2]))

    def return_statement(self, children: Children) -> n.Return:
        return n.Return(cover(children[:2]), children[1])

    def throw_statement(self, children: Children) -> n.Throw:
        return n.Throw(cover(children[:2]), children[1])

    def break_statement(self, children: Children) -> n.Break:
        return n.Break(span_of(children[0]))

    def continue_statement(self, children: Children) -> n.Continue:
        return n.Continue(span_of(children[0]))

    def try_statement(self, children: Children) -> n.Try:
        _, body, catch, _, error, _, _, _, handler, last, finalizer = children
        if catch is None and last is None:
            help = "write `catch (error) { … }` behind it."
            raise BuildError(span_of(children[0]), "this `try` has neither `catch` nor `finally`", help, "E0190")
        binding = n.Binding(span_of(error), str(error)) if error else None
        return n.Try(cover(children), body, binding, handler, finalizer)

    def playbook(self, children: Children) -> n.Playbook:
        _, parts, budget = children
        return n.Playbook(between(children[0], budget or parts[-1]), parts, budget)

    def budget(self, children: Children) -> n.Budget:
        return n.Budget(cover(children), only(children, tuple))

    def budget_limit(self, children: Children) -> tuple[n.Name, int | float]:
        name, _, value = children
        return name_of(name), duration_s(value) if value.type == "DURATION" else number(value)

    def playbook_parts(self, children: Children) -> tuple[n.Node, ...]:
        return tuple(children[::2])

    def prompt_call(self, children: Children) -> n.PromptCall:
        return n.PromptCall(between(children[0], children[-1]), name_of(children[0]), only(children, n.Expression))

    def state_name(self, children: Children) -> n.Name:
        """`state` is reserved in code; where prompts are filled it is a name, spelled in capitals."""
        return n.Name(span_of(children[0]), "STATE")

    def path(self, children: Children) -> n.Expression:
        first = children[0]
        result: n.Expression = self.state_name(children) if first.type == "STATE" else name_of(first)
        for token in children[2::2]:
            result = n.Member(between(children[0], token), result, str(token), span_of(token))
        return result

    def use_playbook(self, children: Children) -> n.UsePlaybook:
        return n.UsePlaybook(cover(children), str(children[2]))

    def affordance(self, children: Children) -> n.Affordance:
        return n.Affordance(between(*children), children[1])

    def given_statement(self, children: Children) -> n.Given:
        word, who, answers, value, _ = children
        if who not in ("model", "person") or answers != "answers":
            raise BuildError(
                between(word, answers),
                f"`given {who} {answers}` does not say whose answers it gives",
                GIVEN_FORM,
                "E0188",
            )
        return n.Given(cover(children[:4]), str(who), value)  # type: ignore[arg-type]

    def expect_statement(self, children: Children) -> n.Expect:
        _, condition, _, failure, _ = children
        return n.Expect(cover(children[:4]), condition, failure)


def _is_suspicious(first: n.Statement, second: n.Statement) -> bool:
    """Whether two statements on one line are rather one that is misspelled."""
    if isinstance(first, n.Variable):
        is_bare = first.declarators[-1].value is None and isinstance(second, n.ExpressionStatement)
        return is_bare or isinstance(second, n.Block)
    if isinstance(first, n.Expect):
        return isinstance(second, n.ExpressionStatement)
    if isinstance(second, n.ExpressionStatement) and isinstance(second.expression, (n.Text, n.Template, n.Literal)):
        return True
    return isinstance(first, n.ExpressionStatement) and isinstance(first.expression, n.Name)


def _block(body: n.Statement) -> n.Block:
    """The body of a branch or loop: a block, or one statement without braces."""
    if isinstance(body, n.Block):
        return body
    is_empty = isinstance(body, n.ExpressionStatement) and isinstance(body.expression, n.Object)
    if is_empty and not body.expression.properties:  # type: ignore[attr-defined]
        return n.Block(body.span, ())
    return n.Block(body.span, (body,))
