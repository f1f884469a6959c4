"""All files of a program to answers that need more than one of them: members, teams, roles, users of prompts."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.cycles import nodes_on_cycles
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.rules.fixes import add_import, add_permission, export_prompt
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.symbols import Kind, Symbol, own_symbols
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import Advice, LabeledSpan, nearest, replacement, suggestion
from koi_lang.source import Span

Made = TypeVar("Made")
Library: TypeAlias = Callable[[], Mapping[str, str]]
WORDS: dict[Kind, str] = {"mcp": "mcp server", "module": "Python module"}


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A handler whose playbook contains a prompt, directly or through other prompts."""

    file: Analysis
    around: Enclosing


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The agents of a team, each with the file that declares it: all of them, and by the events they handle."""

    agents: list[tuple[n.Agent, Analysis]]
    by_event: dict[str, list[tuple[n.Agent, Analysis]]]


class AnalysedProgram:
    """The analysed files of a program; the first is the one that was asked for."""

    def __init__(self, files: tuple[Analysis, ...], library: Library = dict) -> None:
        self.files, self._library = files, library
        self._made: dict[tuple[object, Analysis], Any] = {}
        self._members: dict[n.Team, Members | None] = {}
        self._by_path = {file.unit.path: file for file in files}

    @cached_property
    def library(self) -> Mapping[str, str]:
        """What the parts of the standard library offer: names, and what an import of their part is written."""
        return self._library()

    def is_complete(self, file: Analysis) -> bool:
        """Whether a file is the one that starts the program, so that nobody else uses what it declares."""
        return file is self.files[0] and self.starts

    @cached_property
    def starts(self) -> bool:
        """Whether the first file has a `run`; without one the files are a library."""
        return bool(self.files[0].index.of(n.Run))

    def for_file(self, make: Callable[[Analysis, AnalysedProgram], Made], file: Analysis) -> Made:
        """What a function finds out about a file; it is asked once, however many rules want to know."""
        if (make, file) not in self._made:
            self._made[make, file] = make(file, self)
        made: Made = self._made[make, file]
        return made

    def home(self, symbol: Symbol) -> Analysis:
        """The file that declares a symbol."""
        return self._by_path[symbol.unit.path]

    def role_of(self, agent: n.Agent, file: Analysis) -> Symbol | None:
        """The role of an agent that a file declares."""
        return file.table.find("role", agent.role.name)

    def teams_of(self, agent: n.Agent, file: Analysis) -> list[tuple[n.Team, Analysis]] | None:
        """Whom `peers` means: the teams an agent uses, else those that list it; None when one of them is unknown."""
        names = [
            name.name for item in agent.items if isinstance(item, n.Uses) and item.kind == "team" for name in item.names
        ]
        if not names:
            return self._teams_of_agents.get(agent, [])
        found = [self.team(name, file) for name in names]
        return None if None in found else [entry for entry in found if entry is not None]

    def team(self, name: str, file: Analysis) -> tuple[n.Team, Analysis] | None:
        """A team by the name a file knows it by."""
        symbol = file.table.find("team", name)
        return (symbol.node, self.home(symbol)) if symbol is not None and isinstance(symbol.node, n.Team) else None

    @cached_property
    def _teams_of_agents(self) -> dict[n.Agent, list[tuple[n.Team, Analysis]]]:
        """For each agent the teams that it is a member of."""
        found: dict[n.Agent, list[tuple[n.Team, Analysis]]] = {}
        teams = [(team, file) for file in self.files for team, _ in file.index.of(n.Team)]
        for team, home in teams:
            for member in team.members:
                entry = self.agent_of(member, home)
                if entry is not None:
                    found.setdefault(entry[0], []).append((team, home))
        return found

    def members(self, team: n.Team, home: Analysis) -> Members | None:
        """The agents of a team; None when a member is no agent of this program."""
        if team not in self._members:
            found = [self.agent_of(member, home) for member in team.members]
            agents = [entry for entry in found if entry is not None]
            self._members[team] = None if None in found else Members(agents, _by_event(agents))
        return self._members[team]

    def agent_of(self, member: n.TeamMember, home: Analysis) -> tuple[n.Agent, Analysis] | None:
        """The agent that a member of a team is; None for tools of servers, and for agents of other programs."""
        if isinstance(member.value, n.McpAddress | n.A2aAddress):
            return None
        name = member.value.name if isinstance(member.value, n.Name) else member.value.value
        symbol = home.table.find("agent", name)
        return (symbol.node, self.home(symbol)) if symbol is not None and isinstance(symbol.node, n.Agent) else None

    @cached_property
    def permissions(self) -> dict[n.Node, str]:
        """The permissions that exported functions of skills need, by the function."""
        skills = (skill for file in self.files for skill, _ in file.index.of(n.Skill))
        exported = ((skill, item) for skill in skills for item in skill.items if isinstance(item, n.Function))
        found = ((function, skill.permission_of(function)) for skill, function in exported if function.exported)
        return {function: permission.name for function, permission in found if permission is not None}

    @cached_property
    def uses(self) -> dict[n.Node, list[Use]]:
        """For each prompt the handlers whose playbooks contain it."""
        found: dict[n.Node, list[Use]] = {}
        for file in self.files:
            for playbook, around in file.index.of(n.Playbook):
                for symbol in self.collect_prompts(prompts_in(playbook.parts), file):
                    found.setdefault(symbol.node, []).append(Use(file, around))
        return found

    def collect_prompts(self, names: list[n.Name], file: Analysis) -> list[Symbol]:
        """The prompts behind some names and all prompts inside of them, each once."""
        found: dict[n.Node, Symbol] = {}
        waiting = [(name, file) for name in names]
        while waiting:
            name, home = waiting.pop()
            symbol = home.table.find("prompt", name.name)
            if symbol is None or symbol.node in found:
                continue
            found[symbol.node] = symbol
            waiting += [(inner, self.home(symbol)) for inner in prompts_of(symbol.node)]
        return list(found.values())

    @cached_property
    def recursive_prompts(self) -> set[n.Node]:
        """The prompts that are made of prompts that lead back to them."""
        prompts = [(prompt, file) for file in self.files for prompt, _ in file.index.of(n.Prompt)]
        return nodes_on_cycles({prompt: self._parts(prompt, file) for prompt, file in prompts})

    def _parts(self, prompt: n.Prompt, file: Analysis) -> list[n.Node]:
        symbols = [file.table.find("prompt", name.name) for name in prompts_of(prompt)]
        return [symbol.node for symbol in symbols if symbol is not None]

    @cached_property
    def _symbols_by_name(self) -> dict[tuple[Kind, str], Symbol]:
        symbols = [symbol for file in self.files for symbol in own_symbols(file.unit)]
        return {(symbol.kind, symbol.name): symbol for symbol in reversed(symbols)}

    def elsewhere(self, kind: Kind, name: str) -> Symbol | None:
        """A declaration that some file of the program has."""
        return self._symbols_by_name.get((kind, name))

    def advice(self, kind: Kind, place: n.Name, file: Analysis) -> Advice:
        """What to do about a name that a file does not know: import it, or write the nearest name."""
        name, known = place.name, file.table.names(kind)
        symbol = self.elsewhere(kind, name)
        if symbol is None and name in self.library:
            part = self.library[name]
            return Advice(f'`{part}` has it: write `import "{part}"`.', (add_import(part, file.unit),))
        if symbol is None or symbol.unit is file.unit:
            fixes = replacement(file.unit.source, place.span, nearest(name, known))
            return Advice(suggestion(name, known, WORDS.get(kind, kind)), fixes)
        path = import_path(symbol.unit, file.unit)
        if kind == "mcp":
            return Advice(f"`{path}` declares it, but an import does not bring mcp servers along; declare it here too.")
        if isinstance(symbol.node, n.Prompt) and not symbol.node.exported:
            fix = export_prompt(symbol.node, symbol.unit.source)
            return Advice(f"write `export prompt {name}` in `{path}`.", (fix,))
        return Advice(f'`{path}` declares it: write `import "{path}"`.', (add_import(path, file.unit),))


def prompts_in(parts: tuple[n.Text | n.Name | n.PromptCall, ...]) -> list[n.Name]:
    """The names of prompts that a playbook is put together from."""
    named = (part.name if isinstance(part, n.PromptCall) else part for part in parts)
    return [part for part in named if isinstance(part, n.Name)]


def prompts_of(node: n.Node) -> list[n.Name]:
    """The names of prompts that a prompt is made of."""
    if not isinstance(node, n.Prompt):
        return []
    if isinstance(node.value, n.Compose):
        return [prompt for _, prompt in node.value.fragments]
    return [part for part in node.value if isinstance(part, n.Name)]


def texts_of(prompt: n.Prompt) -> list[n.Text]:
    """The texts that a prompt itself is made of."""
    if isinstance(prompt.value, n.Compose):
        return [prompt.value.template] if prompt.value.template is not None else []
    return [part for part in prompt.value if isinstance(part, n.Text)]


def handlers(agent: n.Agent) -> Iterator[n.Handler]:
    """The handlers of an agent in source order, without its guards."""
    return (item for item in agent.items if isinstance(item, n.Handler) and not item.guard)


def attempts_of(file: Analysis) -> list[Span]:
    """Where a failure is expected: in a `try` with `catch`, and in `expect … fails`."""
    caught = [attempt.body.span for attempt, _ in file.index.of(n.Try) if attempt.handler is not None]
    return caught + [expect.span for expect, _ in file.index.of(n.Expect) if expect.failure is not None]


def _by_event(agents: list[tuple[n.Agent, Analysis]]) -> dict[str, list[tuple[n.Agent, Analysis]]]:
    found: dict[str, list[tuple[n.Agent, Analysis]]] = {}
    for agent, home in agents:
        for event in dict.fromkeys(handler.name.name for handler in handlers(agent)):
            found.setdefault(event, []).append((agent, home))
    return found


def is_named(node: n.Node, name: str) -> bool:
    """Whether a node is a certain name."""
    return isinstance(node, n.Name) and node.name == name


def variable_of(node: n.Node, around: Enclosing, file: Analysis) -> ScopeVariable | None:
    """The variable that a name in code, or the pattern of a declaration, stands for."""
    resolution = None if around.root is None else file.code.get(around.root)
    return None if resolution is None else resolution.variables.get(node)


def is_variable(name: n.Name, around: Enclosing, file: Analysis) -> bool:
    """Whether a name in code stands for a variable rather than a declaration."""
    return variable_of(name, around, file) is not None


def with_article(kind: Kind) -> str:
    """A kind of declaration as a sentence mentions it: `a team`, `an agent`."""
    word = WORDS.get(kind, kind)
    return f"an {word}" if word.startswith(("a", "mcp")) else f"a {word}"


def with_permission(symbol: Symbol, permission: str) -> Advice:
    """What to write so that a role has one permission more."""
    role = symbol.node
    assert isinstance(role, n.Role)
    can = ", ".join(
        f"can {name.replace(':', ': ')}" for name in (*(each.name for each in role.capabilities), permission)
    )
    help = f"write `role {role.name.name} {{ {can} }}`."
    return Advice(help, (add_permission(role, permission, symbol.unit.source),))


def place_of(symbol: Symbol, label: str) -> LabeledSpan:
    """Where a symbol is declared, with what there is to say about it."""
    return LabeledSpan(symbol.unit.source, symbol.span, label)


def import_path(unit: Unit, seen_from: Unit) -> str:
    """The path of a file as an import in another one writes it."""
    path = posixpath.relpath(unit.path, posixpath.dirname(seen_from.path) or ".")
    return path if path.startswith("../") else f"./{path}"
