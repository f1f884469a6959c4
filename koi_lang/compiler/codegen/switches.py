"""`switch`: a chain of `if` where no clause falls through, else the clauses in a row behind the first one that runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression
from koi_lang.compiler.codegen.jumps import leave, open_frame, run_once
from koi_lang.compiler.codegen.statements import LOOPS, boxes, chain, statement, statements
from koi_lang.compiler.walk import child_nodes

JUMPS = (n.Break, n.Continue, n.Return, n.Throw)


@dataclass(slots=True, eq=False)
class _Group:
    """Clauses of which only the last one has statements."""

    tests: list[n.Expression]
    body: tuple[n.Statement, ...]
    is_default: bool


@statement.register
def _switch(node: n.Switch, e: Emitter) -> list[ast.stmt]:
    at, frame = e.at(node.span), open_frame("switch", e)
    subject, opening = _subject(node, e)
    functions = [each for clause in node.clauses for each in clause.body.statements if _is_function(each)]
    opening += boxes(node, e) + statements(tuple(functions), e)
    groups = _groups(node)
    can_chain = not frame.labels and _can_chain(groups)
    if can_chain:
        e.dropped.update(last for group in groups if isinstance(last := _last(group.body), n.Break) and not last.label)
        if not any(_has_break(group.body, e) for group in groups):
            return opening + _emit_chain(groups, subject, e, at)
    e.frames.append(frame)
    body = _emit_chain(groups, subject, e, at) if can_chain else _emit_falling(groups, subject, e, at)
    e.frames.pop()
    return leave(frame, [*opening, run_once(body, at)], e, at)


def _subject(node: n.Switch, e: Emitter) -> tuple[ast.expr, list[ast.stmt]]:
    """The value to compare with and the statement that keeps it."""
    at = e.at(node.subject.span)
    name = e.fresh("subject")
    return py.load(name, at), [py.assign(name, expression(node.subject, e), at)]


def _groups(node: n.Switch) -> list[_Group]:
    groups: list[_Group] = []
    tests: list[n.Expression] = []
    is_default = False
    for clause in node.clauses:
        tests += [] if clause.test is None else [clause.test]
        is_default = is_default or clause.test is None
        body = tuple(each for each in clause.body.statements if not _is_function(each))
        if body or clause is node.clauses[-1]:
            groups.append(_Group(tests, body, is_default))
            tests, is_default = [], False
    return groups


def _is_function(node: n.Statement) -> bool:
    return isinstance(node, n.FunctionStatement)


def _last(body: tuple[n.Statement, ...]) -> n.Statement | None:
    while body and isinstance(body[-1], n.Block):
        body = body[-1].statements
    return body[-1] if body else None


def _can_chain(groups: list[_Group]) -> bool:
    """Whether each group that runs is the only one, and the tests of the one with `default` need not be looked at."""
    if not all(isinstance(_last(group.body), JUMPS) for group in groups[:-1]):
        return False
    return not any(
        group.is_default and (group is not groups[-1] or not isinstance(test, n.Literal | n.Text))
        for group in groups
        for test in group.tests
    )


def _has_break(body: tuple[n.Node, ...], e: Emitter) -> bool:
    """Whether a `break` in some statements leaves the `switch` they stand in, other than at the end of a clause."""
    found = (each for node in body for each in _walk_own(node) if isinstance(each, n.Break))
    return any(each.label is None and each not in e.dropped for each in found)


def _walk_own(node: n.Node) -> Iterator[n.Node]:
    """A node and those in it, without what stands in loops, functions and a `switch` of its own."""
    yield node
    if not isinstance(node, (*LOOPS, n.Switch, n.Function)):
        for child in child_nodes(node):
            yield from _walk_own(child)


def _emit_chain(groups: list[_Group], subject: ast.expr, e: Emitter, at: py.At) -> list[ast.stmt]:
    branches = [
        ast.If(_test(group, subject, e), _body(group, e, at), [], **e.at(group.tests[0].span))
        for group in groups
        if not group.is_default
    ]
    otherwise = [each for group in groups if group.is_default for each in _body(group, e, at)]
    return chain(branches, otherwise, e) if branches else otherwise


def _emit_falling(groups: list[_Group], subject: ast.expr, e: Emitter, at: py.At) -> list[ast.stmt]:
    """The number of the first group that runs, then all groups from there on."""
    first = e.fresh("first")

    def begin(index: int) -> list[ast.stmt]:
        return [py.assign(first, py.constant(index, at), at)]

    branches = [
        ast.If(_test(group, subject, e), begin(index), [], **e.at(group.tests[0].span))
        for index, group in enumerate(groups)
        if group.tests
    ]
    default = next((index for index, group in enumerate(groups) if group.is_default), len(groups))
    result = chain(branches, begin(default), e) if branches else begin(default)
    for index, group in enumerate(groups):
        reached = ast.Compare(py.load(first, at), [ast.LtE()], [py.constant(index, at)], **at)
        result.append(ast.If(reached, _body(group, e, at), [], **at))
    return result


def _test(group: _Group, subject: ast.expr, e: Emitter) -> ast.expr:
    tests = [py.helper("same", [subject, expression(test, e)], e.at(test.span)) for test in group.tests]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), list[ast.expr](tests), **e.at(group.tests[0].span))


def _body(group: _Group, e: Emitter, at: py.At) -> list[ast.stmt]:
    return statements(group.body, e) or [ast.Pass(**at)]
