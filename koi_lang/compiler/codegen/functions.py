"""Functions, arrow functions and their parameters."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.assignments import bind, default_value
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression, function_value
from koi_lang.compiler.codegen.statements import body_statements, statement
from koi_lang.compiler.codegen.types import annotation
from koi_lang.compiler.scope import FunctionScope, ScopeVariable, python_name


@expression.register
def _function(node: n.Function, e: Emitter) -> ast.expr:
    """A function as a value: a lambda where that is enough, else a definition before the statement and its name."""
    short = _lambda(node, e)
    return _named_function(node, e, "", None) if short is None else short


@function_value.register
def _named_function(node: n.Function, e: Emitter, name: str, variable: ScopeVariable | None) -> ast.expr:
    if (own := e.resolution.named.get(node)) is not None:
        return expression(own, e)
    called = node.name or name
    name = variable.python if variable is not None else e.fresh(python_name(called or "anonymous"))
    e.pending.append(_with_koi_name(definition(node, name, e), called, e.at(node.span)))
    return py.load(name, e.at(node.span))


@statement.register
def _function_statement(node: n.FunctionStatement, e: Emitter) -> list[ast.stmt]:
    variable = e.variable(node.function)
    assert variable is not None
    at = e.at(node.span)
    if not variable.is_boxed:
        return [_with_koi_name(definition(node.function, variable.python, e), variable.name, at)]
    name = e.fresh(variable.name)
    target = ast.Attribute(py.load(variable.python, at), "value", py.STORE, **at)
    return [
        _with_koi_name(definition(node.function, name, e), variable.name, at),
        ast.Assign([target], py.load(name, at), **at),
    ]


def _with_koi_name(
    made: ast.FunctionDef | ast.AsyncFunctionDef, name: str, at: py.At
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """A definition that knows its name in Koi, where Python needs another one."""
    if name and name != made.name:
        made.decorator_list.append(py.helper("named", [py.constant(name, at)], at))
    return made


def _lambda(node: n.Function, e: Emitter) -> ast.Lambda | None:
    """A lambda, if the function is a single expression over plain parameters that assigns nothing."""
    scope = e.resolution.functions[node]
    if node.is_async or isinstance(node.body, n.Block) or not all(each.is_plain for each in node.parameters):
        return None
    if scope.nonlocals or any(variable.reassigned for variable in scope.variables):
        return None
    at = e.at(node.span)
    with e.inside(scope) as pending:
        body = expression(node.body, e)
        names, _, _, _ = parameters(node.parameters, e)
        arguments = py.parameter_list(names, (), None, _names_by_value(scope), at)
    return None if pending else ast.Lambda(arguments, body, **at)


def _names_by_value(scope: FunctionScope) -> list[str]:
    return [variable.python for variable in scope.by_value]


def definition(
    node: n.Function, name: str, e: Emitter, *, typed: bool = False
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """`def` or `async def` of a function; `typed` adds the declared types as annotations."""
    at, scope = e.at(node.span), e.resolution.functions[node]
    with e.inside(scope):
        names, defaults, rest, opening = parameters(node.parameters, e, typed=typed)
        prologue, e.pending = [*e.pending, *opening], []
        if isinstance(node.body, n.Block):
            body = body_statements(node.body, e)
        else:
            value = expression(node.body, e)
            body = [*e.pending, ast.Return(value, **e.at(node.body.span))]
    arguments = py.parameter_list(names, defaults, rest, _names_by_value(scope), at)
    if node.takes_this:
        _take_this(arguments, e, at)
    if node.is_generator:  # a call computes parameters and halts before the body
        body.insert(0, py.evaluate(ast.Yield(None, **at), at))
    result = py.function(name, arguments, [*_nonlocals(scope, at), *prologue, *body], at, is_async=node.is_async)
    if node.is_generator:
        result.decorator_list.append(py.koi("async_generator" if node.is_async else "generator", at))
    if typed and node.returns is not None:
        result.returns = annotation(node.returns, at, e.names)
    return result


def _take_this(arguments: ast.arguments, e: Emitter, at: py.At) -> None:
    """Add the parameter for the object that a function is called on; called alone it has the `this` around it.

    The function takes any number of arguments then, so that those who know only its parameters do not call it at once.
    """
    outside: ast.expr = py.koi("undefined", at)
    scope: FunctionScope | None = e.function
    while scope is not None and not getattr(scope.node, "takes_this", False):
        scope = scope.parent
    if scope is not None or e.has_agent:
        outside = py.load("this" if scope is None else "this_object", at)
    arguments.kwonlyargs.append(ast.arg("this_object", **at))
    arguments.kw_defaults.append(outside)
    arguments.vararg = arguments.vararg or ast.arg(e.fresh("more"), **at)


def _nonlocals(scope: FunctionScope, at: py.At) -> list[ast.stmt]:
    names = [
        variable.python for variable in scope.nonlocals if not variable.is_boxed and variable not in scope.by_value
    ]
    return [ast.Nonlocal(names, **at)] if names else []


def parameters(
    nodes: Sequence[n.Parameter], e: Emitter, *, typed: bool = False
) -> tuple[list[ast.arg], list[ast.expr], ast.arg | None, list[ast.stmt]]:
    """Python parameters, defaults of the last ones, the rest parameter, and statements that open patterns first."""
    names: list[ast.arg] = []
    defaults: list[ast.expr] = []
    rest: ast.arg | None = None
    prologue: list[ast.stmt] = []
    for number, node in enumerate(nodes):
        at = e.at(node.span)
        e.early = [found for each in nodes[number:] if (found := e.variable(each.pattern)) is not None]
        argument, opening = _parameter(node, e, at)
        e.early = ()
        if typed and node.type is not None:
            is_list = node.rest and node.type.name == "Array" and bool(node.type.arguments)
            argument.annotation = annotation(node.type.arguments[0] if is_list else node.type, at, e.names)
        prologue += opening
        if node.rest:
            rest = argument
            continue
        names.append(argument)
        if node.default is not None or node.optional or defaults:
            defaults.append(_default(node, at))
    return names, defaults, rest, prologue


def _parameter(node: n.Parameter, e: Emitter, at: py.At) -> tuple[ast.arg, list[ast.stmt]]:
    variable = e.variable(node.pattern)
    name = e.fresh("argument") if variable is None else variable.python
    prologue: list[ast.stmt] = []
    if node.rest:
        prologue.append(py.assign(name, py.call(py.load("list", at), [py.load(name, at)], at), at))
    if node.default is not None:
        prologue.append(default_value(name, node.pattern, node.default, e))
    if variable is None:
        prologue += bind(node.pattern, py.load(name, at), e)
    return ast.arg(name, **at), prologue


def _default(node: n.Parameter, at: py.At) -> ast.expr:
    if isinstance(node.default, (n.Literal, n.Text)) and node.default.value != float("inf"):
        return py.constant(node.default.value, at)
    return py.koi("undefined", at)
