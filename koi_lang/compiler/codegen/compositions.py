"""`compose` prompts to functions that assemble their lines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen import python as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import condition, expression
from koi_lang.compiler.codegen.modules import ModuleNames
from koi_lang.compiler.codegen.prompts import hole_value, is_usable, template_emitter
from koi_lang.compiler.compositions import Choice, Directive, Fragment, Let, Line, TemplateError, acts, directives
from koi_lang.compiler.scope import python_name
from koi_lang.compiler.templates import Hole


def composed(node: n.Prompt, file: Analysis, names: ModuleNames, python: str) -> list[ast.stmt]:
    """`async def` that makes the lines, and the prompt that uses it."""
    assert isinstance(node.value, n.Compose)
    e = template_emitter(file.unit.source, names, {})
    at = e.at(node.span)
    parameters = [parameter.name.name for parameter in node.parameters or ()]
    e.locals = {**e.locals, "callAction": _scope_action, **{name: _variable(name) for name in parameters}}
    composer = _Composer(e, _fragments(node.value, names, e))
    name = names.fresh(f"compose_{node.name.name}")
    arguments = [ast.arg(python_name(parameter), **at) for parameter in ("scope", *parameters)]
    arguments[0] = ast.arg("scope", **at)
    items = _read(node.value, composer.fragments)
    body = [py.assign("lines", _list((), at), at), *composer.body(items)]
    body.append(ast.Return(py.load("lines", at), **at))
    listed = py.parameter_list(arguments, (), None, (), at)
    prompt = py.call(
        py.koi("Composed", at),
        [py.constant(node.name.name, at), py.thunk(_list(composer.fragments.values(), at), at), py.load(name, at)],
        at,
        parameters=py.text_list(parameters, at) if parameters else None,
        acts=py.constant(True, at) if acts(items) else None,
    )
    return [py.function(name, listed, body, at, is_async=True), py.assign(python, prompt, at)]


def _list(items: Iterable[ast.expr], at: py.At) -> ast.List:
    return ast.List(list(items), py.LOAD, **at)


def _read(node: n.Compose, fragments: dict[str, ast.expr]) -> Sequence[Directive]:
    """The directives of the template; without a template the fragments one after the other."""
    if node.template is None:
        return [Line(node.span, (Fragment(name, ""),)) for name in fragments]
    try:
        return directives(node.template, frozenset(fragments))
    except TemplateError as problem:
        raise BuildError(problem.span, problem.message, problem.help) from None


def _fragments(node: n.Compose, names: ModuleNames, e: Emitter) -> dict[str, ast.expr]:
    """The prompts behind the fragment names."""
    listed = [*((name, name) for name in node.names), *node.fragments]
    result: dict[str, ast.expr] = {}
    for name, prompt in listed:
        symbol = names.table.find("prompt", prompt.name)
        if symbol is not None:
            result[name.name] = names.reference(symbol, e.at(prompt.span))
    return result


def _variable(name: str) -> Callable[[py.At], ast.expr]:
    return lambda at: py.load(python_name(name), at)


def _scope_action(at: py.At) -> ast.expr:
    return py.attribute(py.load("scope", at), "call_action", at)


class _Composer:
    def __init__(self, e: Emitter, fragments: dict[str, ast.expr]) -> None:
        self.e, self.fragments = e, fragments

    def body(self, items: Sequence[Directive]) -> list[ast.stmt]:
        """Statements that append the lines of some directives."""
        return [statement for item in items for statement in self.directive(item)]

    def directive(self, item: Directive) -> list[ast.stmt]:
        self.e.fixed = None
        at = self.e.fixed = self.e.at(item.span)
        match item:
            case Line():
                result = [self.line(item, at)]
            case Let():
                value = ast.Await(py.helper("settle", [expression(item.value, self.e)], at), **at)
                self.e.locals = {**self.e.locals, item.name: _variable(item.name)}
                result = [py.assign(python_name(item.name), value, at)]
            case Choice():
                result = self.choice(item, at)
        result, self.e.pending = [*self.e.pending, *result], []
        return result

    def choice(self, item: Choice, at: py.At) -> list[ast.stmt]:
        tests = [condition(test, self.e) for test, _ in item.branches]
        orelse = self.body(item.otherwise)
        for (_, body), test in reversed(list(zip(item.branches, tests, strict=True))):
            orelse = [ast.If(test, self.body(body) or [ast.Pass(**at)], orelse, **at)]
        return orelse

    def line(self, item: Line, at: py.At) -> ast.stmt:
        """`lines.append(koi.fill(…))`."""
        filled = py.helper("fill", [self.piece(piece, at) for piece in item.pieces], at)
        return py.evaluate(py.call(py.attribute(py.load("lines", at), "append", at), [filled], at), at)

    def piece(self, piece: str | Hole | Fragment, at: py.At) -> ast.expr:
        if isinstance(piece, str):
            return py.constant(piece, at)
        name = piece.name if isinstance(piece, Fragment) else self._fragment_in(piece)
        if name is not None:
            rendered = py.call(py.attribute(self.fragments[name], "render", at), [py.load("scope", at)], at)
            return ast.Await(rendered, **at)
        assert isinstance(piece, Hole)
        return hole_value(piece, self.e) if is_usable(piece, self.e) else py.constant(piece.source, at)

    def _fragment_in(self, hole: Hole) -> str | None:
        """The fragment that `{{name}}` mentions."""
        expression = hole.expression
        if (
            isinstance(expression, n.Name)
            and expression.name in self.fragments
            and expression.name not in self.e.locals
        ):
            return expression.name
        return None
