"""Declarations, and the parts of agents and skills."""

from __future__ import annotations

from koi_lang.agent_address import BEGIN, COMMAND
from koi_lang.compiler.nodes.base import Declaration, Expression, Node, node
from koi_lang.compiler.nodes.executable import (
    A2aAddress,
    Affordance,
    Array,
    Block,
    Budget,
    Function,
    Literal,
    McpAddress,
    Name,
    Object,
    Parameter,
    Playbook,
    Text,
    Type,
    UsePlaybook,
    Variable,
)
from koi_lang.source import Span


@node
class Import(Declaration):
    """`import name: type from "path"`."""

    name: Name | None
    type: str | None
    path: Text


@node
class Package(Declaration):
    """`package "name"`, a spelling of Koi 1.0 without meaning."""

    name: Text


@node
class TypeDeclaration(Declaration):
    """`type Name = …`."""

    name: Name
    type: Type


@node
class Role(Declaration):
    """`role Name { can a, can b }`."""

    name: Name
    capabilities: tuple[Name, ...]

    def has_permission(self, permission: str) -> bool:
        """Whether it has a permission, for everything or for something, as in `can call_mcp: files`."""
        return any(name.name.partition(":")[0] == permission for name in self.capabilities)


@node
class TeamMember(Node):
    """`key: Agent`, `key: mcp://server/tool` or `key: a2a://host/agent`."""

    key: Name
    value: Name | Text | McpAddress | A2aAddress

    @property
    def tool(self) -> tuple[str, str] | None:
        """The server and the tool that an address names, which may stand in quotes; None for agents."""
        text = self.value.address if isinstance(self.value, McpAddress) else getattr(self.value, "value", "")
        if not text.startswith("mcp://"):
            return None
        server, _, tool = text.removeprefix("mcp://").partition("/")
        return server, tool

    @property
    def remote(self) -> str | None:
        """The address of an agent of another program, which may stand in quotes; None for all other members."""
        text = self.value.address if isinstance(self.value, A2aAddress) else getattr(self.value, "value", "")
        return text if text.startswith((BEGIN, COMMAND)) else None


@node
class Team(Declaration):
    """`team Name { key: Agent }`."""

    name: Name
    members: tuple[TeamMember, ...]


@node
class Mcp(Declaration):
    """`mcp name = { … }`."""

    name: Name
    options: Object


@node
class PromptParameter(Node):
    """`name: type` of a prompt."""

    name: Name
    type: str


@node
class Compose(Node):
    """`compose { fragments: { … } template: "…" }`; fragments map a name in the template to a prompt.

    Attributes:
        rules: by which a model chooses the fragments, in place of a template.
    """

    names: tuple[Name, ...]
    fragments: tuple[tuple[Name, Name], ...]
    template: Text | None
    model: Text | None
    rules: Text | None = None


@node
class Prompt(Declaration):
    """`prompt Name(parameters) = text + Other` or `= compose { … }`."""

    name: Name
    parameters: tuple[PromptParameter, ...] | None
    value: tuple[Text | Name, ...] | Compose
    exported: bool


@node
class Job(Node):
    """`every "15m" { jitter: 30s }` or `when "hook /github"` behind a `run`; durations are seconds."""

    trigger: str
    words: Text
    options: tuple[tuple[Name, Text | Literal], ...]


@node
class Run(Declaration):
    """`run Agent.handler(argument)`; one with a job is carried out by a service, again and again."""

    agent: Name
    handler: Name
    arguments: tuple[Expression, ...]
    job: Job | None = None


@node
class Test(Declaration):
    """`test "name" { … }`."""

    name: Text
    body: Block


@node
class Eval(Declaration):
    """`eval "name" over SOURCE times N pass P { … }`; what is left out is None."""

    name: Text
    source: Text | Array | None
    times: Literal | None
    accept: Literal | None
    body: Block


@node
class GrantedTools(Node):
    """`files(read_*, list_directory)` after `uses mcp`: the tools of a server that the agent may use."""

    server: Name
    patterns: tuple[Text, ...]


@node
class Uses(Node):
    """`uses skill A, B`; `tools` lists what is granted of servers used in part.

    `kind` is `skill`, `team` or `mcp`, or, without names, what files tell: `instructions`, `skills`, `memory`.
    """

    kind: str
    names: tuple[Name, ...]
    tools: tuple[GrantedTools, ...] = ()


@node
class Exposed(Node):
    """`resource "notes://{day}" = note` or `prompt greet = greeting`: what a handler makes for MCP clients."""

    kind: str
    target: Name
    handler: Name


@node
class ExposeMcp(Node):
    """`expose mcp`, or `expose mcp { … }` with what handlers make beside tools."""

    items: tuple[Exposed, ...] = ()


@node
class ExposeA2a(Node):
    """`expose a2a`."""


@node
class Llm(Node):
    """`llm default = { … }`."""

    name: str
    options: Object


@node
class Examples(Node):
    """`examples "…", "…"`: messages that people may begin with."""

    texts: tuple[Text, ...]


@node
class Amnesia(Node):
    """`amnesia = true`."""

    value: bool


@node
class Handler(Node):
    """`private on name(parameters) async: type { … }`; `returns` is the type of its result.

    Attributes:
        guard: `input`, `output` or `action` of a guard, which no event calls; its name is made of that.
        guarded: the handler that a guard belongs to; empty for one of the whole agent.
    """

    name: Name
    parameters: tuple[Parameter, ...]
    body: Block
    private: bool
    is_async: bool
    returns: Type | None = None
    guard: str = ""
    guarded: str = ""

    @property
    def playbook(self) -> Playbook | None:
        """What a handler consists of that a model carries out, apart from a description; None for code."""
        body = [item for item in self.body.statements if not isinstance(item, (Affordance, UsePlaybook))]
        return body[0] if len(body) == 1 and isinstance(body[0], Playbook) else None


@node
class Field(Node):
    """A field of an agent's state."""

    name: Name
    type: Type | None
    value: Expression | None


@node
class State(Node):
    """`state { field: type = value }`."""

    fields: tuple[Field, ...]


@node
class NamedPlaybook(Node):
    """`playbook "name" text` in an agent: a description of the handler of that name."""

    name: Text
    text: Text


@node
class Resilience(Node):
    """`resilience "handler" { retry_max_attempts = 3 }`."""

    name: Text
    properties: tuple[tuple[Name, Expression], ...]


@node
class Phase(Node):
    """`name { can a, cannot b, effort: low }`: what an agent may do while it is in a phase."""

    name: Name
    allowed: tuple[Name, ...]
    denied: tuple[Name, ...]
    settings: tuple[tuple[Name, Name], ...]


@node
class Phases(Node):
    """`phases { … }` of an agent."""

    phases: tuple[Phase, ...]


@node
class TransitionEvent(Node):
    """`scout.result` or `phase("building").done`; the argument is the name in parentheses."""

    words: tuple[Name, ...]
    argument: Name | None

    @property
    def name(self) -> str:
        """The words with dots between them."""
        return ".".join(word.name for word in self.words)

    @property
    def argument_text(self) -> str:
        """The name in parentheses; empty for any."""
        return "" if self.argument is None else self.argument.name


@node
class TransitionCall(Node):
    """`phase("building").start()`, with a method, or `effort(low)`, without one."""

    function: Name
    argument: Name
    method: Name | None


@node
class TransitionChoice(Node):
    """`if (condition) { … } else { … }` in a transition; the condition is evaluated when something happens."""

    condition: Span
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@node
class Transition(Node):
    """`when event, event { … }`."""

    events: tuple[TransitionEvent, ...]
    steps: tuple[Node, ...]


@node
class Transitions(Node):
    """`transitions { … }` of an agent."""

    transitions: tuple[Transition, ...]


AgentItem = (
    Uses
    | ExposeMcp
    | ExposeA2a
    | Affordance
    | Examples
    | Llm
    | Amnesia
    | Handler
    | State
    | NamedPlaybook
    | Resilience
    | Phases
    | Transitions
    | Budget
    | Function
)


@node
class Agent(Declaration):
    """`agent Name : Role { … }`."""

    name: Name
    role: Name
    items: tuple[AgentItem, ...]


@node
class Needs(Node):
    """`needs write` in a skill: the permission that its exported functions need, unless they say another one."""

    permission: Name


SkillItem = Affordance | Needs | Agent | Team | Variable | Function


@node
class Skill(Declaration):
    """`skill Name { … }`."""

    name: Name
    items: tuple[SkillItem, ...]

    def permission_of(self, function: Function) -> Name | None:
        """The permission that an exported function of it needs: the function's own, else that of the skill."""
        own = (item.permission for item in self.items if isinstance(item, Needs))
        return function.needs or next(own, None)


@node
class Program(Node):
    """One file: its declarations in order; `gaps` are the places of what could not be read."""

    declarations: tuple[Declaration, ...]
    gaps: tuple[Span, ...] = ()
