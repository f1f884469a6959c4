"""Rules of statements."""

from __future__ import annotations

from itertools import pairwise

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build.expressions import Expressions
from koi_lang.compiler.build.helpers import BuildError, Children, cover, name_of, only, span_between, span_of
from koi_lang.compiler.literals import duration_s, number
from koi_lang.source import Span

# Expressions that are written for what they do.
EFFECTS = (n.Call, n.New, n.Assignment, n.Update, n.Await, n.Send, n.Start, n.Yield)
GIVEN_FORM = "write `given model answers [ … ]` or `given person answers [ … ]`."


class Statements(Expressions):
    """Rules of statements."""

    def block(self, children: Children) -> n.Block:
        """`{ … }`, braces included in its place."""
        return n.Block(span_between(children[0], children[2]), children[1])

    def statements(self, children: Children) -> tuple[n.Statement, ...]:
        """Statements in their order; neighbours that may be one misspelt statement are noted."""
        found: tuple[n.Statement, ...] = only(children, n.Statement)
        self.neighbours += [(a.span, b.span) for a, b in pairwise(found) if _is_suspicious(a, b)]
        return found

    def terminated(self, children: Children) -> n.Statement:
        """A statement without its semicolon."""
        statement: n.Statement = children[0]
        return statement

    def expression_statement(self, children: Children) -> n.Statement:
        """An expression that stands alone; a function that has a name is declared by it."""
        expression = children[0]
        if isinstance(expression, n.Function) and expression.name is not None:
            return n.FunctionStatement(expression.span, expression)
        return n.ExpressionStatement(expression.span, expression)

    def variable(self, children: Children) -> n.Variable:
        """`const`, `let` or `var` with one declarator or more, the word in small letters."""
        return n.Variable(cover(children), children[0].lower(), only(children, n.Declarator))

    def declarator(self, children: Children) -> n.Declarator:
        """`pattern: type = value`; the type or the value may be missing."""
        pattern, _, type, _, value = children
        return n.Declarator(cover(children), pattern, type, value)

    def if_statement(self, children: Children) -> n.If:
        """`if … else …`; an `else if` becomes a further branch of the same node."""
        _, condition, then, _, other = children
        branches: tuple[tuple[n.Expression, n.Block], ...] = ((condition, _block(then)),)
        otherwise = None if other is None else _block(other)
        if isinstance(other, n.If):
            branches, otherwise = branches + other.branches, other.otherwise
        return n.If(cover(children), branches, otherwise)

    def for_each(self, children: Children) -> n.ForEach:
        """`for (const pattern of iterable)` and `in`, both words in small letters."""
        _, _, kind, pattern, _, _, over, iterable, _, body = children
        return n.ForEach(cover(children), kind.lower(), pattern, over.lower(), iterable, _block(body))

    def for_await(self, children: Children) -> n.ForEach:
        """`for await (const pattern of iterable)`."""
        _, _, _, kind, pattern, _, _, _, iterable, _, body = children
        return n.ForEach(cover(children), kind.lower(), pattern, "of", iterable, _block(body), True)

    def for_statement(self, children: Children) -> n.For:
        """`for (first; condition; update)`, of which each may be missing."""
        _, _, first, _, condition, _, update, _, body = children
        if isinstance(first, n.Expression):
            first = n.ExpressionStatement(first.span, first)
        return n.For(cover(children), first, condition, update, _block(body))

    def sequence(self, children: Children) -> n.Sequence:
        """`a, b` in the head of a `for`."""
        return n.Sequence(cover(children), only(children, n.Expression))

    def while_statement(self, children: Children) -> n.While:
        """`while (condition) …`."""
        return n.While(cover(children), children[1], _block(children[2]))

    def do_while(self, children: Children) -> n.DoWhile:
        """`do … while (condition)`."""
        return n.DoWhile(cover(children), _block(children[1]), children[3])

    def switch_statement(self, children: Children) -> n.Switch:
        """`switch (subject) { … }`."""
        return n.Switch(span_between(children[0], children[-1]), children[1], only(children, n.Clause))

    def clause(self, children: Children) -> n.Clause:
        """`case test:` or `default:` with its statements."""
        *head, colon, statements = children
        end = statements[-1] if statements else colon
        body = n.Block(Span(span_of(colon).end, span_of(end).end), statements)
        return n.Clause(span_between(head[0], end), head[1] if len(head) > 1 else None, body)

    def labelled_statement(self, children: Children) -> n.Labelled:
        """`label: statement`. Raises BuildError for reserved words."""
        label, _, body = children
        self._check_reserved(label)
        return n.Labelled(span_between(label, body), str(label), span_of(label), body)

    def return_statement(self, children: Children) -> n.Return:
        """`return value`; its place ends with the value, not with the semicolon."""
        return n.Return(cover(children[:2]), children[1])

    def throw_statement(self, children: Children) -> n.Throw:
        """`throw value`."""
        return n.Throw(cover(children[:2]), children[1])

    def break_statement(self, children: Children) -> n.Break:
        """`break`, or `break label`, which is one token."""
        return n.Break(span_of(children[0]), _label_of(children[0]))

    def continue_statement(self, children: Children) -> n.Continue:
        """`continue`, or `continue label`, which is one token."""
        return n.Continue(span_of(children[0]), _label_of(children[0]))

    def try_statement(self, children: Children) -> n.Try:
        """`try … catch (error) … finally …`. Raises BuildError where both are missing."""
        _, body, catch, _, error, _, _, _, handler, last, finalizer = children
        if catch is None and last is None:
            help = "write `catch (error) { … }` behind it."
            raise BuildError(span_of(children[0]), "this `try` has neither `catch` nor `finally`", help, "E0190")
        return n.Try(cover(children), body, error, handler, finalizer)

    def playbook(self, children: Children) -> n.Playbook:
        """`playbook` or `answer` with its parts and, behind them, a budget."""
        word, parts, budget = children
        answers = str(word).lower() == "answer"
        return n.Playbook(span_between(word, budget or parts[-1]), parts, budget, answers)

    def budget(self, children: Children) -> n.Budget:
        """`budget { … }`, a pair for each limit."""
        return n.Budget(cover(children), only(children, tuple))

    def budget_limit(self, children: Children) -> tuple[n.Name, int | float]:
        """`name: number`, or a duration, which becomes seconds."""
        name, _, value = children
        return name_of(name), duration_s(value) if value.type == "DURATION" else number(value)

    def playbook_parts(self, children: Children) -> tuple[n.Node, ...]:
        """Texts, names and calls of prompts, without the `+` between them."""
        return tuple(children[::2])

    def prompt_call(self, children: Children) -> n.PromptCall:
        """`Name(arguments)` among the parts of a playbook or prompt."""
        return n.PromptCall(span_between(children[0], children[-1]), name_of(children[0]), only(children, n.Expression))

    def path(self, children: Children) -> n.Expression:
        """`name.field.field` as the argument of a prompt."""
        result: n.Expression = name_of(children[0])
        for token in children[2::2]:
            result = n.Member(span_between(children[0], token), result, str(token), span_of(token))
        return result

    def use_playbook(self, children: Children) -> n.UsePlaybook:
        """`use playbook name`, where the name may be quoted."""
        return n.UsePlaybook(cover(children), str(children[2]))

    def affordance(self, children: Children) -> n.Affordance:
        """`affordance "text"`."""
        return n.Affordance(span_between(*children), children[1])

    def given_statement(self, children: Children) -> n.Given:
        """`given model answers …` or `given person answers …` of a test. Raises BuildError for other words."""
        word, who, answers, value, _ = children
        if who not in ("model", "person") or answers != "answers":
            raise BuildError(
                span_between(word, answers),
                f"`given {who} {answers}` does not say whose answers it gives",
                GIVEN_FORM,
                "E0188",
            )
        return n.Given(cover(children[:4]), str(who), value)  # type: ignore[arg-type]

    def expect_statement(self, children: Children) -> n.Expect:
        """`expect condition`, or `expect expression fails "text"`."""
        _, condition, _, failure, _ = children
        return n.Expect(cover(children[:4]), condition, failure)

    def score_statement(self, children: Children) -> n.Score:
        """`score name = value`."""
        _, name, _, value, _ = children
        return n.Score(cover(children[:4]), str(name), value)


def _is_suspicious(first: n.Statement, second: n.Statement) -> bool:
    """Whether two statements on one line are rather one that is misspelled."""
    if isinstance(first, n.Variable) and isinstance(second, n.Block):
        return True
    if _is_open(first) and isinstance(second, n.ExpressionStatement):
        return True
    return _is_idle(first) or _is_idle(second) or _is_parenthesized(second)


def _is_open(statement: n.Statement) -> bool:
    """Whether a statement is one that an expression may have been meant to go on with."""
    if isinstance(statement, n.Variable):
        return statement.declarators[-1].value is None
    return isinstance(statement, n.Expect)


def _is_parenthesized(statement: n.Statement) -> bool:
    """Whether a statement is an expression in parentheses, which looks like a call of what stands before it."""
    return isinstance(statement, n.ExpressionStatement) and isinstance(statement.expression, n.Parenthesized)


def _is_idle(statement: n.Statement) -> bool:
    """Whether a statement is an expression that does nothing."""
    return isinstance(statement, n.ExpressionStatement) and not _has_effect(statement.expression)


def _has_effect(expression: n.Expression) -> bool:
    """Whether an expression may stand for what it does; one that only makes a value of effects may not."""
    match expression:
        case n.Operation(operators=(*_, "&&" | "||" | "??")):
            return _has_effect(expression.operands[-1])
        case n.Conditional():
            return _has_effect(expression.then) or _has_effect(expression.otherwise)
        case n.Parenthesized():
            return _has_effect(expression.value)
        case n.Prefix():
            return expression.operator.lower() in ("delete", "void")
    is_bare_yield = isinstance(expression, n.Name) and expression.name == n.BARE_YIELD
    return is_bare_yield or isinstance(expression, EFFECTS)


def _label_of(jump: Token) -> str | None:
    return jump.split()[1] if jump.type.endswith("_TO") else None


def _block(body: n.Statement) -> n.Block:
    """The body of a branch or loop: a block, or one statement without braces."""
    if isinstance(body, n.Block):
        return body
    is_empty = isinstance(body, n.ExpressionStatement) and isinstance(body.expression, n.Object)
    if is_empty and not body.expression.properties:  # type: ignore[attr-defined]
        return n.Block(body.span, ())
    return n.Block(body.span, (body,))
