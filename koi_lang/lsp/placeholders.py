"""The values behind placeholders in playbooks and prompts."""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.state import fields_of
from koi_lang.lsp.text_names import PATH, Prose, prose_of
from koi_lang.source import Span


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
                    if match.start() <= offset <= match.end():
                        said = _describe(match["root"], match["field"], prose)
                        return DescribedPlace(Span(*match.span()), f"`{{{{{match[0]}}}}}`\n\n{said}")
    return None


def _describe(root: str, field: str | None, prose: Prose) -> str:
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
        return _of_payload(root, field, handler)
    return _OF_ALL.get(root, "a name of the text")


def _of_payload(root: str, field: str | None, handler: n.Handler) -> str:
    """A field of the handler's payload."""
    parameter = handler.parameters[0] if handler.parameters else None
    type = parameter.type if parameter is not None else None
    fields = {each.name: each for each in type.fields} if type is not None else {}
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
