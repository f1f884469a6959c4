"""Ports: the parts of a run, its agents and its playbook calls that other modules may use.

What is named here is either a protocol, or something that needs none of the ports itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    import asyncio

    from koi_lang.errors import KoiError
    from koi_lang.llm.messages import ActionResult, Adapter, Message, Request
    from koi_lang.runtime.agents.declarations import AgentDeclaration, Mcp, Role, Team
    from koi_lang.runtime.agents.skills import Skill
    from koi_lang.runtime.budget.ledger import Ledger
    from koi_lang.runtime.budget.limits import Budget, BudgetAccount
    from koi_lang.runtime.command_sandbox import CommandSandboxes
    from koi_lang.runtime.events import Events
    from koi_lang.runtime.guards.permissions import Permissions
    from koi_lang.runtime.guards.policy import Policy
    from koi_lang.runtime.guidance.notes import Owner
    from koi_lang.runtime.hooks.types import ActionCall
    from koi_lang.runtime.host import Host
    from koi_lang.runtime.intervention import Intervention
    from koi_lang.runtime.outputs.long_texts import KeptOutput
    from koi_lang.runtime.plan_mode import PlanMode
    from koi_lang.runtime.playbook.loop_guard import GuardLimits
    from koi_lang.runtime.playbook.placeholders import NamedPlaybook
    from koi_lang.runtime.playbook.steering import Steering
    from koi_lang.runtime.registry import KeptRegistry
    from koi_lang.runtime.replay.ports import Recorder
    from koi_lang.runtime.replay.recorded_run import RecordedRun
    from koi_lang.runtime.routing.lexical import MeaningScores, Route, RouteMatch
    from koi_lang.settings import ProjectSettings
    from koi_lang.system.interpolation import Evaluate


class PhasesPort(Protocol):
    """The phases of a live agent; see `AgentPhases`."""

    current: str

    @property
    def model(self) -> Mapping[str, str]:
        """Settings of its model."""

    def note(self, event: str, data: Mapping[str, Any] | None = ..., *, argument: str = ...) -> bool:
        """Carry out the clauses for something that happens; gives whether there are any."""

    def note_result(self, names: Sequence[str], result: Any) -> None:
        """Note what a member of a team has given."""

    def finish(self) -> bool:
        """Note that the work of the current phase is done; gives whether there is one."""


class AgentPort(Protocol):
    """A live agent of a run.

    Attributes:
        state: fields that last as long as the run.
        memory: the conversation of its playbooks, kept between calls.
        conversations: those of its playbooks that are under way.
    """

    state: dict[str, Any]
    memory: Sequence[Any]
    conversations: list[Any]

    @property
    def name(self) -> str:
        """The declared name."""

    @property
    def role(self) -> Role:
        """Its role."""

    @property
    def offered_skills(self) -> Sequence[Skill]:
        """The skills that it uses, with no function that its role does not permit models to call."""

    def may_call(self, permission: str | None) -> bool:
        """Whether its model may call a function of a skill that needs a permission, or none."""

    @property
    def about(self) -> AgentDeclaration:
        """Its declaration."""

    @property
    def run(self) -> RunPort:
        """The run it lives in."""

    @property
    def phases(self) -> PhasesPort | None:
        """Its phases; None where it declares none."""

    async def handle(self, event: str, payload: Any = ...) -> Any:
        """Carry out an event. Raises AgentError."""

    async def require_action(self, event: str, payload: Any, intent: str, fields: Mapping[str, Any]) -> None:
        """Have guards look at an action that a model asks for. Raises PermissionDeniedError where one refuses it."""

    async def call_action(self, intent: str, data: Any = ...) -> Any:
        """Run a built-in action from code. Raises AgentError."""


class CallPort(Protocol):
    """A call of a playbook that is under way."""

    @property
    def agent(self) -> AgentPort:
        """Whose playbook it is."""

    @property
    def event(self) -> str:
        """The event whose playbook it is."""

    @property
    def args(self) -> Any:
        """Its payload."""

    @property
    def parent(self) -> CallPort | None:
        """The call that delegated it."""

    @property
    def instructions(self) -> NamedPlaybook:
        """The playbook as rendered last, with names in place of values."""

    @property
    def spending(self) -> BudgetAccount:
        """Its budget account."""

    @property
    def results(self) -> list[ActionResult]:
        """The results of its actions, in order of completion."""

    def take_result(self, data: Any) -> Any:
        """A result of the declared type; `undefined` is none. Raises ActionError, or LimitReachedError at last."""


class BlockPort(Protocol):
    """The body of a loop or branch in a call of a playbook."""

    @property
    def has_returned(self) -> bool:
        """Whether the playbook has returned."""

    async def carry_out(self, **own: Any) -> list[Any]:
        """Run the steps once, with further names; returns their results."""

    async def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true; a model may be asked."""


class ModelsPort(Protocol):
    """The gateway of a run to its models."""

    def options(self, agent: AgentPort, use: str = ...) -> dict[str, Any]:
        """The settings of an agent's model for a purpose, defaults included."""

    def of(self, agent: AgentPort, use: str = ...) -> Adapter:
        """The model an agent uses for a purpose: `default`, `small`, `judge`."""

    def stream_answer(
        self, agent: AgentPort, request: Request, spending: BudgetAccount | None = ..., use: str = ...
    ) -> AbstractAsyncContextManager[Any]:
        """An `AnswerStream`; at the end of the block it is paid for."""

    async def complete(
        self,
        agent: AgentPort,
        instruction: str,
        data: str | Message,
        spending: BudgetAccount | None = ...,
        use: str = ...,
    ) -> str:
        """A plain answer to an instruction about some data."""

    async def complete_once(
        self,
        agent: AgentPort,
        instruction: str,
        data: str,
        use: str = ...,
        spending: BudgetAccount | None = ...,
    ) -> str:
        """The same, asked once a run for equal data."""


class MeaningPort(Protocol):
    """The router of a run by meaning."""

    async def rank(
        self,
        agent: AgentPort,
        intent: str,
        offers: Sequence[Route],
        spending: BudgetAccount,
        *,
        only_matches: bool = ...,
    ) -> list[RouteMatch]:
        """The offers that match an intent by meaning, nearest first; or all of them in order."""

    async def choose(
        self, agent: AgentPort, intent: str, offers: Sequence[Route], spending: BudgetAccount
    ) -> RouteMatch | None:
        """The offer that a small model names for an intent; None where it names none, or none is configured."""

    def has_model(self, agent: AgentPort) -> bool:
        """Whether a model for embeddings is configured for an agent."""

    async def score(self, agent: AgentPort, intent: str, offers: Sequence[Route]) -> MeaningScores | None:
        """How near a model puts every offer to an intent; None where none is configured."""


class HooksPort(Protocol):
    """The hooks of a run.

    Attributes:
        around_actions: whether there are any for actions.
        around_models: whether there are any for requests to models.
    """

    around_actions: bool
    around_models: bool

    def action(self, agent: AgentPort, intent: str, fields: Mapping[str, Any], *, by_model: bool) -> ActionCall:
        """The call of an action as its hooks see it."""

    async def around(
        self,
        call: ActionCall,
        check: Callable[[Mapping[str, Any]], dict[str, Any]],
        work: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Carry an action out between its hooks. Raises PermissionDeniedError."""

    async def before_request(self, agent: str, use: str, model: str, request: Request) -> Any:
        """A `HookedRequest`. Raises PermissionDeniedError."""


class DebuggerPort(Protocol):
    """A debugger that a run is watched by."""

    def around_action(
        self, call: CallPort, intent: str, fields: Mapping[str, Any], known: Intervention | None
    ) -> AbstractContextManager[Intervention | None]:
        """A context for an action of a playbook, with the decision of a person; None to run it.

        Args:
            fields: what it asks for, with references replaced.
            known: what was decided in an earlier part of the run, which is decided again.
        """


class ServersPort(Protocol):
    """The MCP servers of a run."""

    async def connect(self, server: Mcp) -> Any:
        """The live `McpConnection` to a server. Raises KoiError."""

    def access(self, server: Mcp) -> Any:
        """The access to a server. Raises SettingsError."""

    async def offers(self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]]) -> dict[str, Any]:
        """The tools of several servers, started if need be, as data for a prompt."""

    def catalog(self, servers: Sequence[Mcp]) -> Sequence[Any]:
        """A `ServerCatalog` for each server, as far as it is known now; nothing is started."""

    async def news(
        self, servers: Sequence[Mcp], members: Mapping[str, tuple[Mcp, str]], before: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The same without starting anything; None when nothing has changed since then."""


class ChangesPort(Protocol):
    """The record of file changes by the actions of a run.

    Attributes:
        seen: the version of a file that an agent has read or written last, by path from the project and name of the
            agent: when it was changed, in nanoseconds, and its size.
        writers: whose action has written a file last, and which version.
    """

    seen: dict[tuple[str, str], tuple[int, int]]
    writers: dict[str, tuple[str, tuple[int, int]]]

    def record(self, paths: Iterable[Path], agent: str = ...) -> AbstractAsyncContextManager[None]:
        """A context for an action that changes some paths and waits for nobody meanwhile."""

    def watch(self, longest_s: float, agent: str = ..., *, confined: bool = ...) -> AbstractAsyncContextManager[None]:
        """A context for work that may change any file of the project, such as a command."""


class OutputsPort(Protocol):
    """The long outputs of a run; see `RunOutputs`."""

    def take_room(self, size: int) -> int:
        """Reserve room for some bytes, or for as many of them as there is room for; gives how many that are."""

    def give_back(self, size: int) -> None:
        """Release a reservation."""

    def take_number(self) -> int:
        """The number of an output that is kept elsewhere."""

    async def keep(self, value: Any) -> None:
        """Keep the long texts in a value."""

    async def keep_text(self, text: str) -> KeptOutput | None:
        """Keep a text, unless it is known; None where there is no room for it, or it cannot be written."""

    def know_as_before(self, value: Any) -> bool:
        """Know the long texts in a value as they were told of before; whether anything was told."""

    def refer(self, value: Any) -> Any:
        """A value with references in place of the long texts that are kept."""

    def mark(self, value: Any) -> Any:
        """A value with the numbers of the long texts in place of these."""

    def tell(self, agent: str, value: Any) -> None:
        """Have an agent know of the long texts in a value."""

    def told_to(self, agent: str) -> Mapping[int, KeptOutput]:
        """The outputs that an agent knows of, by their numbers."""

    async def text_of(self, kept: KeptOutput) -> str | None:
        """A text that was kept; None where it is not there as it was."""

    async def restore(self, value: Any) -> Any:
        """A value from a journal with its long texts."""


class CommandsPort(Protocol):
    """The commands of a run that go on in the background; see `BackgroundCommands`."""

    def are_open(self) -> bool:
        """Whether commands are at work where another one can meet them."""

    async def start(self, command: Any, *, is_merged: bool, until: str = ...) -> Any:
        """A `CommandRun`, whose output is read from now on. Raises AgentError, OSError or ValueError."""

    def add(self, started: Any, command: Any, *, tells: bool) -> int:
        """Give a command a number and let it go on; returns the number."""

    def recall(self, number: int, *, tells: bool) -> None:
        """Register a command of an earlier part of the run."""

    async def stop(self, agent: str, number: int) -> Mapping[str, Any]:
        """End a command with all that it has started; gives its last state. Raises AgentError."""

    def of_agent(self, agent: str) -> list[Any]:
        """The commands that an agent has begun, in order."""

    def find(self, agent: str, number: int) -> Any:
        """The command of a number that an agent has begun; None for none."""

    def text_of(self, command: Any) -> str:
        """The output of a command so far. Raises AgentError where it is not there any more."""


class BackgroundCallsPort(Protocol):
    """The calls of a run that go on in the background; see `BackgroundCalls`."""

    def start(self, work: Coroutine[Any, Any, Any], name: str, agent: str, *, tells: bool = ...) -> Any:
        """Begin a call; a `BackgroundCall`. Raises AgentError where too many go on."""

    def of_agent(self, agent: str) -> list[Any]:
        """The calls that an agent has begun, in order."""

    def require(self, agent: str, id: str) -> Any:
        """The call of an id that an agent has begun. Raises AgentError."""

    def note_awaited(self, call: Any) -> None:
        """Have its agent not told of the end of a call."""


class GuidancePort(Protocol):
    """Guidance of a run: the files of the project and its person that its agents are given."""

    @property
    def owners(self) -> Sequence[Owner]:
        """Those whose notes its agents may be told."""

    async def look(self, agent: AgentPort, args: Any) -> dict[str, Any]:
        """The guidance for an agent before a playbook with a payload, as data. Raises AgentError."""

    async def choose(
        self, agent: AgentPort, args: Any, found: Mapping[str, Any], spending: BudgetAccount
    ) -> Mapping[str, Any]:
        """The guidance with only those notes that the model is told. Raises LimitReachedError."""

    async def read_skill(self, agent: AgentPort, name: str, file: str, offset: int) -> dict[str, Any]:
        """The text of a skill that an agent uses, or of a file beside it. Raises AgentError."""


class AddedPort(Protocol):
    """The additions of extensions to a run."""

    @property
    def actions(self) -> Mapping[str, Any]:
        """An `ActionKind` by name."""


class CallsPort(Protocol):
    """Calls that come to a run from outside of its program, many at once, by ids that their callers give them.

    `tests/sessions/test_contract.py` says what any implementation has to do.
    """

    async def call(self, id: str, agent: type[Any], event: str, payload: Any, budget: Budget) -> Any:
        """Have an agent handle an event, and give a copy of the result.

        A call whose id is known is not carried out again, as long as the run lasts: who asks for the same gets its
        outcome, now or when it is there. Being cancelled ends the call, unless others wait for it.

        Args:
            id: names the call; not empty.
            budget: the most that it may take.

        Raises:
            UsageError: the id is empty, or that of a call of something else.
            CallCancelledError: somebody has cancelled the call.
            KoiError: the run has ended before the call did.
            Exception: what the call fails with; LimitReachedError where that is its budget.
        """

    async def cancel(self, id: str) -> bool:
        """End a call, nothing else, and wait until nothing of it is under way; gives whether anything was."""


class RunPort(Protocol):
    """The parts of a run that agents, actions, models and hooks may use; see `Run`."""

    id: str
    today: str
    events: Events
    recorder: Recorder
    recorded: RecordedRun
    host: Host
    ledger: Ledger
    spending: BudgetAccount
    detailed: bool
    folder: Path
    settings: ProjectSettings
    background: asyncio.TaskGroup
    redact: Callable[[str], str]
    evaluate: Evaluate
    debugger: DebuggerPort | None

    def halt(self, error: KoiError) -> NoReturn:
        """End the run with an error that no code of the program can catch."""

    @property
    def added(self) -> AddedPort:
        """The additions of extensions."""

    @property
    def hooks(self) -> HooksPort | None:
        """The hooks before and after actions and requests to models; None for none."""

    @property
    def permissions(self) -> Permissions:
        """The rules of the person."""

    @property
    def policy(self) -> Policy:
        """The policy, which decides whether something may be done."""

    @property
    def planning(self) -> PlanMode:
        """Plan mode, and the plan that was accepted."""

    @property
    def patience(self) -> GuardLimits:
        """The limits of playbooks that make no progress."""

    @property
    def steering(self) -> Steering:
        """The messages to playbooks that are at work."""

    @property
    def models(self) -> ModelsPort:
        """The models that agents use."""

    @property
    def meaning(self) -> MeaningPort:
        """The search by meaning."""

    @property
    def servers(self) -> ServersPort:
        """The MCP servers."""

    @property
    def sandboxes(self) -> CommandSandboxes:
        """The sandboxes of commands."""

    @property
    def calls(self) -> BackgroundCallsPort:
        """The calls that go on in the background."""

    @property
    def has_calls(self) -> bool:
        """Whether there has been any."""

    @property
    def commands(self) -> CommandsPort:
        """The commands that go on in the background."""

    @property
    def has_commands(self) -> bool:
        """Whether there has been any."""

    @property
    def outputs(self) -> OutputsPort:
        """The long outputs of actions."""

    @property
    def has_outputs(self) -> bool:
        """Whether there has been any."""

    @property
    def guidance(self) -> GuidancePort:
        """The instructions and skills of the project."""

    @property
    def registry(self) -> KeptRegistry:
        """The shared key/value store."""

    @property
    def nobody(self) -> AgentPort:
        """Stands in where a prompt is rendered without an agent."""

    @property
    def changes(self) -> ChangesPort:
        """The record of file changes."""

    def keep_until_end(self, end: Callable[[], Awaitable[None]]) -> None:
        """Have something ended when the run ends, such as a process."""

    def teams(self) -> Sequence[Team]:
        """All teams of the program."""

    def agent(self, declared: type[Any]) -> AgentPort:
        """The live agent of a declaration."""

    async def call(self, declared: type[Any], event: str, payload: Any = ...) -> Any:
        """Have an agent handle an event and give the result."""

    async def start(self, declared: type[Any], event: str, payload: Any) -> Any:
        """Carry out a `run` statement."""

    async def run_playbook(self, agent: AgentPort, event: str, args: Any, parts: Any) -> Any:
        """Have a model carry out a playbook."""

    async def perform(self, agent: AgentPort, intent: str, data: Any) -> Any:
        """A built-in action called from code. Raises AgentError where there is none of that name."""

    def update_state(self, agent: AgentPort, updates: Mapping[str, Any]) -> None:
        """Change fields of an agent's state."""

    async def sleep(self, seconds: float) -> None:
        """Wait; waiting of an earlier part of the run is not repeated."""
