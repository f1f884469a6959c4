"""What an agent can have done: by its role, functions of skills, tools of servers, and members of its teams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.symbols import Symbol
from koi_lang.grants import permits


@dataclass(frozen=True, eq=False)
class Abilities:
    """What one agent has to do its work with.

    Attributes:
        role: None where the role is not known.
    """

    agent: n.Agent
    file: Analysis
    program: AnalysedProgram

    @cached_property
    def role(self) -> Symbol | None:
        """Its role, unless that is not known."""
        role = self.program.role_of(self.agent, self.file)
        return role if role is not None and isinstance(role.node, n.Role) else None

    def may(self, permissions: Iterable[str]) -> bool:
        """Whether the role holds one of some permissions, or is not known."""
        return self.role is None or _holds(self.role.node, permissions)

    @cached_property
    def members(self) -> dict[str, tuple[n.Agent, Analysis]] | None:
        """Others whom it could delegate to, by their keys; None where they are not all known."""
        teams = self.program.teams_of(self.agent, self.file)
        if teams is None or any(self.program.members(team, home) is None for team, home in teams):
            return None
        found: dict[str, tuple[n.Agent, Analysis]] = {}
        for team, home in teams:
            members = self.program.members(team, home)
            for member, entry in zip(team.members, members.agents if members else (), strict=False):
                if entry[0] is not self.agent:
                    found[member.key.name] = entry
        return found

    @cached_property
    def tools(self) -> dict[str, tuple[str, ...] | None]:
        """The tools that it is granted, by server; None where they are not all known by name."""
        found: dict[str, tuple[str, ...] | None] = {}
        for uses in self._uses("mcp"):
            granted = {each.server.name: tuple(pattern.value for pattern in each.patterns) for each in uses.tools}
            for name in uses.names:
                patterns = granted.get(name.name)
                found[name.name] = None if patterns is None or any("*" in each for each in patterns) else patterns
        return found

    @cached_property
    def functions(self) -> dict[str, tuple[n.Function, ...]]:
        """The exported functions of the skills that it uses, by skill."""
        symbols = [self.file.table.find("skill", name.name) for uses in self._uses("skill") for name in uses.names]
        skills = [symbol.node for symbol in symbols if symbol is not None and isinstance(symbol.node, n.Skill)]
        return {skill.name.name: tuple(_find_exported(skill)) for skill in skills}

    def can_have_done(self, means: Sequence[str], words: Sequence[str]) -> bool:
        """Whether something that takes one of some permissions may be done by its tools, its skills or a member."""
        uses_files = any(not uses.names for uses in self.agent.items if isinstance(uses, n.Uses))
        if uses_files or None in self.tools.values() or self._has_function_like(words):
            return True
        if self.role is None or not _holds(self.role.node, ["delegate"]):
            return False
        return self.members is None or any(
            Abilities(agent, home, self.program).may(means) for agent, home in self.members.values()
        )

    def _has_function_like(self, words: Sequence[str]) -> bool:
        tools = [name for names in self.tools.values() for name in names or ()]
        functions = [function.name or "" for each in self.functions.values() for function in each]
        return any(word in name.lower() for word in words for name in (*tools, *functions))

    def _uses(self, kind: str) -> Iterator[n.Uses]:
        return (item for item in self.agent.items if isinstance(item, n.Uses) and item.kind == kind)


def abilities_of(file: Analysis, program: AnalysedProgram) -> dict[n.Agent, Abilities]:
    """The abilities of each agent of a file; asked for by `program.for_file`."""
    return {agent: Abilities(agent, file, program) for agent, _ in file.index.of(n.Agent)}


def _find_exported(skill: n.Skill) -> Iterator[n.Function]:
    return (item for item in skill.items if isinstance(item, n.Function) and item.exported and item.name)


def _holds(role: n.Node, permissions: Iterable[str]) -> bool:
    """Whether a role holds one of some permissions, also for something in particular."""
    names = [name.name for name in role.capabilities] if isinstance(role, n.Role) else []
    return any(permits(names, each) or any(name.startswith(f"{each}:") for name in names) for each in permissions)
