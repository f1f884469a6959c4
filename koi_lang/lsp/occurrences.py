"""The places of names in a program, and their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import skill_calls
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, prompts_in, prompts_of
from koi_lang.compiler.rules.scopes import is_state
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.tests import agent_of, handler_calls
from koi_lang.compiler.scope import Resolution, ScopeVariable
from koi_lang.compiler.symbols import FUNCTION, Kind, Symbol, own_symbols
from koi_lang.source import Source, Span


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a name; equal for the same thing at every place.

    Attributes:
        kind: of declarations that of their symbol; else `handler`, `field`, `variable`, `parameter` or `payload`.
        span: where its name stands in the file with that path.
        owner: the agent, handler or skill that it belongs to; empty for none.
        node: its declaration.
    """

    kind: str
    name: str
    path: str
    span: Span
    owner: str = field(default="", compare=False)
    node: n.Node | None = field(default=None, compare=False)
    source: Source | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in a file.

    Attributes:
        definitions: what it stands for; several for an event that several agents handle.
        is_shorthand: whether it stands for a key, too, as in `{ name }`.
    """

    span: Span
    definitions: tuple[Definition, ...]
    is_shorthand: bool = False


def occurrences(file: Analysis, program: AnalysedProgram) -> list[Occurrence]:
    """The names of a file outside of texts, in order; asked for by `program.for_file`."""
    found = _Collector(file, program)
    parts = (
        found.find_declarations(),
        found.find_names(),
        found.find_in_code(),
        found.find_calls(),
        found.find_skill_calls(),
        found.find_events(),
        found.find_fields(),
        found.find_types(),
    )
    unique = {each.span: each for part in parts for each in part if each.definitions}
    return sorted(unique.values(), key=lambda each: each.span)


def definition_of(symbol: Symbol) -> Definition:
    """The definition of a declaration."""
    owner = symbol.owner.name.name if symbol.owner is not None else ""
    path, source = symbol.unit.path, symbol.unit.source
    return Definition(symbol.kind, symbol.name, path, symbol.span, owner, symbol.node, source)


def handler_definition(agent: n.Agent, event: str, home: Analysis) -> Definition | None:
    """The definition of a handler of an agent."""
    handler = next((each for each in handlers(agent) if each.name.name == event), None)
    if handler is None:
        return None
    unit = home.unit
    return Definition("handler", event, unit.path, handler.name.span, agent.name.name, handler, unit.source)


def field_definition(agent: n.Agent, name: str, home: Analysis) -> Definition | None:
    """The definition of a field of the state of an agent."""
    found = fields_of(agent).get(name)
    if found is None:
        return None
    return Definition("field", name, home.unit.path, found.name.span, agent.name.name, found, home.unit.source)


def parameter_definition(parameter: n.PromptParameter, file: Analysis) -> Definition:
    """The definition of a parameter of a prompt."""
    name = parameter.name
    return Definition("parameter", name.name, file.unit.path, name.span, node=parameter, source=file.unit.source)


def variable_definition(variable: ScopeVariable, resolution: Resolution, file: Analysis) -> Definition:
    """The definition of a variable, a parameter, or a function that has its name in a scope."""
    function = resolution.declared.get(variable)
    span, unit = variable.span, file.unit
    if function is None:
        kind = "parameter" if variable.kind == "parameter" else "variable"
        return Definition(kind, variable.name, unit.path, span, source=unit.source)
    match = FUNCTION.search(unit.source.text, span.start, span.end)
    start = span.start if match is None else match.end()
    place = Span(start, start + len(variable.name))
    return Definition("function", variable.name, unit.path, place, node=function, source=unit.source)


class _Collector:
    def __init__(self, file: Analysis, program: AnalysedProgram) -> None:
        self.file = file
        self.program = program
        self.table = file.table

    def find_declarations(self) -> Iterator[Occurrence]:
        for symbol in own_symbols(self.file.unit):
            yield Occurrence(symbol.span, (definition_of(symbol),))
        for agent, _ in self.file.index.of(n.Agent):
            for handler in handlers(agent):
                definition = handler_definition(agent, handler.name.name, self.file)
                if definition is not None:
                    yield Occurrence(handler.name.span, (definition,))
            for name, each in fields_of(agent).items():
                definition = field_definition(agent, name, self.file)
                if definition is not None:
                    yield Occurrence(each.name.span, (definition,))

        for prompt, _ in self.file.index.of(n.Prompt):
            for parameter in prompt.parameters or ():
                yield Occurrence(parameter.name.span, (parameter_definition(parameter, self.file),))

    def find_names(self) -> Iterator[Occurrence]:
        """Names in declarations and at the places that take a name only."""
        of, table = self.file.index.of, self.table
        wanted: list[tuple[Kind, n.Name]] = [("role", agent.role) for agent, _ in of(n.Agent)]
        wanted += [("role", role) for send, _ in of(n.Send) for role in send.roles]
        wanted += [("agent", run.agent) for run, _ in of(n.Run)]
        wanted += [(kind, name) for uses, _ in of(n.Uses) if (kind := _kind_of(uses)) for name in uses.names]
        wanted += [("mcp", granted.server) for granted, _ in of(n.GrantedTools)]
        wanted += [("prompt", name) for playbook, _ in of(n.Playbook) for name in prompts_in(playbook.parts)]
        wanted += [("prompt", name) for prompt, _ in of(n.Prompt) for name in prompts_of(prompt)]
        wanted += [("agent", _inner(member.value)) for member, _ in of(n.TeamMember) if member.tool is None]
        for kind, name in wanted:
            symbol = table.find(kind, name.name)
            if symbol is not None:
                yield Occurrence(name.span, (definition_of(symbol),))

    def find_in_code(self) -> Iterator[Occurrence]:
        shorthand = self._shorthand()
        for resolution in self.file.code.values():
            for node, variable in resolution.variables.items():
                definition = variable_definition(variable, resolution, self.file)
                is_function = isinstance(node, n.Function)
                span = definition.span if is_function else Span(node.span.start, node.span.start + len(variable.name))
                if self.file.unit.source.text[span.start : span.end] == variable.name:  # those of guards stand nowhere
                    yield Occurrence(span, (definition,), span in shorthand)
            for name, places in resolution.outer.items():
                symbol = self.table.values.get(name) or self.table.roles.get(name)
                definitions = () if symbol is None else (definition_of(symbol),)
                yield from (Occurrence(place.span, definitions, place.span in shorthand) for place in places)

    def _shorthand(self) -> set[Span]:
        """Where a name is a key at the same time."""
        of = self.file.index.of
        found = {Span(*each.value.span) for each, _ in of(n.Property) if each.shorthand}
        elements = (each for each, _ in of(n.Element) if isinstance(each.key, str))
        return found | {each.pattern.span for each in elements if each.pattern.span.start == each.span.start}

    def find_calls(self) -> Iterator[Occurrence]:
        """Handlers that are called by `run`, in code, and by texts with their names."""
        of, file = self.file.index.of, self.file
        for run, _ in of(n.Run):
            yield from self._handler(run.handler, self.table.find("agent", run.agent.name))
        for _, name, symbol in handler_calls(file):
            yield from self._handler(name, symbol)
        for call, around in of(n.Call):
            match call:
                case n.Call(callee=n.Member(name="handle") as member, arguments=(n.Text() as event, *_)):
                    yield from self._handler(_inner(event), agent_of(member.object, around, file))
        named = [(each.name, around) for each, around in of(n.NamedPlaybook)]
        named += [(each.name, around) for each, around in of(n.Resilience)]
        for text, around in named:
            yield from self._own_handler(_inner(text), around.agent)
        for exposed, around in of(n.Exposed):
            yield from self._own_handler(exposed.handler, around.agent)

    def find_skill_calls(self) -> Iterator[Occurrence]:
        """Skills, and functions of theirs, that the texts of `callSkill` name."""
        for call in skill_calls(self.file, self.program):
            skill = self.table.find("skill", call.name.value)
            if skill is None or skill.node is not call.skills.get(skill.name):
                continue
            yield Occurrence(_inner(call.name).span, (definition_of(skill),))
            first = call.arguments[0] if call.arguments else None
            function = self.table.find("function", first.value) if isinstance(first, n.Text) else None
            if isinstance(first, n.Text) and function is not None and function.owner is skill.node:
                yield Occurrence(_inner(first).span, (definition_of(function),))

    def _handler(self, name: n.Name, symbol: Symbol | None) -> Iterator[Occurrence]:
        if symbol is not None and isinstance(symbol.node, n.Agent):
            definition = handler_definition(symbol.node, name.name, self.program.home(symbol))
            if definition is not None:
                yield Occurrence(name.span, (definition,))

    def _own_handler(self, name: n.Name, agent: n.Agent | None) -> Iterator[Occurrence]:
        definition = None if agent is None else handler_definition(agent, name.name, self.file)
        if definition is not None:
            yield Occurrence(name.span, (definition,))

    def find_events(self) -> Iterator[Occurrence]:
        """Events of `send`, each with all the handlers that may get it."""
        for send, _, target in targets(self.file, self.program):
            found = (handler_definition(agent, send.event, home) for agent, home in target.handling(send.event))
            definitions = tuple(each for each in found if each is not None)
            if definitions:
                yield Occurrence(Span(send.event_span.start + 1, send.event_span.end - 1), definitions)

    def find_fields(self) -> Iterator[Occurrence]:
        for member, around in self.file.index.of(n.Member):
            if around.agent is not None and is_state(member.object):
                definition = field_definition(around.agent, member.name, self.file)
                if definition is not None:
                    yield Occurrence(member.name_span, (definition,))

    def find_types(self) -> Iterator[Occurrence]:
        text = self.file.unit.source.text
        for type, _ in self.file.index.of(n.Type):
            symbol = self.table.types.get(type.name)
            if symbol is not None and text.startswith(type.name, type.span.start):
                yield Occurrence(Span(type.span.start, type.span.start + len(type.name)), (definition_of(symbol),))


def _kind_of(uses: n.Uses) -> Kind | None:
    """The kind of `uses`: skills, teams or servers."""
    kinds: dict[str, Kind] = {"skill": "skill", "team": "team", "mcp": "mcp"}
    return kinds.get(uses.kind)


def _inner(value: n.Name | n.Text | n.McpAddress | n.A2aAddress) -> n.Name:
    """A name, or a text that is one, without its quotes."""
    if isinstance(value, n.Text):
        start = value.span.start + 1 if value.start is None else value.start
        return n.Name(Span(start, start + len(value.value)), value.value)
    return value if isinstance(value, n.Name) else n.Name(value.span, "")
