"""Playbooks and prompts: texts with holes to functions of the scope they are filled in."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import expression
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.scope import FunctionScope, Resolution, resolve
from koi_lang.compiler.templates import PATH, PURE, PayloadPart, Placeholder, parts, payload_parts
from koi_lang.compiler.walk import everything
from koi_lang.source import Source, Span

Locals = Mapping[str, Callable[[py.At], ast.expr]]
NAME = re.compile(r"\w+")
# A text, or a value with its name.
Piece: TypeAlias = str | tuple[str, ast.expr]
SCOPE = {"args": "args", "state": "state", "agentName": "agent_name", "userMessage": "user_message"}


class _AnyName:
    """A container that has every name."""

    def __contains__(self, name: object) -> bool:
        return True


ANY_NAME = _AnyName()


def template_emitter(source: Source, names: ModuleNames, more: Locals) -> Emitter:
    """An emitter for the holes of a text: names are those of the scope and `more`."""
    resolution = Resolution()
    nowhere = Span(0, 0)
    root = FunctionScope(None, n.Literal(nowhere, None))
    local_names: dict[str, Callable[[py.At], ast.expr]] = {
        name: ScopeName(name, attribute) for name, attribute in SCOPE.items()
    }
    local_names |= more
    return Emitter(source, names, resolution, root, has_agent=False, locals=local_names, lenient=True)


@dataclass(frozen=True, slots=True)
class ScopeName:
    """A name that stands for the same thing wherever a template mentions it; called, it is the expression for that.

    Attributes:
        path: what models know it by: `args.n`.
        attribute: of the scope.
        keys: from there on.
    """

    path: str
    attribute: str
    keys: tuple[str | int, ...] = ()

    def __call__(self, at: py.At) -> ast.expr:
        """`scope.args`, or a part of it."""
        value: ast.expr = py.attribute(py.load("scope", at), self.attribute, at)
        for key in self.keys:
            value = py.helper("peek", [value, py.constant(key, at)], at)
        return value


def payload_names(parameters: tuple[n.Parameter, ...]) -> Locals:
    """In templates a handler's own parameter is another name of `args`, or stands for parts of it."""
    return {name: _payload_part(part) for name, part in payload_parts(parameters).items()}


def _payload_part(part: PayloadPart) -> Callable[[py.At], ast.expr]:
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in part.path)
    whole = ScopeName(f"args{path}", "args", part.path)
    default = part.default
    if default is None:
        return whole

    def emit(at: py.At) -> ast.expr:
        is_missing = py.helper("same", [whole(at), py.koi("undefined", at)], at)
        return ast.IfExp(is_missing, py.constant(default.value, at), whole(at), **at)

    return emit


def is_usable(hole: Placeholder, e: Emitter) -> bool:
    """Whether all names of a hole are known and it computes a value; otherwise it stays text."""
    return all(root.name in e.locals or root.name in PURE for root in hole.roots()) and hole.obstacle is None


def emit_text(text: n.Text, e: Emitter) -> ast.expr:
    """A text as an expression: a constant, or a call that fills its holes."""
    at = e.at(text.span)
    pieces = parts(text)
    if not any(isinstance(piece, Placeholder) and is_usable(piece, e) for piece in pieces):
        return py.constant(text.value, at)
    return fill([_piece(piece, e) for piece in pieces], at)


def fill(pieces: Sequence[Piece], at: py.At) -> ast.expr:
    """`koi.fill(text, value, text, …, names=[name])`.

    Texts and values take turns, so that a value is never taken for a text; each value has a name.
    """
    arguments: list[str | ast.expr] = [""]
    names: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            if isinstance(arguments[-1], str):
                arguments[-1] += piece
            else:
                arguments.append(piece)
            continue
        name, value = piece
        arguments += [value] if isinstance(arguments[-1], str) else ["", value]
        names.append(name)
    given = [py.constant(each, at) if isinstance(each, str) else each for each in arguments]
    return py.call(py.koi("fill", at), given, at, names=py.text_list(names, at) if names else None)


def _piece(piece: str | Placeholder, e: Emitter) -> Piece:
    if isinstance(piece, str):
        return piece
    return hole_value(piece, e) if is_usable(piece, e) else piece.source


def hole_value(hole: Placeholder, e: Emitter) -> tuple[str, ast.expr]:
    """The name of a hole and the value that fills it; all of it stands where the hole stands."""
    saved, e.fixed = e.fixed, e.at(hole.span)
    result = template_value(hole.expression, e)
    e.fixed = saved
    return _name_of(hole, e), result


def _name_of(hole: Placeholder, e: Emitter) -> str:
    """What models know a value by: its path from the payload or the state, or the expression as written."""
    written = " ".join(hole.source[2 : -2 if hole.braces else -1].split())
    found = NAME.match(written)
    root = found[0] if found is not None else ""
    known = e.locals.get(root)
    if not isinstance(known, ScopeName) or PATH.fullmatch(written) is None:
        return written
    return known.path + written[len(root) :].replace("?.", ".")


def template_value(node: n.Expression, e: Emitter) -> ast.expr:
    """An expression in a template."""
    adopt_functions(node, e)
    return expression(node, e)


def adopt_functions(node: n.Expression, e: Emitter) -> None:
    """Resolve the functions in an expression of a template, which have variables of their own."""
    if any(isinstance(each, n.Function) for each in everything(node)):
        found = resolve(node, ANY_NAME)
        e.resolution.variables.update(found.variables)
        e.resolution.functions.update(found.functions)
        e.resolution.blocks.update(found.blocks)
        e.resolution.named.update(found.named)
        e.resolution.taken |= found.taken


def playbook(node: n.Playbook, e: Emitter) -> ast.expr:
    """`lambda scope: [parts]` of a playbook statement; prompts are rendered when the playbook starts."""
    at = e.at(node.span)
    return py.thunk(ast.List([_playbook_part(part, e) for part in node.parts], py.LOAD, **at), at, "scope")


def _playbook_part(part: n.Text | n.Name | n.PromptCall, e: Emitter) -> ast.expr:
    at = e.at(part.span)
    if isinstance(part, n.Text):
        return emit_text(part, e)
    name = part if isinstance(part, n.Name) else part.name
    symbol = e.names.table.find("prompt", name.name)
    if symbol is None:
        return py.constant("", at)
    reference = e.names.reference(symbol, at)
    if isinstance(part, n.Name):
        return reference
    arguments = [expression(argument, e) for argument in part.arguments]
    return py.call(py.attribute(reference, "render", at), [py.load("scope", at), *arguments], at)


# ---------------------------------------------------------------- declarations


def prompt_value(node: n.Prompt, source: Source, names: ModuleNames) -> ast.expr:
    """`koi.Prompt(…)` of a prompt made of texts and other prompts."""
    assert isinstance(node.value, tuple)
    parameters = {parameter.name.name: names.local(parameter.name.name) for parameter in node.parameters or ()}
    e = template_emitter(source, names, {name: local(python) for name, python in parameters.items()})
    at = e.at(node.span)
    rendered = ast.List([_playbook_part(part, e) for part in node.value], py.LOAD, **at)
    raw = ast.List([_raw_part(part, e) for part in node.value], py.LOAD, **at)
    return _prompt(node.name.name, raw, rendered, parameters, at)


def _prompt(name: str, raw: ast.expr, rendered: ast.expr, parameters: Mapping[str, str], at: py.At) -> ast.expr:
    """`koi.Prompt("Name", lambda: raw, lambda scope: rendered)`; what is rendered as written is written once."""
    arguments = [py.constant(name, at), py.thunk(raw, at)]
    if ast.dump(raw) != ast.dump(rendered):
        arguments.append(py.thunk(rendered, at, "scope", *parameters.values()))
    listed = py.text_list(list(parameters), at) if parameters else None
    return py.call(py.koi("Prompt", at), arguments, at, parameters=listed)


def local(python: str) -> Callable[[py.At], ast.expr]:
    """A local name of a template as the Python variable of that name."""
    return lambda at: py.load(python, at)


def _raw_part(part: n.Text | n.Name, e: Emitter) -> ast.expr:
    """A part as code sees it: the text as written."""
    return py.constant(part.value, e.at(part.span)) if isinstance(part, n.Text) else _playbook_part(part, e)


def prompt_file(text: n.Text, name: str, source: Source, names: ModuleNames, at: py.At) -> ast.expr:
    """`koi.Prompt(…)` of a text file; everything stands where it is imported."""
    e = template_emitter(source, names, {})
    e.fixed = at
    rendered = ast.List([emit_text(text, e)], py.LOAD, **at)
    return _prompt(name, ast.List([py.constant(text.value, at)], py.LOAD, **at), rendered, {}, at)
