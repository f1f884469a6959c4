"""A playbook sentence by sentence: what the rehearsal would do, what the checks see in it, and what they say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram, handlers
from koi_lang.compiler.rules.prose.abilities import Abilities, abilities_of
from koi_lang.compiler.rules.prose.delegations import asked_in
from koi_lang.compiler.rules.prose.permissions import needed_in
from koi_lang.compiler.rules.prose.playbooks import PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.static_rehearsal import ProposedStep, rehearse
from koi_lang.compiler.rules.state import fields_of
from koi_lang.diagnostics import Diagnostic, LabeledSpan
from koi_lang.source import Span

DOTTED = re.compile(r"(?<![\w.$@/:-])([A-Za-z_]\w*)(\.|::)([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class MentionedName:
    """A name in a sentence with its declaration; `kind` is how a message calls it."""

    name: str
    kind: str
    declared: LabeledSpan


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """What is understood of one sentence.

    Attributes:
        line: of the file, from 1.
        steps: what the rehearsal sees in it; empty for what only governs the sentences below it.
        permissions: what it takes, and whether the role of the agent has it.
    """

    line: int
    text: str
    steps: tuple[ProposedStep, ...]
    names: tuple[MentionedName, ...]
    permissions: Mapping[str, bool]
    warnings: tuple[Diagnostic, ...]

    @property
    def needs_model(self) -> bool:
        """Whether the rehearsal leaves something of it to a model."""
        return any(step.needs_model for step in self.steps)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "line": self.line,
            "text": self.text,
            "actions": [dict(step.action) for step in self.steps if step.action is not None],
            "needs_model": self.needs_model,
            "refused": [step.refused for step in self.steps if step.refused],
            "names": [
                {"name": each.name, "kind": each.kind, "path": each.declared.source.path, "line": _line(each.declared)}
                for each in self.names
            ],
            "permissions": dict(self.permissions),
            "warnings": [warning.as_data() for warning in self.warnings],
        }


def playbook_of(agent: str, event: str, program: AnalysedProgram) -> list[PlaybookText]:
    """The texts of the playbook of a handler; empty where there is none."""
    return [
        text
        for file in program.files
        for text in program.for_file(playbook_texts, file)
        if text.agent.name.name == agent
        and isinstance(text.around.function, n.Handler)
        and text.around.function.name.name == event
    ]


def playbooks_in(program: AnalysedProgram) -> list[str]:
    """The handlers of a program that are playbooks, as `Agent.handler`."""
    texts = (text for file in program.files for text in program.for_file(playbook_texts, file))
    named = ((text.agent.name.name, text.around.function) for text in texts)
    return list(dict.fromkeys(f"{agent}.{node.name.name}" for agent, node in named if isinstance(node, n.Handler)))


def read_playbook(
    text: PlaybookText, program: AnalysedProgram, actions: Sequence[str], problems: Sequence[Diagnostic]
) -> Iterator[SentenceReading]:
    """What is understood of each sentence of a text.

    Args:
        actions: the names of the actions that the agent may use.
        problems: what is wrong with the program.
    """
    abilities = program.for_file(abilities_of, text.file)[text.agent]
    declared = dict(_declarations(text, abilities))
    steps = list(rehearse(text, abilities, actions))
    needed = [] if text.answers else [*_permissions(text, abilities, program)]
    for sentence in text.sentences:
        start, end = sentence.start, sentence.start + len(sentence.written)
        place = text.place(start, end)
        yield SentenceReading(
            line=text.file.unit.source.position(place.start).line,
            text=" ".join(sentence.written.split()),
            steps=tuple(step for step in steps if step.start == start),
            names=tuple(_names(text, (start, end), declared, program)),
            permissions={name: has for name, at, has in needed if start <= at < end},
            warnings=tuple(each for each in problems if _is_about(each, place, text.file)),
        )


def _is_about(problem: Diagnostic, place: Span, file: Analysis) -> bool:
    is_here = problem.place.source.path == file.unit.path
    return is_here and place.start <= problem.place.span.start < place.end


def _permissions(text: PlaybookText, abilities: Abilities, program: AnalysedProgram) -> Iterator[tuple[str, int, bool]]:
    """The permissions that sentences take, where they do, and whether the agent has them."""
    for needed, capability in needed_in(text):
        yield needed.permission, needed.start, abilities.may(capability.means)
    for asked in program.for_file(asked_in, text.file)[text]:
        if asked.who in (abilities.members or ()):
            yield "delegate", asked.start, abilities.may(["delegate"])


def _names(
    text: PlaybookText, span: tuple[int, int], declared: Mapping[str, MentionedName], program: AnalysedProgram
) -> Iterator[MentionedName]:
    """The names in a piece of a text that something declares, each once."""
    start, end = span
    found = ["".join(match.groups()) for match in DOTTED.finditer(text.text.value, start, end)]
    asked = (each.who for each in program.for_file(asked_in, text.file)[text] if start <= each.name_start < end)
    for name in dict.fromkeys([*found, *asked]):
        if name in declared:
            yield declared[name]


def _declarations(text: PlaybookText, abilities: Abilities) -> Iterator[tuple[str, MentionedName]]:
    """What a sentence may name, by how it is written."""
    for name, kind, file, span in _find_declared(text, abilities):
        yield name, MentionedName(name, kind, LabeledSpan(file.unit.source, span))


def _find_declared(text: PlaybookText, abilities: Abilities) -> Iterator[tuple[str, str, Analysis, Span]]:
    file, handler = text.file, text.around.function
    for name, field in fields_of(text.agent).items():
        yield f"state.{name}", "field of the state", file, field.name.span
    parameter = handler.parameters[0] if isinstance(handler, n.Handler) and handler.parameters else None
    for each in parameter.type.fields if parameter is not None and parameter.type is not None else ():
        yield f"args.{each.name}", "field of the payload", file, each.span
    for key, (member, home) in (abilities.members or {}).items():
        yield key, "member", home, member.name.span
        for event in handlers(member):
            yield f"{key}::{event.name.name}", "event", home, event.name.span
    for skill, functions in abilities.functions.items():
        symbol = file.table.find("skill", skill)
        home = abilities.program.home(symbol) if symbol is not None else file
        for function in functions:
            yield f"{skill}.{function.name}", "function", home, function.span
    for server, tools in abilities.tools.items():
        uses = next(item for item in text.agent.items if isinstance(item, n.Uses) and server in _server_names(item))
        for tool in tools or ():
            yield f"{server}.{tool}", "tool", file, uses.span


def _server_names(uses: n.Uses) -> list[str]:
    return [name.name for name in uses.names] if uses.kind == "mcp" else []


def _line(place: LabeledSpan) -> int:
    return place.source.position(place.span.start).line
