"""The call graph of a program: its routines, whom each calls, and whom models may ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.calls.finding import calls_in, calls_in_expression
from koi_lang.compiler.calls.routines import Calls, CallSite, CodePlace, Often, Routine
from koi_lang.compiler.rules.program import AnalysedProgram, handlers
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.symbols import Symbol

BY_MODEL = Often(None, "as often as its model likes")


class CallGraph:
    """The routines of the files of a program, and the calls in them.

    Attributes:
        routines: handlers and functions that have a name, files in their order, in source order.
    """

    def __init__(self, files: Sequence[Analysis]) -> None:
        self.program = AnalysedProgram(tuple(files))
        self.routines = [routine for file in files for routine in _routines(file)]
        self._by_node = {routine.node: routine for routine in self.routines}
        self._sent = {send: found for file in files for send, _, found in targets(file, self.program)}
        self._homes = {agent: file for file in files for agent, _ in file.index.of(n.Agent)}
        self._calls: dict[Routine, Calls] = {}

    def calls(self, routine: Routine) -> Calls:
        """What a routine calls; what the model of a playbook may ask for is among it."""
        if routine not in self._calls:
            found = calls_in(routine, self)
            asked = () if routine.playbook is None else tuple(self._asked_by_model(routine))
            self._calls[routine] = Calls((*found.sites, *asked), found.outside)
        return self._calls[routine]

    def handler(self, agent: str, event: str) -> Routine | None:
        """The handler of an agent, by the names."""
        name = f"{agent}.{event}"
        return next((each for each in self.routines if each.name == name and isinstance(each.node, n.Handler)), None)

    def runs(self) -> list[CallSite]:
        """The calls that the `run` statements of the first file make, those in what they pass on included."""
        file = self.program.files[0]
        found: list[CallSite] = []
        for run, _ in file.index.of(n.Run):
            for argument in run.arguments:
                own = Routine("run", run, file, argument)
                found += calls_in_expression(argument, own, self).sites
            agent = file.table.find("agent", run.agent.name)
            meant = [] if agent is None else self.of_agent(agent, run.handler.name)
            if meant:
                found.append(CallSite(tuple(meant), Often(), CodePlace(file.unit.source, run.span)))
        return found

    def reachable(self, routine: Routine) -> list[Routine]:
        """A routine and all that it may lead to, each once, the nearest first."""
        found, waiting = {routine: None}, [routine]
        while waiting:
            for site in self.calls(waiting.pop(0)).sites:
                new = [target for target in site.targets if target not in found]
                found |= dict.fromkeys(new)
                waiting += new
        return list(found)

    def members(self, agent: n.Agent, file: Analysis) -> list[tuple[str, n.Agent, Analysis]]:
        """Whom the model of an agent may ask, under which key: the members of its teams, each once, without itself."""
        found: dict[n.Agent, tuple[str, n.Agent, Analysis]] = {}
        for team, home in self._teams(agent, file):
            for member in team.members:
                entry = self.program.agent_of(member, home)
                if entry is not None and entry[0] is not agent and any(handlers(entry[0])):
                    found.setdefault(entry[0], (member.key.name, *entry))
        return list(found.values())

    def may(self, agent: n.Agent, permission: str, file: Analysis) -> bool:
        """Whether the role of an agent has a permission; of a role that is not declared nothing is known."""
        role = self.program.role_of(agent, file)
        return role is None or not isinstance(role.node, n.Role) or role.node.has_permission(permission)

    def has_servers(self, agent: n.Agent) -> bool:
        """Whether an agent uses MCP servers, or has tools of them among the members of its teams."""
        file = self._homes[agent]
        uses = any(isinstance(item, n.Uses) and item.kind == "mcp" for item in agent.items)
        return uses or any(member.tool is not None for team, _ in self._teams(agent, file) for member in team.members)

    # ------------------------------------------------------------ as `Routines`

    def of_agent(self, agent: Symbol, event: str = "") -> list[Routine]:
        """The handlers of an agent for an event; without a name all."""
        return self._handlers(agent.node, event) if isinstance(agent.node, n.Agent) else []

    def of_node(self, node: n.Node) -> Routine | None:
        """The routine that a node is."""
        return self._by_node.get(node) if isinstance(node, (n.Handler, n.Function)) else None

    def of_skills(self, caller: Routine, skill: str = "", function: str = "") -> list[Routine]:
        """The exported functions of the skills that the agent of a routine uses, of one of them, or one."""
        if caller.agent is None:
            return []
        used = [item for item in caller.agent.items if isinstance(item, n.Uses) and item.kind == "skill"]
        names = [name.name for item in used for name in item.names if not skill or name.name == skill]
        found = [caller.file.table.find("skill", name) for name in names]
        nodes = [each.node for each in found if each is not None and isinstance(each.node, n.Skill)]
        functions = [item for node in nodes for item in node.items if isinstance(item, n.Function) and item.exported]
        return [self._by_node[each] for each in functions if not function or each.name == function]

    def sent_to(self, caller: Routine, send: n.Send) -> list[Routine]:
        """Those whom a send may mean; of a send whose team is computed, everybody who handles the event."""
        known = self._sent.get(send)
        everybody = [agent for file in self.program.files for agent, _ in file.index.of(n.Agent)]
        agents = everybody if known is None else [agent for agent, _ in known.handling(send.event)]
        of_role = [each for each in dict.fromkeys(agents) if send.role is None or each.role.name == send.role.name]
        return [routine for agent in of_role for routine in self._handlers(agent, send.event)]

    def of_peers(self, caller: Routine, event: str = "") -> list[Routine]:
        """The handlers of the team members of the agent of a routine."""
        members = () if caller.agent is None else self.members(caller.agent, caller.file)
        return [routine for _, agent, _ in members for routine in self._handlers(agent, event)]

    # ------------------------------------------------------------ inside

    def _handlers(self, agent: n.Agent, event: str = "") -> list[Routine]:
        return [self._by_node[each] for each in handlers(agent) if not event or each.name.name == event]

    def _teams(self, agent: n.Agent, file: Analysis) -> list[tuple[n.Team, Analysis]]:
        """The teams that an agent uses, else the first one that lists it, as a run has it."""
        used = [item for item in agent.items if isinstance(item, n.Uses) and item.kind == "team"]
        if not used:
            return (self.program.teams_of(agent, file) or [])[:1]
        found = [self.program.team(name.name, file) for item in used for name in item.names]
        return [team for team in found if team is not None]

    def _asked_by_model(self, routine: Routine) -> Iterator[CallSite]:
        """The handlers of members, and the functions of skills, that the model of a playbook may ask for."""
        assert routine.agent is not None
        place = CodePlace(routine.file.unit.source, routine.node.span)
        asked = self.of_peers(routine) if self.may(routine.agent, "delegate", routine.file) else []
        for target in (*asked, *self._permitted_functions(routine, routine.agent)):
            yield CallSite((target,), BY_MODEL, place, by_model=True)

    def _permitted_functions(self, routine: Routine, agent: n.Agent) -> list[Routine]:
        needed = self.program.permissions
        return [
            function
            for function in self.of_skills(routine)
            if function.node not in needed or self.may(agent, needed[function.node], routine.file)
        ]


def _routines(file: Analysis) -> Iterator[Routine]:
    """The handlers of a file, then its functions that have a name."""
    for handler, around in file.index.of(n.Handler):
        assert around.agent is not None
        name = f"{around.agent.name.name}.{handler.name.name}"
        yield Routine(name, handler, file, handler, around.agent, around.skill, handler.playbook)
    declared = {function for resolution in file.code.values() for function in resolution.declared.values()}
    for function, around in file.index.of(n.Function):
        if function.name is not None and (function in declared or function.exported):
            owner = f"{around.skill.name.name}." if around.skill is not None and function.exported else ""
            yield Routine(
                f"{owner}{function.name}", function, file, around.root or function, around.agent, around.skill
            )
