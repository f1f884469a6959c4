"""Declarations of programs: agents with their handlers, roles, teams, MCP servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from koi_lang.diagnostics import nearest
from koi_lang.grants import covers, permits
from koi_lang.runtime.agents.result_types import ResultType
from koi_lang.runtime.budget.limits import NO_BUDGET, Budget
from koi_lang.runtime.schema import convert

if TYPE_CHECKING:
    from koi_lang.runtime.agents.skills import Skill
    from koi_lang.runtime.guidance.skill_places import SkillFolder


@dataclass(frozen=True, slots=True)
class Role:
    """A set of capabilities under a name; roles of one name are the same role.

    Attributes:
        bounds: the roles that a call is narrowed to; all of them have to allow what the role allows.
        denied: permissions that it lacks whatever it has.
        is_open: whether it has every other permission.
    """

    name: str
    capabilities: tuple[str, ...]
    bounds: tuple[Role, ...] = ()
    denied: tuple[str, ...] = ()
    is_open: bool = False

    def __repr__(self) -> str:
        return f"[Role: {self.name}]"

    def allows(self, permission: str | None) -> bool:
        """Whether the role has a permission such as `execute` or `registry:read`; None needs no permission."""
        return self.lacking(permission) is None

    def lacking(self, permission: str | None) -> Role | None:
        """Which role lacks a permission, this one or else the first of its bounds."""
        if permission is None:
            return None
        for role in (self, *self.bounds):
            if permits(role.denied, permission) or not (role.is_open or permits(role.capabilities, permission)):
                return role
        return None


def role(name: str, capabilities: Sequence[str]) -> Role:
    """Declare a role."""
    return Role(name, tuple(capabilities))


@dataclass(frozen=True, slots=True, eq=False)
class Mcp:
    """An MCP server that an agent uses; its options are evaluated when it is first used.

    Attributes:
        options: None where the program declares no server of that name, so that files of the folder describe it.
        granted: patterns of the tools that may be used, `prompt:name` and `resource:address` for what else there is;
            None grants everything.
    """

    name: str
    options: Callable[[], Mapping[str, Any]] | None = None
    granted: tuple[str, ...] | None = None

    def only(self, *patterns: str) -> Mcp:
        """The server, restricted to some of its tools."""
        return replace(self, granted=patterns)

    def grants(self, name: str, kind: str = "") -> bool:
        """Whether a tool may be used, or something else of a kind: `resource`, `prompt`."""
        return self.granted is None or covers(self.granted, name, kind)


def by_name(servers: Iterable[Mcp]) -> dict[str, Mcp]:
    """Servers by their names; of one that is used several times all is granted that is granted anywhere."""
    found: dict[str, Mcp] = {}
    for server in servers:
        before = found.setdefault(server.name, server)
        if before is not server and before.granted is not None:
            granted = None if server.granted is None else (*before.granted, *server.granted)
            found[server.name] = replace(server, granted=granted)
    return found


HandlerFunction = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """One event an agent handles.

    Attributes:
        affordance: what it does, for other agents' prompts.
        schema: JSON Schema of the payload; empty when anything goes.
        result: the type of what it gives; None when anything goes.
        private: not offered outside of the program.
        background: declared `async`.
        playbook: whether a model carries it out.
        acts: whether its playbook may ask for actions; else its result is all that it asks for.
        answers: whether it is declared with `answer`, so that its model never acts.
        budget: most a call may spend.
        guard: `input`, `output` or `action` of a guard.
        guarded: the event that a guard belongs to; empty for one of the whole agent.
    """

    event: str
    function: HandlerFunction
    affordance: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    result: ResultType | None = None
    private: bool = False
    background: bool = False
    playbook: bool = False
    acts: bool = True
    answers: bool = False
    budget: Mapping[str, Any] = field(default_factory=dict)
    guard: str = ""
    guarded: str = ""

    @property
    def may_get_nothing(self) -> bool:
        """Whether the parameter for the payload has a default."""
        code = getattr(self.function, "__code__", None)
        defaults = getattr(self.function, "__defaults__", None) or ()
        return code is not None and len(defaults) >= code.co_argcount - 1


def on(event: str, **about: Any) -> Callable[[HandlerFunction], Handler]:
    """Declare a function of an agent's class as the handler of an event; keywords are fields of Handler."""
    return lambda function: Handler(event, function, **about)


class Team:
    """A declared team: members by key."""

    def __init__(self, name: str, members: Callable[[], Mapping[str, type[Any] | str]]) -> None:
        self.name, self._declared = name, members
        self._members: Mapping[str, type[Any] | str] | None = None

    def members(self) -> Mapping[str, type[Any] | str]:
        """Members in declaration order: agents, tools of servers among them, or texts where no agent was declared."""
        if self._members is None:
            self._members = self._declared()
        return self._members

    def lists(self, agent: type[Any]) -> bool:
        """Whether an agent is a member."""
        return any(member is agent for member in self.members().values())


class PhaseData(TypedDict):
    """A declared phase: the permissions that it leaves, those that it takes away, and settings of the model."""

    can: list[str]
    cannot: list[str]
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class AgentDeclaration:
    """The declaration of an agent. References are functions, so that declarations may refer to each other.

    Attributes:
        guards: by their names; they are no handlers, so that nobody can call them.
        examples: messages that people may begin with.
        guides: the skills in files that the program names for it.
        state_types: JSON Schemas of the fields of its state that declare a type.
        exposed: whether it is served to MCP clients.
        exposed_a2a: whether it is served to agents of other programs.
        instructions: whether the instructions of the project stand before its playbooks.
        offers_skills: whether it is offered the skills of the project.
        phases: by their names, what each allows (`can`, `cannot`) and its `settings` of the model.
        transitions: what begins them, a pair of events and steps for each clause.
        reads_notes: whether notes that fit the payload stand before its playbooks.
    """

    name: str
    affordance: str
    role: Callable[[], Role]
    handlers: Mapping[str, Handler]
    guards: Mapping[str, Handler] = field(default_factory=dict)
    teams: Callable[[], Sequence[Team]] = tuple
    skills: Callable[[], Sequence[Skill]] = tuple
    guides: Callable[[], Sequence[SkillFolder]] = tuple
    mcps: Callable[[], Sequence[Mcp]] = tuple
    state: Callable[[], dict[str, Any]] = dict
    state_types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    amnesia: bool = False
    examples: Sequence[str] = ()
    exposed: bool = False
    exposed_a2a: bool = False
    resources: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    llm: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    resilience: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    playbooks: Mapping[str, str] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    phases: Mapping[str, PhaseData] = field(default_factory=dict)
    transitions: Sequence[Sequence[Any]] = ()
    instructions: bool = False
    offers_skills: bool = False
    reads_notes: bool = False

    @property
    def file(self) -> Path | None:
        """The file that declares it; None where it handles nothing."""
        handler = next(iter(self.handlers.values()), None)
        code = None if handler is None else getattr(handler.function, "__code__", None)
        return None if code is None else Path(code.co_filename)

    @property
    def reads_files(self) -> bool:
        """Whether files tell its models something: instructions, skills, or notes."""
        return self.instructions or self.reads_notes or self.reads_skills

    @property
    def reads_skills(self) -> bool:
        """Whether there are skills in files for it to read."""
        return self.offers_skills or bool(self.guides())

    def find(self, event: str) -> Handler | None:
        """The handler or the guard of a name."""
        return self.handlers.get(event) or self.guards.get(event)

    def guards_of(self, event: str, kind: str, *, is_own: bool) -> list[Handler]:
        """The guards of a kind for a call of an event, the agent's first; what it calls itself does not pass these."""
        return [
            guard
            for guard in self.guards.values()
            if guard.guard == kind and (guard.guarded == event if guard.guarded else not is_own)
        ]

    def declared_budget(self, handler: Handler) -> Budget:
        """The most a call of a handler may spend as declared: its playbook's budget, then its agent's."""
        if not handler.budget and not self.budget:
            return NO_BUDGET
        return Budget.of(handler.budget).over(Budget.of(self.budget))

    def unknown_fields(self, event: str, given: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[str]:
        """A line for each field from outside that neither the payload nor the type of the handler has."""
        handler = self.handlers.get(event)
        declared = handler.schema.get("properties", {}) if handler is not None else {}
        known = list(dict.fromkeys([*declared, *payload]))
        for name in given:
            near = None if name in known else nearest(name, known)
            if near is not None or (declared and name not in known):
                help = f"did you mean `{near}`?" if near else f"it takes {', '.join(f'`{field}`' for field in known)}"
                yield f"`{self.name}.{event}` has no field `{name}`, which the command line gives; {help}"

    def converted_fields(self, event: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Fields from the command line in the types that a handler declares for them."""
        handler = self.handlers.get(event)
        schema = handler.schema if handler is not None else {}
        declared, named = schema.get("properties", {}), {"$defs": schema.get("$defs", {})}
        return {
            name: convert(value, {**declared[name], **named}) if name in declared else value
            for name, value in given.items()
        }
