"""Hover: the declaration under the cursor, and its description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.doc_comments import doc_comment
from koi_lang.compiler.rules import explanation
from koi_lang.compiler.rules.kinds import value_types
from koi_lang.compiler.rules.program import AnalysedProgram, handlers
from koi_lang.compiler.rules.roles import PERMISSIONS
from koi_lang.compiler.rules.state import fields_of
from koi_lang.lsp.navigation import occurrence_at
from koi_lang.lsp.occurrences import Definition
from koi_lang.lsp.text_names import PATH, Prose, prose_of, type_of_path
from koi_lang.lsp.workspace import Snapshot
from koi_lang.source import Span

# A declaration is shown up to its braces, and at most so much of it.
MAX_SHOWN = 400
# What stands behind a field in a path.
DEEPER = re.compile(r"(?:\.[A-Za-z_]\w*)*")
WORD = re.compile(r"\w*")


@dataclass(frozen=True, slots=True)
class DescribedPlace:
    """A piece of a text with its description, in Markdown."""

    span: Span
    text: str


def describe_placeholder(file: Analysis, program: AnalysedProgram, offset: int) -> DescribedPlace | None:
    """The description of the placeholder at an offset; None elsewhere."""
    for prose in program.for_file(prose_of, file):
        for hole in prose.holes() if prose.span.start <= offset <= prose.span.end else ():
            if hole.start <= offset <= hole.end:
                for match in PATH.finditer(file.unit.source.text, *hole):
                    deeper = DEEPER.match(file.unit.source.text, match.end())
                    if deeper is not None and match.end() < offset <= deeper.end():
                        return _describe_path(Span(match.start(), offset), prose, file, program)
                    if match.start() <= offset <= match.end():
                        said = _describe_value(match["root"], match["field"], prose, file)
                        return DescribedPlace(Span(*match.span()), f"`{{{{{match[0]}}}}}`\n\n{said}")
    return None


def _describe_path(span: Span, prose: Prose, file: Analysis, program: AnalysedProgram) -> DescribedPlace | None:
    """A field of a field of the payload or of the state, with the rest of the name that the span ends in."""
    rest = WORD.match(file.unit.source.text, span.end)
    span = Span(span.start, span.end if rest is None else rest.end())
    path = file.unit.source.text[slice(*span)]
    handler = prose.around.function if prose.around is not None else None
    agent = prose.around.agent if prose.around is not None else None
    type = type_of_path(path, file, program, handler if isinstance(handler, n.Handler) else None, agent)
    if type is None:
        return None
    return DescribedPlace(span, f"`{path}: {type.one_line}`")


def _describe_value(root: str, field: str | None, prose: Prose, file: Analysis) -> str:
    handler = prose.around.function if prose.around is not None else None
    agent = prose.around.agent if prose.around is not None else None
    if prose.prompt is not None:
        own = {each.name.name: each.type for each in prose.prompt.parameters or ()}
        return (
            f"parameter `{root}: {own[root]}` of the prompt" if root in own else _OF_ALL.get(root, "a name of the text")
        )
    if root == "state" and agent is not None:
        found = fields_of(agent).get(field or "")
        return f"field of the state of `{agent.name.name}`" + (f": {_type_of(found)}" if found is not None else "")
    if isinstance(handler, n.Handler) and root not in ("agentName", "userMessage"):
        return _of_payload(root, field, handler, file)
    return _OF_ALL.get(root, "a name of the text")


def _of_payload(root: str, field: str | None, handler: n.Handler, file: Analysis) -> str:
    """A field of the handler's payload."""
    parameter = handler.parameters[0] if handler.parameters else None
    type = parameter.type if parameter is not None else None
    fields = {each.name: each for each in resolve_type(type, file.table).fields} if type is not None else {}
    wanted = field if root == "args" or field is not None else root
    if wanted in fields:
        optional = ", which may be missing" if fields[wanted].optional else ""
        return f"`{wanted}: {fields[wanted].type.one_line}` of the payload of `{handler.name.name}`{optional}"
    shown = f": `{type.one_line}`" if type is not None else ""
    return f"the payload of `{handler.name.name}`{shown}" if field is None else f"`{field}` of the payload{shown}"


def _type_of(field: n.Field) -> str:
    return f"`{field.type.one_line}`" if field.type is not None else "any value"


_OF_ALL = {
    "args": "the payload of the handler whose playbook contains the prompt",
    "state": "the state of the agent whose playbook contains the prompt",
    "agentName": "the name of the agent",
    "userMessage": "what the person said last",
}


def hover(snapshot: Snapshot, offset: int) -> types.Hover | None:
    """The hover at an offset of a document: the name there, and the problem; None for nothing."""
    found = [each for each in (_name_at(snapshot, offset), _problem_at(snapshot, offset)) if each is not None]
    if not found:
        return None
    text = "\n\n---\n\n".join(each.text for each in found)
    content = types.MarkupContent(types.MarkupKind.Markdown, text)
    return types.Hover(content, snapshot.document.map.range(found[0].span))


def _member_at(file: Analysis, program: AnalysedProgram, offset: int) -> DescribedPlace | None:
    """A member in code whose type is declared."""
    for member, around in file.index.of(n.Member):
        if member.name_span.start <= offset <= member.name_span.end:
            type = program.for_file(value_types, file).type_of(member, around)
            if type is not None and type.text:
                return DescribedPlace(member.name_span, f"`{member.name}: {type.one_line}`")
    return None


def _name_at(snapshot: Snapshot, offset: int) -> DescribedPlace | None:
    if snapshot.file is None:
        return None
    placeholder = describe_placeholder(snapshot.file, snapshot.program, offset)
    if placeholder is not None:
        return placeholder
    occurrence = occurrence_at(snapshot, offset)
    if occurrence is not None:
        texts = [_describe(each, snapshot.program) for each in occurrence.definitions]
        return DescribedPlace(occurrence.span, "\n\n---\n\n".join(texts))
    member = _member_at(snapshot.file, snapshot.program, offset)
    if member is not None:
        return member
    names = (name for role, _ in snapshot.file.index.of(n.Role) for name in role.capabilities)
    found = next((name for name in names if name.span.start <= offset <= name.span.end), None)
    return None if found is None else DescribedPlace(found.span, _describe_permission(found.name))


def _problem_at(snapshot: Snapshot, offset: int) -> DescribedPlace | None:
    """The long form of the problem at an offset, up to its examples."""
    for problem in snapshot.checked.diagnostics:
        span = problem.place.span
        if problem.place.source.path == snapshot.document.path and span.start <= offset <= span.end:
            said = (explanation(problem.code) or problem.message).partition("\nWrong:")[0].strip()
            return DescribedPlace(
                span, f"**{problem.code}** {said}\n\n`koi check --explain {problem.code}` shows examples."
            )
    return None


def _describe_permission(name: str) -> str:
    known = name.partition(":")[0] in PERMISSIONS
    return f"`can {name}`: " + ("a permission that built-in actions need" if known else "a permission of this program")


def _describe(definition: Definition, program: AnalysedProgram) -> str:
    """A definition: its head, the comment above it, and its description for models."""
    if definition.source is None:
        return f"`{definition.name}`"
    node, text = definition.node, definition.source.text
    start = node.span.start if node is not None else definition.span.start
    head = _head(text, node.span) if node is not None else _line(definition)
    owner = f"{definition.kind} of `{definition.owner}`" if definition.owner else definition.kind
    parts = [f"```koi\n{head}\n```", doc_comment(text, start), *_facts(node, definition, program), f"_{owner}_"]
    return "\n\n".join(filter(None, parts))


def _head(text: str, span: Span) -> str:
    """A declaration without the content of its outermost braces, unless it is short."""
    whole = text[span.start : span.end]
    if whole.count("\n") <= 2 and len(whole) <= MAX_SHOWN:
        return whole
    first = whole.partition("\n")[0]
    return first.removesuffix("{").rstrip()[:MAX_SHOWN]


def _line(definition: Definition) -> str:
    assert definition.source is not None
    return definition.source.line(definition.source.position(definition.span.start).line).strip()[:MAX_SHOWN]


def _facts(node: n.Node | None, definition: Definition, program: AnalysedProgram) -> Iterator[str]:
    """The parts of a declaration: affordances, permissions, members."""
    if isinstance(node, n.Agent):
        yield from (item.text.value.strip() for item in node.items if isinstance(item, n.Affordance))
        home = next((file for file in program.files if file.unit.path == definition.path), None)
        role = None if home is None else program.role_of(node, home)
        if role is not None and isinstance(role.node, n.Role):
            can = ", ".join(f"`{name.name.replace(':', ': ')}`" for name in role.node.capabilities)
            yield f"`{role.name}` can {can or 'nothing'}"
        events = [f"`{item.name.name}`" for item in handlers(node)]
        yield f"handles {', '.join(events)}" if events else ""
    elif isinstance(node, n.Handler):
        statements = node.body.statements
        yield from (each.text.value.strip() for each in statements if isinstance(each, n.Affordance))
    elif isinstance(node, n.Skill):
        yield from (item.text.value.strip() for item in node.items if isinstance(item, n.Affordance))
    elif isinstance(node, n.Function):
        permission = program.permissions.get(node)
        yield f"needs `{permission}`" if permission else ""
