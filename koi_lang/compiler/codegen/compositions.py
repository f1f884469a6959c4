"""`compose` prompts to functions that assemble their lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import condition
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.codegen.prompts import (
    Piece,
    adopt_functions,
    fill,
    hole_value,
    is_usable,
    local,
    template_emitter,
    template_value,
)
from koi_lang.compiler.codegen.statements import chain
from koi_lang.compiler.compositions import (
    Directive,
    Fragment,
    Let,
    TemplateConditional,
    TemplateError,
    TemplateLine,
    acts,
    directives,
    variables,
)
from koi_lang.compiler.templates import Placeholder


def emit_composition(node: n.Prompt, file: Analysis, names: ModuleNames, python: str) -> list[ast.stmt]:
    """`async def` that makes the lines, and the prompt that uses it."""
    assert isinstance(node.value, n.Compose)
    e = template_emitter(file.unit.source, names, {"callAction": _scope_action})
    at = e.at(node.span)
    fragments = _fragments(node.value, names, e)
    items = _read(node.value, fragments)
    parameters = [parameter.name.name for parameter in node.parameters or ()]
    composer = _Composer(e, fragments, {name: names.local(name) for name in (*parameters, *variables(items))})
    composer.declare(parameters)
    name = names.fresh(f"compose_{node.name.name}")
    arguments = [ast.arg(argument, **at) for argument in ("scope", *map(composer.python.__getitem__, parameters))]
    body = [py.assign(composer.lines, _list((), at), at), *composer.unset(items, at), *composer.body(items)]
    body.append(ast.Return(py.load(composer.lines, at), **at))
    listed = py.parameter_list(arguments, (), None, (), at)
    prompt = py.call(
        py.koi("Composed", at),
        [py.constant(node.name.name, at), py.thunk(_list(fragments.values(), at), at), py.load(name, at)],
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
        return [TemplateLine(node.span, (Fragment(name, ""),)) for name in fragments]
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


def _scope_action(at: py.At) -> ast.expr:
    return py.attribute(py.load("scope", at), "call_action", at)


class _Composer:
    """`python` has the Python name of every parameter and `@let` of the template."""

    def __init__(self, e: Emitter, fragments: dict[str, ast.expr], python: dict[str, str]) -> None:
        self.e, self.fragments, self.python = e, fragments, python
        e.resolution.taken |= {"scope", *python.values()}
        self.lines = e.fresh("lines")

    def declare(self, names: Iterable[str]) -> None:
        """Let what follows use some names."""
        self.e.locals = {**self.e.locals, **{name: local(self.python[name]) for name in names}}

    def unset(self, items: Sequence[Directive], at: py.At) -> list[ast.stmt]:
        """Give the names that only some branch sets a value before."""
        names = dict.fromkeys(variables(item for item in items if isinstance(item, TemplateConditional)))
        return [py.assign(self.python[name], py.koi("undefined", at), at) for name in names]

    def body(self, items: Sequence[Directive]) -> list[ast.stmt]:
        """Statements that append the lines of some directives."""
        return [statement for item in items for statement in self.directive(item)]

    def directive(self, item: Directive) -> list[ast.stmt]:
        self.e.fixed = None
        at = self.e.fixed = self.e.at(item.span)
        match item:
            case TemplateLine():
                result = [self.line(item, at)]
            case Let():
                value = ast.Await(py.helper("settle", [template_value(item.value, self.e)], at), **at)
                self.declare([item.name])
                result = [py.assign(self.python[item.name], value, at)]
            case TemplateConditional():
                return self.choice(item, at)
        return [*self.definitions(), *result]

    def definitions(self) -> list[ast.stmt]:
        """The definitions that must stand before what was emitted last."""
        result, self.e.pending = self.e.pending, []
        return result

    def choice(self, item: TemplateConditional, at: py.At) -> list[ast.stmt]:
        for test, _ in item.branches:
            adopt_functions(test, self.e)
        tests = [condition(test, self.e) for test, _ in item.branches]
        definitions = self.definitions()
        bodies = [self.body(body) or [ast.Pass(**at)] for _, body in item.branches]
        branches = [ast.If(emitted, body, [], **at) for emitted, body in zip(tests, bodies, strict=True)]
        return [*definitions, *chain(branches, self.body(item.otherwise), self.e)]

    def line(self, item: TemplateLine, at: py.At) -> ast.stmt:
        """`lines.append(koi.fill(…))`."""
        filled = fill([self.piece(piece, at) for piece in item.pieces], at)
        return py.evaluate(py.call(py.attribute(py.load(self.lines, at), "append", at), [filled], at), at)

    def piece(self, piece: str | Placeholder | Fragment, at: py.At) -> Piece:
        """A text as it is; a value or a rendered fragment with its name as an expression."""
        if isinstance(piece, str):
            return piece
        name = piece.name if isinstance(piece, Fragment) else self._fragment_in(piece)
        if name is not None:
            rendered = py.call(py.attribute(self.fragments[name], "render", at), [py.load("scope", at)], at)
            return name, ast.Await(rendered, **at)
        assert isinstance(piece, Placeholder)
        return hole_value(piece, self.e) if is_usable(piece, self.e) else piece.source

    def _fragment_in(self, hole: Placeholder) -> str | None:
        """The fragment that `{{name}}` mentions."""
        expression = hole.expression
        if (
            isinstance(expression, n.Name)
            and expression.name in self.fragments
            and expression.name not in self.e.locals
        ):
            return expression.name
        return None
