"""Code of tests and evals: one function each declares those of a file, so that they cost nothing until they are run."""

from __future__ import annotations

import ast

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.agents import emitter, lone_expression, place
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.codegen.statements import body_statements, statement

COMPARED = frozenset({"===", "!==", "==", "!=", "<", ">", "<=", ">=", "in", "instanceof"})


def tests(file: Analysis, names: ModuleNames) -> list[ast.stmt]:
    """`def koi_tests()`: a function that gives the tests of the file by their names; nothing without tests."""
    nodes = [node for node in file.unit.program.declarations if isinstance(node, n.Test)]
    if not nodes:
        return []
    at = place(nodes[0].span, file)
    body = [_block(node, f"test_{number}", file, names) for number, node in enumerate(nodes, 1)]
    keys: list[ast.expr | None] = [py.constant(node.name.value, place(node.name.span, file)) for node in nodes]
    values: list[ast.expr] = [py.load(test.name, at) for test in body]
    listed = ast.Return(ast.Dict(keys, values, **at), **at)
    return [py.function("koi_tests", py.parameter_list([], (), None, (), at), [*body, listed], at)]


def evals(file: Analysis, names: ModuleNames) -> list[ast.stmt]:
    """`def koi_evals()`: a function that gives the evals of the file; nothing without evals."""
    nodes = [node for node in file.unit.program.declarations if isinstance(node, n.Eval)]
    if not nodes:
        return []
    at = place(nodes[0].span, file)
    body = [_block(node, f"eval_{number}", file, names) for number, node in enumerate(nodes, 1)]
    declared = [_evaluation(node, block.name, file, names) for node, block in zip(nodes, body, strict=True)]
    listed = ast.Return(ast.List(declared, ast.Load(), **at), **at)
    function = py.function("koi_evals", py.parameter_list([], (), None, (), at), [*body, listed], at)
    return [*names.taken_definitions(), function]


def _evaluation(node: n.Eval, name: str, file: Analysis, names: ModuleNames) -> ast.expr:
    """`koi.EvalBlock(name, body, over, times, accept)`."""
    at = place(node.span, file)
    over: ast.expr = py.constant(None, at)
    if isinstance(node.source, n.Text):
        over = py.constant(node.source.value, at)
    elif node.source is not None:
        over = lone_expression(node.source, file, names)
    times = py.constant(1 if node.times is None else node.times.value, at)
    accept = py.constant(None if node.accept is None else node.accept.value, at)
    gives_model = any(isinstance(step, n.Given) and step.who == "model" for step in node.body.statements)
    given = [over, times, accept, py.constant(gives_model, at)]
    return py.helper("EvalBlock", [py.constant(node.name.value, at), py.load(name, at), *given], at)


def _block(node: n.Test | n.Eval, name: str, file: Analysis, names: ModuleNames) -> ast.AsyncFunctionDef:
    at = place(node.span, file)
    e = emitter(node, file, names, has_agent=False)
    e.in_test, e.in_eval = True, isinstance(node, n.Eval)
    body = body_statements(node.body, e)
    result = py.function(name, py.parameter_list([], (), None, (), at), body, at, is_async=True)
    assert isinstance(result, ast.AsyncFunctionDef)
    return result


@statement.register
def _emit_given(node: n.Given, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    return [py.evaluate(py.helper("given", [py.constant(node.who, at), expression(node.answers, e)], at), at)]


@statement.register
def _score(node: n.Score, e: Emitter) -> list[ast.stmt]:
    at = e.at(node.span)
    given = [py.constant(node.name, at), expression(node.value, e)]
    return [py.evaluate(py.helper("give_score", given, at), at)]


@statement.register
def _expect(node: n.Expect, e: Emitter) -> list[ast.stmt]:
    if not e.in_eval:
        return _expectation(node, e)
    at = e.at(node.span)
    noted = ast.withitem(py.helper("note_misses", [], at))
    return [ast.With([noted], _expectation(node, e), **at)]


def _expectation(node: n.Expect, e: Emitter) -> list[ast.stmt]:
    at, condition = e.at(node.span), n.strip_parentheses(node.condition)
    if node.failure is not None:
        return [_expect_failure(node, node.failure, e)]
    if isinstance(condition, n.Operation) and condition.operators[0] in COMPARED and len(condition.operators) == 1:
        sides = [expression(operand, e) for operand in condition.operands]
        return [py.evaluate(py.helper("compare", [py.constant(condition.operators[0], at), *sides], at), at)]
    return [py.evaluate(py.helper("expect", [expression(condition, e)], at), at)]


def _expect_failure(node: n.Expect, failure: n.Text, e: Emitter) -> ast.stmt:
    """A `try` that expects the exception of its only step."""
    at, name = e.at(node.span), e.fresh("failure")
    text = py.constant(failure.value, at)
    attempt = py.evaluate(_emit_awaiting(node.condition, e), at)
    seen = py.evaluate(py.helper("expect_failure", [text, py.load(name, at)], at), at)
    handler = ast.ExceptHandler(py.load("Exception", at), name, [seen], **at)
    missed = py.evaluate(py.helper("expect_failure", [text], at), at)
    return ast.Try([attempt], [handler], [missed], [], **at)


def _emit_awaiting(node: n.Expression, e: Emitter) -> ast.expr:
    """An expression whose failure is waited for, where waiting is possible."""
    result, function = expression(node, e), e.function.node
    node = n.strip_parentheses(node)
    is_plain = isinstance(function, n.Function) and not function.is_async
    if is_plain or isinstance(node, (n.Await, n.Send)):
        return result
    at = e.at(node.span)
    return ast.Await(py.helper("settle", [result], at), **at)
