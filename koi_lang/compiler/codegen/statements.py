"""Statements of Koi to statements of Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import TypeVar

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.assignments import assignment_statement, bind, stored_value
from koi_lang.compiler.codegen.emitter import Emitter, LoopFrame
from koi_lang.compiler.codegen.expressions import condition, expression, function_value, read_variable
from koi_lang.compiler.codegen.jumps import forget_jumps, jump, leave, open_frame, run_once
from koi_lang.compiler.codegen.operations import CountedLoop, find_counted_loop, find_push
from koi_lang.compiler.kinds import ARRAY, TEXT
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import everything

T = TypeVar("T")
ENDINGS = (n.Return, n.Throw)
# What never has to be waited for.
SETTLED = (n.Object, n.Array, n.Literal, n.Text, n.Template, n.Await, n.Send)
LOOPS = (n.While, n.DoWhile, n.For, n.ForEach)
# How many branches stand in one `if … elif …`; each `elif` is nested in the one before it.
MAX_BRANCHES = 50


@singledispatch
def statement(node: n.Statement, e: Emitter) -> list[ast.stmt]:
    """The Python statements of a Koi statement, without the definitions that must stand before them."""
    raise AssertionError(f"no emitter for {node!r}")


def statements(nodes: tuple[n.Statement, ...], e: Emitter) -> list[ast.stmt]:
    """Statements in order, declared functions first, each behind the definitions it needs."""
    ordered = sorted(nodes, key=lambda node: not isinstance(node, n.FunctionStatement))
    return _emit_each(ordered, statement, e)


def _emit_each(nodes: Iterable[T], emit: Callable[[T, Emitter], list[ast.stmt]], e: Emitter) -> list[ast.stmt]:
    """What nodes become, in order, each behind the definitions it needs."""
    result: list[ast.stmt] = []
    for node in nodes:
        saved, e.pending = e.pending, []
        emitted = emit(node, e)
        result += e.pending + emitted
        e.pending = saved
    return result


def block(node: n.Block, e: Emitter) -> list[ast.stmt]:
    """The statements of a nested block, at least one."""
    return boxes(node, e) + statements(node.statements, e) or [ast.Pass(**e.at(node.span))]


def body_statements(node: n.Block, e: Emitter) -> list[ast.stmt]:
    """The statements of a function; one that ends without `return` gives undefined."""
    result = boxes(node, e) + statements(node.statements, e)
    if not node.statements or not isinstance(node.statements[-1], ENDINGS):
        at = e.at(node.span._replace(start=node.span.end - 1))
        result.append(_return_value(None, e, at))
    return result


def _return_value(value: ast.expr | None, e: Emitter, at: py.At) -> ast.stmt:
    """`return value`, checked where the result has a type; async generators of Python have no values of their own."""
    if e.is_async_generator:
        left = (
            None
            if value is None
            else py.helper("GeneratorLeftError", [ast.Await(py.helper("settle", [value], at), **at)], at)
        )
        return ast.Return(None, **at) if left is None else ast.Raise(left, None, **at)
    value = py.koi("undefined", at) if value is None else value
    if e.result_type:
        value = py.call(py.attribute(py.load(e.result_type, at), "check", at), [value], at)
    return ast.Return(value, **at)


def boxes(node: n.Node, e: Emitter) -> list[ast.stmt]:
    """New boxes for the variables of this block that closures and a loop share."""
    return [py.assign(v.python, py.helper("Box", [], at), at) for v, at in _boxed_variables(node, e)]


def _boxed_variables(node: n.Node, e: Emitter) -> list[tuple[ScopeVariable, py.At]]:
    declared = e.resolution.blocks.get(node)
    return [(v, e.at(v.span)) for v in declared.variables.values() if v.is_boxed] if declared else []


def _next_boxes(node: n.For, e: Emitter) -> list[ast.stmt]:
    """The boxes of the next turn of a loop, with the values of this one; closures keep the old boxes."""
    return [
        py.assign(v.python, py.helper("Box", [read_variable(v, e, at)], at), at) for v, at in _boxed_variables(node, e)
    ]


# ---------------------------------------------------------------- simple statements


@statement.register
def _block(node: n.Block, e: Emitter) -> list[ast.stmt]:
    return block(node, e)


@statement.register
def _expression(node: n.ExpressionStatement, e: Emitter) -> list[ast.stmt]:
    inner = n.strip_parentheses(node.expression)
    if isinstance(inner, n.Sequence):
        return [step for each in inner.expressions for step in _expression(n.ExpressionStatement(each.span, each), e)]
    if isinstance(inner, (n.Assignment, n.Update)):
        return assignment_statement(inner, e)
    pushed = find_push(inner, e) if isinstance(inner, n.Call) else None
    if pushed is not None:
        at = e.at(inner.span)
        append = py.attribute(expression(pushed[0], e), "append", at)
        return [py.evaluate(py.call(append, [expression(pushed[1], e)], at), e.at(node.span))]
    return [py.evaluate(expression(inner, e), e.at(node.span))]


@statement.register
def _variable(node: n.Variable, e: Emitter) -> list[ast.stmt]:
    return _emit_each(node.declarators, _declarator, e)


def _declarator(node: n.Declarator, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    if node.value is None:
        return bind(node.pattern, py.koi("undefined", at), e)
    if isinstance(node.pattern, n.Binding):
        return _named_variable(node, node.pattern, node.value, e, at)
    return bind(node.pattern, expression(node.value, e), e)


def _named_variable(
    node: n.Declarator, binding: n.Binding, value: n.Expression, e: Emitter, at: py.At
) -> list[ast.stmt]:
    """A variable with a value; a function kept in a variable is defined under its name."""
    variable = e.variable(binding)
    is_defined = isinstance(value, n.Function) and value not in e.resolution.named
    if is_defined and variable is not None and not variable.is_boxed:
        function_value(value, e, variable.name, variable)
        return []
    result = bind(binding, stored_value(binding, value, e), e)
    for stored in result:
        ast.copy_location(stored, ast.Pass(**at))
    return result


@statement.register
def _return(node: n.Return, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    value = node.value
    if value is not None and e.result_type and not isinstance(n.strip_parentheses(value), SETTLED):
        value = n.Await(value.span, value)
    return [_return_value(None if value is None else expression(value, e), e, at)]


@statement.register
def _throw(node: n.Throw, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    return [ast.Raise(py.helper("thrown", [expression(node.value, e)], at), None, **at)]


@statement.register(n.Break)
@statement.register(n.Continue)
def _jump(node: n.Break | n.Continue, e: Emitter) -> list[ast.stmt]:
    return jump(node, e)


@statement.register(n.Playbook)
@statement.register(n.UsePlaybook)
@statement.register(n.Affordance)
def _without_effect(node: n.Statement, e: Emitter) -> list[ast.stmt]:
    """Beside code a playbook has no effect; a description is read where the handler is declared."""
    return []


# ---------------------------------------------------------------- branches and loops


@statement.register
def _if(node: n.If, e: Emitter) -> list[ast.stmt]:
    tests = [condition(test, e) for test, _ in node.branches]
    places = [e.at(node.span._replace(start=test.span.start)) for test, _ in node.branches]
    branches = [
        ast.If(emitted, block(body, e), [], **at)
        for emitted, (_, body), at in zip(tests, node.branches, places, strict=True)
    ]
    ast.copy_location(branches[0], ast.Pass(**e.at(node.span)))
    return chain(branches, [] if node.otherwise is None else block(node.otherwise, e), e)


def chain(branches: list[ast.If], otherwise: list[ast.stmt], e: Emitter) -> list[ast.stmt]:
    """Branches as `if … elif … else`; long ones in several pieces, since Python nests each `elif` in the one before."""
    if len(branches) <= MAX_BRANCHES:
        return [_nest_branches(branches, otherwise)]
    name = e.fresh("chosen")
    result: list[ast.stmt] = []
    for start in range(0, len(branches), MAX_BRANCHES):
        piece = branches[start : start + MAX_BRANCHES]
        at = py.at_of(piece[0])
        attempt: list[ast.stmt] = [py.assign(name, py.constant(True, at), at)]
        attempt.append(_nest_branches(piece, [py.assign(name, py.constant(False, at), at)]))
        result += attempt if not start else [_unless(name, attempt)]
    return [*result, _unless(name, otherwise)] if otherwise else result


def _unless(name: str, body: list[ast.stmt]) -> ast.If:
    at = py.at_of(body[0])
    return ast.If(ast.UnaryOp(ast.Not(), py.load(name, at), **at), body, [], **at)


def _nest_branches(branches: list[ast.If], otherwise: list[ast.stmt]) -> ast.If:
    for branch in reversed(branches):
        branch.orelse = otherwise
        otherwise = [branch]
    return branches[0]


@statement.register
def _while(node: n.While, e: Emitter) -> list[ast.stmt]:
    at, frame = e.at(node.span), open_frame("loop", e)
    test = condition(node.condition, e)
    return leave(frame, [ast.While(test, _frame_body(node.body, frame, e), [], **at)], e, at)


@statement.register
def _do_while(node: n.DoWhile, e: Emitter) -> list[ast.stmt]:
    """`do` as a `while` that asks at the end of the body, or before all turns but the first if one may `continue`."""
    at, frame = e.at(node.span), open_frame("loop", e)
    body, test = _frame_body(node.body, frame, e), condition(node.condition, e)
    if not any(isinstance(inner, n.Continue) for inner in everything(node.body)):
        at_end = e.at(node.condition.span)
        body.append(ast.If(ast.UnaryOp(ast.Not(), test, **at_end), [ast.Break(**at_end)], [], **at_end))
        return leave(frame, [ast.While(py.constant(True, at), body, [], **at)], e, at)
    again = e.fresh("again")
    may_begin = ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), py.load(again, at), **at), test], **at)
    loop = ast.While(may_begin, [py.assign(again, py.constant(True, at), at), *body], [], **at)
    return leave(frame, [py.assign(again, py.constant(False, at), at), loop], e, at)


@statement.register
def _for_each(node: n.ForEach, e: Emitter) -> list[ast.stmt]:
    at, frame = e.at(node.span), open_frame("loop", e)
    if node.waits:
        return leave(frame, _walk_waiting(node, frame, e, at), e, at)
    if node.over == "of" and e.names.has_generators and e.kinds.of(node.iterable).bits != ARRAY:
        return leave(frame, _walk(node, frame, e, at), e, at)
    iterable = py.helper("iterate" if node.over == "of" else "keys", [expression(node.iterable, e)], at)
    target, opening = _item(node, e, at)
    loop = ast.For(target, iterable, opening + _frame_body(node.body, frame, e), [], None, **at)
    return leave(frame, [loop], e, at)


def _item(node: n.ForEach, e: Emitter, at: py.At) -> tuple[ast.expr, list[ast.stmt]]:
    """What takes the items of a loop, and the statements that take them apart."""
    variable = e.variable(node.pattern)
    if variable is not None and not variable.is_boxed:
        return py.store(variable.python, e.at(node.pattern.span)), []
    name = e.fresh("item")
    opening = boxes(node, e) + bind(node.pattern, py.load(name, at), e)
    return py.store(name, e.at(node.pattern.span)), opening


def _walk(node: n.ForEach, frame: LoopFrame, e: Emitter, at: py.At) -> list[ast.stmt]:
    """`for … of` over what may be a generator, which ends when the loop is left."""
    items, error = e.fresh("items"), e.fresh("error")
    begin = py.assign(items, py.helper("walk", [expression(node.iterable, e)], at), at)
    target, opening = _item(node, e, at)
    loop = ast.For(target, py.load(items, at), opening + _frame_body(node.body, frame, e), [], None, **at)
    failing = py.evaluate(py.helper("fail_walk", [py.load(items, at), py.load(error, at)], at), at)
    handler = ast.ExceptHandler(py.load("BaseException", at), error, [failing, ast.Raise(None, None, **at)], **at)
    ending = py.evaluate(py.helper("end_walk", [py.load(items, at)], at), at)
    return [begin, ast.Try([loop], [handler], [], [ending], **at)]


def _walk_waiting(node: n.ForEach, frame: LoopFrame, e: Emitter, at: py.At) -> list[ast.stmt]:
    """`for await`: however the loop is left, what it walks over is ended."""
    items = e.fresh("items")
    begin = py.assign(items, py.helper("AsyncItems", [expression(node.iterable, e)], at), at)
    target, opening = _item(node, e, at)
    body = opening + _frame_body(node.body, frame, e)
    loop = ast.AsyncFor(target, py.load(items, at), body, [], None, **at)
    closed = ast.Await(py.call(py.attribute(py.load(items, at), "close", at), [], at), **at)
    return [begin, *_finally([loop], [], [py.evaluate(closed, at)], e, at)]


@statement.register
def _for(node: n.For, e: Emitter) -> list[ast.stmt]:
    """`for (;;)` as a `while`; the update stands at the end of the body and before every `continue`."""
    at, frame = e.at(node.span), open_frame("loop", e)
    counted = find_counted_loop(node, e)
    if counted is not None:
        target, values = _counting(counted, e, at)
        return leave(frame, [ast.For(target, values, _frame_body(node.body, frame, e), [], None, **at)], e, at)
    first = boxes(node, e) + ([] if node.first is None else statements((node.first,), e))
    test = py.constant(True, at) if node.condition is None else condition(node.condition, e)
    update = _next_boxes(node, e)
    if node.update is not None:
        update += statements((n.ExpressionStatement(node.update.span, node.update),), e)
    if update and _continues_through_finally(node.body):
        loop = _updating_first(test, update, _frame_body(node.body, frame, e), e.fresh("again"), at)
        return leave(frame, [*first, *loop], e, at)
    frame.updates = update
    body = _frame_body(node.body, frame, e)
    return leave(frame, [*first, ast.While(test, body + update, [], **at)], e, at)


def _counting(loop: CountedLoop, e: Emitter, at: py.At) -> tuple[ast.expr, ast.expr]:
    """What takes the numbers of a loop that counts, and the numbers."""
    target = py.store(loop.counter.python, at)
    start, end = expression(loop.start, e), loop.end
    match loop.step:
        case 1:
            steps = []
        case int() as step:
            size = py.constant(abs(step), at)
            steps = [ast.UnaryOp(ast.USub(), size, **at) if step < 0 else size]
        case name:
            steps = [expression(name, e)]
    test = py.constant(loop.test, at)
    if not isinstance(end, n.Member) or (end.name == "length" and e.kinds.of(end.object).bits == TEXT):
        return target, py.helper("count", [start, test, expression(end, e), *steps], at)
    holder = expression(end.object, e)
    if end.name != "length":
        return target, py.helper("count_to_entry", [start, test, holder, py.constant(end.name, at), *steps], at)
    is_whole_array = loop.test == "<" and not steps and isinstance(start, ast.Constant) and start.value == 0
    if not is_whole_array or e.kinds.of(end.object).bits != ARRAY:
        return target, py.helper("count_to_length", [start, test, holder, *steps], at)
    item = py.store(e.fresh("item"), at)
    return ast.Tuple([target, item], py.STORE, **at), py.helper("indexed", [holder], at)


def _continues_through_finally(body: n.Block) -> bool:
    """Whether a `continue` may leave a `try` whose `finally` must run before the update of the loop."""
    guarded = [node for node in everything(body) if isinstance(node, n.Try) and node.finalizer is not None]
    return any(isinstance(inner, n.Continue) for node in guarded for inner in everything(node))


def _updating_first(
    test: ast.expr, update: list[ast.stmt], body: list[ast.stmt], again: str, at: py.At
) -> list[ast.stmt]:
    """A loop that updates at the beginning of every turn but the first."""
    opening: list[ast.stmt] = [
        ast.If(py.load(again, at), update, [], **at),
        py.assign(again, py.constant(True, at), at),
        ast.If(ast.UnaryOp(ast.Not(), test, **at), [ast.Break(**at)], [], **at),
    ]
    loop = ast.While(py.constant(True, at), [*opening, *body], [], **at)
    return [py.assign(again, py.constant(False, at), at), loop]


def _frame_body(node: n.Block, frame: LoopFrame, e: Emitter) -> list[ast.stmt]:
    e.frames.append(frame)
    result = block(node, e)
    e.frames.pop()
    return result


@statement.register
def _emit_labelled(node: n.Labelled, e: Emitter) -> list[ast.stmt]:
    e.labels = (*e.labels, node.label)
    if isinstance(node.body, (n.Labelled, *LOOPS, n.Switch)):
        return statement(node.body, e)
    at, frame = e.at(node.span), open_frame("block", e)
    return leave(frame, [run_once(_frame_body(n.Block(node.body.span, (node.body,)), frame, e), at)], e, at)


@statement.register
def _try(node: n.Try, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    before = len(e.jumped)
    body = block(node.body, e)
    # What is caught has taken the place of a jump through a `finally` in the body.
    handlers = [] if node.handler is None else [_handler(node, node.handler, forget_jumps(e.jumped[before:], at), e)]
    finalizer: list[ast.stmt] = []
    if node.finalizer is not None:
        e.finalizers.append((len(e.frames), e.jumped[before:]))
        finalizer = block(node.finalizer, e)
        e.finalizers.pop()
    return _finally(body, handlers, finalizer, e, at)


def _finally(
    body: list[ast.stmt], handlers: list[ast.ExceptHandler], finalizer: list[ast.stmt], e: Emitter, at: py.At
) -> list[ast.stmt]:
    """A `try`. A generator that nobody asks for more stays where it stands: Python would run its `finally` then."""
    if not finalizer or not e.is_generator:
        return [ast.Try(body, handlers, [], finalizer, **at)]
    name = e.fresh("abandoned")
    noted: list[ast.stmt] = [py.assign(name, py.constant(True, at), at), ast.Raise(None, None, **at)]
    ending = ast.ExceptHandler(py.load("GeneratorExit", at), None, noted, **at)
    guarded = ast.If(ast.UnaryOp(ast.Not(), py.load(name, at), **at), finalizer, [], **at)
    whole = ast.Try([ast.Try(body, handlers, [], [], **at)] if handlers else body, [ending], [], [guarded], **at)
    return [py.assign(name, py.constant(False, at), at), whole]


def _handler(node: n.Try, body: n.Block, begin: list[ast.stmt], e: Emitter) -> ast.ExceptHandler:
    """`catch (e)`: every exception of Python is a value of Koi, unless it ends more than the code around."""
    at = e.at(body.span)
    name = e.fresh("exception")
    caught = py.helper("caught", [py.load(name, at)], at)
    opening = [py.evaluate(caught, at)] if node.error is None else boxes(node, e) + bind(node.error, caught, e)
    return ast.ExceptHandler(py.load("Exception", at), name, begin + opening + block(body, e), **at)
