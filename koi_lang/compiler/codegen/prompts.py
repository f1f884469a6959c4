"""Playbooks and prompts: texts with holes to functions of the scope they are filled in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import python as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression
from koi_lang.compiler.codegen.modules import ModuleNames
from koi_lang.compiler.scope import FunctionScope, Resolution
from koi_lang.compiler.templates import STATE, Hole, parts
from koi_lang.source import Source, Span

Locals = Mapping[str, Callable[[py.At], ast.expr]]
SCOPE = {"args": "args", STATE: "state", "agentName": "agent_name", "userMessage": "user_message"}
# Globals that a hole may use besides the names of its scope.
PURE = frozenset({"JSON", "Math", "Date", "String", "Number", "Boolean", "Object", "Array", "undefined", "NaN"})


def template_emitter(source: Source, names: ModuleNames, more: Locals) -> Emitter:
    """An emitter for the holes of a text: names are those of the scope and `more`."""
    resolution = Resolution()
    nowhere = Span(0, 0)
    root = FunctionScope(None, n.Literal(nowhere, None))
    local_names = {name: _scope_member(attribute) for name, attribute in SCOPE.items()} | dict(more)
    return Emitter(source, names, resolution, root, has_agent=False, locals=local_names, lenient=True)


def _scope_member(name: str) -> Callable[[py.At], ast.expr]:
    return lambda at: py.attribute(py.load("scope", at), name, at)


def payload_name(parameters: tuple[n.Parameter, ...]) -> Locals:
    """In templates a handler's own parameter is another name of `args`."""
    match parameters:
        case (n.Parameter(pattern=n.Binding(name=name)), *_):
            return {name: _scope_member("args")}
    return {}


def is_usable(hole: Hole, e: Emitter) -> bool:
    """Whether all names of a hole are known; otherwise it stays text."""
    return all(root.name in e.locals or root.name in PURE for root in hole.roots())


def filled(text: n.Text, e: Emitter) -> ast.expr:
    """A text as an expression: a constant, or a call that fills its holes."""
    at = e.at(text.span)
    pieces = parts(text)
    if not any(isinstance(piece, Hole) and is_usable(piece, e) for piece in pieces):
        return py.constant(text.value, at)
    return py.helper("fill", [_piece(piece, e, at) for piece in pieces], at)


def _piece(piece: str | Hole, e: Emitter, at: py.At) -> ast.expr:
    if isinstance(piece, str):
        return py.constant(piece, at)
    if not is_usable(piece, e):
        return py.constant(piece.source, at)
    return hole_value(piece, e)


def hole_value(hole: Hole, e: Emitter) -> ast.expr:
    """The value that fills a hole; all of it stands where the hole stands."""
    saved, e.fixed = e.fixed, e.at(hole.span)
    result = expression(hole.expression, e)
    e.fixed = saved
    return result


def playbook(node: n.Playbook, e: Emitter) -> ast.expr:
    """`lambda scope: [parts]` of a playbook statement; prompts are rendered when the playbook starts."""
    at = e.at(node.span)
    return py.thunk(ast.List([_playbook_part(part, e) for part in node.parts], py.LOAD, **at), at, "scope")


def _playbook_part(part: n.Text | n.Name | n.PromptCall, e: Emitter) -> ast.expr:
    at = e.at(part.span)
    if isinstance(part, n.Text):
        return filled(part, e)
    name = part if isinstance(part, n.Name) else part.name
    symbol = e.names.table.find("prompt", name.name)
    if symbol is None:
        return py.constant("", at)
    reference = e.names.reference(symbol, at)
    if isinstance(part, n.Name):
        return reference
    arguments = [_argument(argument, e) for argument in part.arguments]
    return py.call(py.attribute(reference, "render", at), [py.load("scope", at), *arguments], at)


def _argument(node: n.Expression, e: Emitter) -> ast.expr:
    """An argument of a prompt: a text, or a path that starts at `args`, `state` or another name of the scope."""
    return expression(node, e)


# ---------------------------------------------------------------- declarations


def prompt_value(node: n.Prompt, source: Source, names: ModuleNames) -> ast.expr:
    """`koi.Prompt(…)` of a prompt made of texts and other prompts."""
    assert isinstance(node.value, tuple)
    parameters = [parameter.name.name for parameter in node.parameters or ()]
    e = template_emitter(source, names, {name: _local(name) for name in parameters})
    at = e.at(node.span)
    rendered = ast.List([_playbook_part(part, e) for part in node.value], py.LOAD, **at)
    raw = ast.List([_raw_part(part, e) for part in node.value], py.LOAD, **at)
    return _prompt(node.name.name, raw, rendered, parameters, at)


def _prompt(name: str, raw: ast.expr, rendered: ast.expr, parameters: list[str], at: py.At) -> ast.expr:
    """`koi.Prompt("Name", lambda: raw, lambda scope: rendered)`; what is rendered as written is written once."""
    arguments = [py.constant(name, at), py.thunk(raw, at)]
    if ast.dump(raw) != ast.dump(rendered):
        arguments.append(py.thunk(rendered, at, "scope", *parameters))
    listed = py.text_list(parameters, at) if parameters else None
    return py.call(py.koi("Prompt", at), arguments, at, parameters=listed)


def _local(name: str) -> Callable[[py.At], ast.expr]:
    return lambda at: py.load(name, at)


def _raw_part(part: n.Text | n.Name, e: Emitter) -> ast.expr:
    """A part as code sees it: the text as written."""
    return py.constant(part.value, e.at(part.span)) if isinstance(part, n.Text) else _playbook_part(part, e)


def prompt_file(text: n.Text, name: str, source: Source, names: ModuleNames, at: py.At) -> ast.expr:
    """`koi.Prompt(…)` of a text file; everything stands where it is imported."""
    e = template_emitter(source, names, {})
    e.fixed = at
    rendered = ast.List([filled(text, e)], py.LOAD, **at)
    return _prompt(name, ast.List([py.constant(text.value, at)], py.LOAD, **at), rendered, [], at)
