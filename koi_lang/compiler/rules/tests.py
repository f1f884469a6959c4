"""Tests and evals: where their steps may stand, and calls of handlers in them."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import handlers, is_variable
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import Symbol
from koi_lang.compiler.walk import Enclosing, everything
from koi_lang.source import Span

# Where an expression stands whose value is used at once, so that a promise would be a mistake.
USED_AT_ONCE = (n.ExpressionStatement, n.Declarator, n.Expect, n.Score, n.Operation, n.Prefix, n.Member, n.Index)


@rule("E0217", "error")
def test_twice(file: Analysis, report: Report) -> None:
    """Two tests of a file have the same name.

    The name says which test has failed, and chooses tests on the command line.

    Wrong:

        test "adds" { expect 1 + 1 == 2 }
        test "adds" { expect 1 + 2 == 3 }

    Right:

        test "adds one" { expect 1 + 1 == 2 }
        test "adds two" { expect 1 + 2 == 3 }
    """
    first: dict[str, n.Text] = {}
    for test, _ in file.index.of(n.Test):
        known = first.setdefault(test.name.value, test.name)
        if known is not test.name:
            others = [report.place(known.span, "the first one")]
            message = f"two tests are called `{' '.join(test.name.value.split())}`"
            report.add(test.name.span, message, others=others, help="give one of them another name.")


@rule("E0431", "error")
def step_outside_test(file: Analysis, report: Report) -> None:
    """`expect` or `given` stands outside of a test.

    They belong to `test "name" { … }`. A handler that must not go on throws an error instead.

    Wrong:

        role Worker { can execute }
        agent Clerk : Worker { on add(args) { expect args.a > 0  return args.a + 1 } }

    Right:

        role Worker { can execute }
        agent Clerk : Worker { on add(args) { return args.a + 1 } }
        test "adds one" { expect await Clerk.add({ a: 1 }) == 2 }
    """
    for step, around in [*file.index.of(n.Expect), *file.index.of(n.Given)]:
        if around.test is None:
            word = "expect" if isinstance(step, n.Expect) else "given"
            help = 'put it into a test: `test "name" { … }`; code that must not go on writes `throw new Error(…)`.'
            report.add(_word(step, word), f"`{word}` stands outside of a test", help=help)


@rule("E0432", "error")
def late_given(file: Analysis, report: Report) -> None:
    """A `given` of a test comes after the first call, or stands in a block.

    What models and people answer is laid down for the whole test, before its program does anything.

    Wrong:

        role Worker { can execute }
        agent Clerk : Worker { on ask(args) { playbook "Ask for a name." } }
        test "asks" {
          await Clerk.ask({})
          given person answers ["Ada"]
        }

    Right:

        role Worker { can execute }
        agent Clerk : Worker { on ask(args) { playbook "Ask for a name." } }
        test "asks" {
          given person answers ["Ada"]
          await Clerk.ask({})
        }
    """
    for given, around in file.index.of(n.Given):
        if around.test is None:
            continue
        if given not in around.test.body.statements:
            message = "this `given` stands in a block, and counts for the whole test"
        elif any(_does_something(step) for step in around.test.body.statements if step.span.end <= given.span.start):
            message = "this `given` comes after the first call of the test"
        else:
            continue
        report.add(_word(given, "given"), message, help="move it to the beginning of the test.")


@rule("E0433", "error")
def given_twice(file: Analysis, report: Report) -> None:
    """A test has two `given` for the model, or two for the person.

    The second one would replace the first.

    Wrong:

        test "asks twice" {
          given person answers ["Ada"]
          given person answers ["Bo"]
        }

    Right:

        test "asks twice" {
          given person answers ["Ada", "Bo"]
        }
    """
    for test in _blocks(file):
        first: dict[str, n.Given] = {}
        for step in test.body.statements:
            if isinstance(step, n.Given) and first.setdefault(step.who, step) is not step:
                others = [report.place(_word(first[step.who], "given"), "the first one")]
                message = f"this test gives answers of the {step.who} twice"
                report.add(_word(step, "given"), message, others=others, help="put all answers into one list.")


@rule("E0434", "error")
def handler_not_awaited(file: Analysis, report: Report) -> None:
    """A test calls a handler and does not wait for it.

    Handlers take time, so a call gives a promise of the result. The test would compare the promise, or go on before
    the handler has done its work. Calls in a list for `Promise.all` need no `await` of their own.

    Wrong:

        role Worker { can execute }
        agent Clerk : Worker { on add(args) { return args.a + 1 } }
        test "adds one" { expect Clerk.add({ a: 1 }) == 2 }

    Right:

        role Worker { can execute }
        agent Clerk : Worker { on add(args) { return args.a + 1 } }
        test "adds one" { expect await Clerk.add({ a: 1 }) == 2 }
    """
    calls = {call: name for call, name, symbol in handler_calls(file) if name.name in _events(symbol)}
    for test in _blocks(file):
        for call in _used_at_once(test) if calls else ():
            if call in calls:
                text = file.unit.source.text[call.span.start : call.callee.span.end]
                report.add(call.callee.span, f"this test does not wait for `{text}`", help=f"write `await {text}(…)`.")


def handler_calls(file: Analysis) -> Iterator[tuple[n.Call, n.Name, Symbol]]:
    """Every `Agent.name(…)` in code, with the name and the agent."""
    for call, around in file.index.of(n.Call):
        callee = call.callee
        if isinstance(callee, n.Member) and not call.optional and not callee.optional:
            symbol = agent_of(callee.object, around, file)
            if symbol is not None:
                yield call, n.Name(callee.name_span, callee.name), symbol


def agent_of(node: n.Expression, around: Enclosing, file: Analysis) -> Symbol | None:
    """The agent that an expression stands for: its name, or `this` in its handlers."""
    if not isinstance(node, n.Name) or is_variable(node, around, file):
        return None
    if node.name != "this":
        return file.table.find("agent", node.name)
    return None if around.agent is None else file.table.find("agent", around.agent.name.name)


def _events(symbol: Symbol) -> list[str]:
    return [item.name.name for item in handlers(symbol.node)] if isinstance(symbol.node, n.Agent) else []


def _blocks(file: Analysis) -> list[n.Test | n.Eval]:
    """The tests of a file, then its evals."""
    return [*(test for test, _ in file.index.of(n.Test)), *(each for each, _ in file.index.of(n.Eval))]


def _used_at_once(test: n.Test | n.Eval) -> Iterator[n.Call]:
    """The calls whose value a test uses without waiting for it."""
    for node in everything(test):
        if isinstance(node, USED_AT_ONCE):
            parts = (node.expression,) if isinstance(node, n.ExpressionStatement) else _values(node)
            yield from (part for part in map(n.strip_parentheses, parts) if isinstance(part, n.Call))


def _values(node: n.Node) -> tuple[n.Expression | None, ...]:
    match node:
        case n.Declarator():
            return (node.value,)
        case n.Expect():
            return (None if node.failure is not None else node.condition,)
        case n.Score():
            return (node.value,)
        case n.Operation():
            return node.operands
        case n.Prefix():
            return (node.operand,)
        case n.Member() | n.Index():
            return (node.object,)
    raise AssertionError(f"no values of {node!r}")


def _does_something(step: n.Statement) -> bool:
    """Whether a step waits for something, which may be what a `given` is for."""
    return any(isinstance(node, (n.Await, n.Send)) for node in everything(step))


def _word(step: n.Node, word: str) -> Span:
    return Span(step.span.start, step.span.start + len(word))
