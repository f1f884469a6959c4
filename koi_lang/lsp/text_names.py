"""Names within texts of playbooks and prompts: in placeholders and directives, and `Agent::event` in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compositions import Directive, TemplateError, directives, in_order, variables
from koi_lang.compiler.rules.kinds import value_types
from koi_lang.compiler.rules.program import AnalysedProgram, texts_of
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.templates import HOLE, free_names, payload_parts
from koi_lang.compiler.walk import Enclosing, everything
from koi_lang.lsp.occurrences import (
    Definition,
    Occurrence,
    definition_of,
    field_definition,
    handler_definition,
    parameter_definition,
    variable_definition,
)
from koi_lang.source import Span

PATH = re.compile(r"(?<![\w.$\"'])(?P<root>[A-Za-z_]\w*)(?:\s*\??\.\s*(?P<field>[A-Za-z_]\w*))?")
NAMED = re.compile(r"(?<![\w.$@/:-])(?P<owner>[A-Za-z_]\w*)(?P<mark>::|\.)(?P<name>[A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Prose:
    """A text that a model reads, where it stands in the source unchanged.

    Attributes:
        span: the text without its quotes.
        around: what a playbook stands in; None for prompts.
    """

    text: n.Text
    span: Span
    around: Enclosing | None
    prompt: n.Prompt | None = None

    def holes(self) -> Iterator[Span]:
        """The insides of its placeholders, as places in the source."""
        for match in HOLE.finditer(self.text.value):
            group = "braces" if match["braces"] is not None else "dollar"
            yield Span(self.span.start + match.start(group), self.span.start + match.end(group))

    def directives(self) -> tuple[Directive, ...]:
        """The directives in the template of a `compose` prompt; none for other texts, and unreadable ones."""
        if self.prompt is None or not isinstance(self.prompt.value, n.Compose):
            return ()
        try:
            return directives(self.text, frozenset())
        except TemplateError:
            return ()


def prose_of(file: Analysis, _program: AnalysedProgram) -> list[Prose]:
    """The texts of the playbooks and prompts of a file, without those that are written with escapes."""
    found: list[Prose] = []
    for playbook, around in file.index.of(n.Playbook):
        texts = (part for part in playbook.parts if isinstance(part, n.Text))
        found += [Prose(text, span, around) for text in texts if (span := inside(text, file)) is not None]
    for prompt, _ in file.index.of(n.Prompt):
        found += [Prose(text, span, None, prompt) for text in texts_of(prompt) if (span := inside(text, file))]
    return found


def inside(text: n.Text, file: Analysis) -> Span | None:
    """A text without its quotes; None where it is written with escapes, so that places in it are not known."""
    start = text.span.start + 1 if text.start is None else text.start
    span = Span(start, start + len(text.value))
    return span if file.unit.source.text[span.start : span.end] == text.value else None


def text_occurrences(file: Analysis, program: AnalysedProgram) -> list[Occurrence]:
    """The names within texts, in order; asked for by `program.for_file`."""
    found: list[Occurrence] = []
    for prose in program.for_file(prose_of, file):
        found += _in_holes(prose, file, program)
        found += _in_directives(prose, file)
        found += _in_sentences(prose, file, program)
    return sorted(found, key=lambda each: each.span)


def _in_holes(prose: Prose, file: Analysis, program: AnalysedProgram) -> Iterator[Occurrence]:
    roots = _roots(prose, file)
    agent = prose.around.agent if prose.around is not None else None
    for hole in prose.holes():
        for match in PATH.finditer(file.unit.source.text, *hole):
            root = roots.get(match["root"])
            if root is not None:
                yield Occurrence(Span(*match.span("root")), (root,))
            if match["root"] == "state" and agent is not None and match["field"]:
                field = field_definition(agent, match["field"], file)
                if field is not None:
                    yield Occurrence(Span(*match.span("field")), (field,))


def _in_directives(prose: Prose, file: Analysis) -> Iterator[Occurrence]:
    """The parameters of a prompt in the values of `@let` and the conditions of `@if`."""
    roots = _roots(prose, file)
    for _, expression in in_order(prose.directives()):
        properties = (node for node in everything(expression) if isinstance(node, n.Property) and node.shorthand)
        shorthand = {node.value.span for node in properties}
        for name in free_names(expression):
            if name.name in roots:
                span = Span(prose.span.start + name.span.start, prose.span.start + name.span.end)
                yield Occurrence(span, (roots[name.name],), name.span in shorthand)


def _roots(prose: Prose, file: Analysis) -> Mapping[str, Definition]:
    """The definitions of the first names in placeholders: fields of the payload, parameters of a prompt."""
    if prose.prompt is not None:
        parameters = {each.name.name: parameter_definition(each, file) for each in prose.prompt.parameters or ()}
        # What `@let` declares anew is another value from there on.
        redeclared = set(variables(prose.directives()))
        return {name: each for name, each in parameters.items() if name not in redeclared}
    handler = prose.around.function if prose.around is not None else None
    if not isinstance(handler, n.Handler) or handler not in file.code:
        return {}
    names, resolution = payload_parts(handler.parameters), file.code[handler]
    return {
        variable.name: variable_definition(variable, resolution, file)
        for variable in resolution.functions[handler].variables
        if variable.name in names and variable.kind == "parameter"
    }


def _in_sentences(prose: Prose, file: Analysis, program: AnalysedProgram) -> Iterator[Occurrence]:
    """`Agent::event`, `Skill.function` and `state.field` outside of placeholders."""
    if prose.around is None or prose.around.agent is None:
        return
    holes = list(prose.holes())
    for match in NAMED.finditer(file.unit.source.text, *prose.span):
        if any(hole.start <= match.start() < hole.end for hole in holes):
            continue
        owner, name = _resolve_dotted(match, prose.around.agent, file, program)
        if name is not None:
            yield Occurrence(Span(*match.span("name")), (name,))
            if owner is not None:
                yield Occurrence(Span(*match.span("owner")), (owner,))


def _resolve_dotted(
    match: re.Match[str], agent: n.Agent, file: Analysis, program: AnalysedProgram
) -> tuple[Definition | None, Definition | None]:
    """The definitions of both sides of a dotted name."""
    owner, name = match["owner"], match["name"]
    if match["mark"] == "::":
        symbol = file.table.find("agent", owner)
        if symbol is not None and isinstance(symbol.node, n.Agent):
            return definition_of(symbol), handler_definition(symbol.node, name, program.home(symbol))
        return None, None
    if owner == "state":
        return None, field_definition(agent, name, file)
    skill, function = file.table.find("skill", owner), file.table.find("function", name)
    if skill is not None and function is not None and function.owner is skill.node:
        return definition_of(skill), definition_of(function)
    return None, None


def type_of_path(
    path: str, file: Analysis, program: AnalysedProgram, handler: n.Handler | None, agent: n.Agent | None
) -> n.Type | None:
    """The declared type of a value by its path, such as `args.ticket.tags[0]`, in a handler of an agent."""
    first, *more = re.findall(r"\w+|\[", path.removeprefix("this."))
    types = program.for_file(value_types, file)
    type: n.Type | None = None
    if first == "state" and agent is not None:
        declared = fields_of(agent).get(more.pop(0)) if more else None
        type = declared.type if declared is not None else None
    elif handler is not None:
        found = [each for each in types.variables if each.name == first and handler.span.encloses(each.span)]
        parameter = handler.parameters[0] if first == "args" and handler.parameters else None
        type = types.variables[found[-1]] if found else None if parameter is None else parameter.type
    while more and type is not None:
        step = more.pop(0)
        type = types.item_type(type) if step == "[" else types.field_type(type, step)
        del more[: step == "["]
    return type
