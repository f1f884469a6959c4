"""A program as a graph: agents, teams, roles, skills and servers, and what each has to do with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.compiler.calls.routines import Routine
from koi_lang.compiler.rules.program import handlers

NodeKind = Literal["run", "agent", "team", "skill", "server", "role"]
# `delegates`: a model may ask for it; `calls`: code does; `members`: of a team; `has`: the role of an agent.
EdgeKind = Literal["runs", "delegates", "calls", "uses", "members", "has"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Something that a program declares.

    Attributes:
        id: its kind and its name, which no other one has: `agent:Editor`.
        text: what it says of itself.
        role: of an agent.
        details: permissions of a role, handlers of an agent, functions of a skill.
    """

    id: str
    kind: NodeKind
    name: str
    text: str = ""
    role: str = ""
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """What one thing has to do with another, both by their ids.

    Attributes:
        labels: events, tools or keys that it is about.
    """

    source: str
    target: str
    kind: EdgeKind
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramGraph:
    """A program; the nodes stand in the order in which they were reached from what the first file declares."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def graph_of(files: Sequence[Analysis]) -> ProgramGraph:
    """What the first file of a program declares, and all that it leads to."""
    drawing = _Drawing(CallGraph(files))
    drawing.begin(files[0])
    edges: dict[tuple[str, str, EdgeKind], dict[str, None]] = {}
    for edge in drawing.edges:
        edges.setdefault((edge.source, edge.target, edge.kind), {}).update(dict.fromkeys(edge.labels))
    known = {edge[0] for edge in edges} | {edge[1] for edge in edges} | drawing.own
    nodes = tuple(node for node in drawing.nodes.values() if node.id in known)
    return ProgramGraph(nodes, tuple(GraphEdge(*edge, tuple(labels)) for edge, labels in edges.items()))


class _Drawing:
    """Nodes and edges as they are found, each thing once."""

    def __init__(self, calls: CallGraph) -> None:
        self.calls, self.program = calls, calls.program
        self.nodes: dict[str, GraphNode] = {}
        self.edges: list[GraphEdge] = []
        self.own: set[str] = set()

    def begin(self, file: Analysis) -> None:
        """Enter what a file declares, and what it runs."""
        for site in self.calls.runs():
            run = self.add(GraphNode("run:run", "run", "run"))
            for target in site.targets:
                self.lead(run, "runs", target)
        for agent, _ in file.index.of(n.Agent):
            self.own.add(self.agent(agent, file))
        for team, _ in file.index.of(n.Team):
            self.own.add(self.team(team, file))
        for skill, _ in file.index.of(n.Skill):
            self.own.add(self.skill(skill))

    def add(self, node: GraphNode) -> str:
        """Enter a node; gives its id."""
        self.nodes.setdefault(node.id, node)
        return node.id

    def connect(self, source: str, target: str, kind: EdgeKind, *labels: str) -> None:
        """Enter an edge."""
        self.edges.append(GraphEdge(source, target, kind, labels))

    def lead(self, source: str, kind: EdgeKind, target: Routine) -> None:
        """Enter an edge to whoever has a routine; functions within others are part of them."""
        event = target.name.rpartition(".")[2]
        if target.agent is not None and target.is_handler:
            self.connect(source, self.agent(target.agent, target.file), kind, event)
        elif target.skill is not None and (id := self.skill(target.skill)) != source:
            self.connect(source, id, kind, event)

    # ------------------------------------------------------------ declarations

    def agent(self, agent: n.Agent, file: Analysis) -> str:
        """An agent with all that it has to do with."""
        id = f"agent:{agent.name.name}"
        if id in self.nodes:
            return id
        lines = tuple(f"{each.name.name} ({'playbook' if each.playbook else 'code'})" for each in handlers(agent))
        self.add(GraphNode(id, "agent", agent.name.name, _affordance(agent.items), agent.role.name, lines))
        self.connect(id, self.role(agent, file), "has")
        for item in agent.items:
            if isinstance(item, n.Uses):
                self.use(id, item, file)
        for routine in self.calls.routines:
            if routine.agent is agent:
                self.lead_on(id, routine)
        return id

    def use(self, id: str, uses: n.Uses, file: Analysis) -> None:
        """Teams, skills and servers that an agent uses; of servers what is granted."""
        granted = {each.server.name: tuple(text.value for text in each.patterns) for each in uses.tools}
        for name in uses.names:
            if uses.kind == "mcp":
                self.connect(id, self.server(name.name), "uses", *granted.get(name.name, ()))
            elif uses.kind == "team" and (team := self.program.team(name.name, file)) is not None:
                self.connect(id, self.team(*team), "uses")
            elif uses.kind == "skill" and (symbol := file.table.find("skill", name.name)) is not None:
                if isinstance(symbol.node, n.Skill):
                    skill = self.skill(symbol.node)
                else:  # of instructions in files
                    skill = self.add(GraphNode(f"skill:{name.name}", "skill", name.name))
                self.connect(id, skill, "uses")

    def lead_on(self, id: str, routine: Routine) -> None:
        """Whom a routine calls, or its model may ask for."""
        for site in self.calls.calls(routine).sites:
            for target in site.targets:
                # What a model may do with the skills of its agent is told by the use of them.
                if not site.by_model or target.is_handler:
                    self.lead(id, "delegates" if site.by_model else "calls", target)

    def role(self, agent: n.Agent, file: Analysis) -> str:
        """The role of an agent with its permissions."""
        symbol = self.program.role_of(agent, file)
        node = None if symbol is None else symbol.node
        allowed = tuple(name.name for name in node.capabilities) if isinstance(node, n.Role) else ()
        return self.add(GraphNode(f"role:{agent.role.name}", "role", agent.role.name, details=allowed))

    def team(self, team: n.Team, home: Analysis) -> str:
        """A team with its members: agents, and tools of servers."""
        id = f"team:{team.name.name}"
        if id in self.nodes:
            return id
        self.add(GraphNode(id, "team", team.name.name))
        for member in team.members:
            entry = self.program.agent_of(member, home)
            if entry is not None:
                self.connect(id, self.agent(*entry), "members", member.key.name)
            elif member.tool is not None:
                self.connect(id, self.server(member.tool[0]), "members", f"{member.key.name}: {member.tool[1]}")
            elif member.remote is not None:
                self.connect(id, self.server(member.remote), "members", member.key.name)
        return id

    def skill(self, skill: n.Skill) -> str:
        """A skill with its exported functions, and what these call."""
        id = f"skill:{skill.name.name}"
        if id in self.nodes:
            return id
        self.add(GraphNode(id, "skill", skill.name.name, _affordance(skill.items), details=tuple(_functions(skill))))
        for routine in self.calls.routines:
            if routine.skill is skill and routine.agent is None:
                self.lead_on(id, routine)
        return id

    def server(self, name: str) -> str:
        """An MCP server, which a file of the folder may describe, or an agent of another program."""
        return self.add(GraphNode(f"server:{name}", "server", name))


def _affordance(items: Sequence[n.Node]) -> str:
    return next((item.text.value for item in items if isinstance(item, n.Affordance)), "")


def _functions(skill: n.Skill) -> Iterator[str]:
    """The exported functions of a skill, with the permission that each needs."""
    for item in skill.items:
        if isinstance(item, n.Function) and item.exported:
            needed = skill.permission_of(item)
            yield f"{item.name}" if needed is None else f"{item.name} (needs {needed.name})"
