"""One run of a program: its live agents, its services, and the end of everything it started."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from koi_lang.errors import KoiError, PlanShownError, failure_code
from koi_lang.events import (
    OMITTED,
    ApprovalGiven,
    ApprovalRequested,
    LinePrinted,
    PersonAnswered,
    PersonAsked,
    RuleAllowed,
    RunEnded,
    RunStarted,
    StateChanged,
)
from koi_lang.js.environment import in_environment
from koi_lang.js.promises import TaskScope
from koi_lang.js.undefined import undefined
from koi_lang.lazy import lazy_module
from koi_lang.runtime import forms
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Team
from koi_lang.runtime.background_calls import BackgroundCalls
from koi_lang.runtime.budget.ledger import Ledger
from koi_lang.runtime.budget.limits import in_time
from koi_lang.runtime.context import current
from koi_lang.runtime.events import Events
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.guards.policy import Policy
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, FormHost, Host, NobodyToAskError, visible
from koi_lang.runtime.plan_mode import BEGUN, PlanMode
from koi_lang.runtime.playbook.loop_guard import GuardLimits
from koi_lang.runtime.playbook.steering import Steering
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.environment import RunEnvironment
from koi_lang.runtime.replay.error_records import origin_of
from koi_lang.runtime.replay.location import enter_run, leaf_path, leave_run
from koi_lang.runtime.replay.recorded_run import RecordedRun
from koi_lang.runtime.replay.recorder import RunRecorder
from koi_lang.runtime.services import MADE_WHEN_USED, Factories, Services

if TYPE_CHECKING:
    from koi_lang.runtime import background_commands
    from koi_lang.runtime.background_commands import BackgroundCommands
    from koi_lang.runtime.command_sandbox import CommandSandboxes
    from koi_lang.runtime.file_changes import change_recorder
    from koi_lang.runtime.file_changes.change_recorder import ChangeRecorder
    from koi_lang.runtime.guidance.service import Guidance
    from koi_lang.runtime.mcp.servers import Servers
    from koi_lang.runtime.model_calls.gateway import ModelGateway
    from koi_lang.runtime.outputs import run_outputs
    from koi_lang.runtime.outputs.run_outputs import RunOutputs
    from koi_lang.runtime.ports import AgentPort
    from koi_lang.runtime.registry import KeptRegistry
    from koi_lang.runtime.replay.ports import Recorder
    from koi_lang.runtime.routing.semantic import Meaning
else:
    background_commands = lazy_module("koi_lang.runtime.background_commands")
    change_recorder = lazy_module("koi_lang.runtime.file_changes.change_recorder")
    run_outputs = lazy_module("koi_lang.runtime.outputs.run_outputs")


class Run:
    """An async context in which agents live; leaving it waits for everything they started and closes the services.

    Attributes:
        id: names the run.
        seed: what random numbers of the program follow from.
        today: date and place that models are told; empty where they are told none.
        recorded: what an earlier part of it came to.
        recorder: its way to the outside.
        host: the person and the terminal.
        events: what happens.
        evaluate: computes an expression over names, safely.
        clock: seconds that only grow.
        result: what its last `run` statement returned.
        debugger: stops before actions of playbooks; None in ordinary runs.
        detailed: whether events carry what handlers and actions are given and give, and what models answer.
        redact: takes secrets out of a text, as whoever keeps the events does.
        spending: what everything together spends.
        ledger: the budgets of its calls, and what they have spent.
        background: tasks of services, such as connections to servers; they end with the run.
        folder: of the files that the program works on.
        settings: of the project, as they were when the run was prepared.
        added: what extensions add.
        hooks: what is asked before and after actions and requests to models; None where nothing is.
    """

    def __init__(self, services: Services, factories: Factories = MADE_WHEN_USED) -> None:
        self.id = services.id or os.urandom(6).hex()
        self.seed = services.seed or os.urandom(16).hex()
        self.today = services.today
        self.detailed, self.redact = services.detailed, services.redact
        self.recorded = RecordedRun(services.history)
        self.events = Events(self.id, known=None if self.recorded.is_live else self.recorded.has_happened)
        self.recorder: Recorder = RunRecorder(
            self.events, self.halt, self.recorded, is_kept=services.detailed, seed=self.seed
        )
        self.result: Any = undefined
        self.host: Host = _Announcing(services.host, self.events, self.recorder)
        self.evaluate = services.evaluate
        self.clock = services.clock
        self.debugger = services.debugger
        self.ledger = Ledger(services.limits, self.clock, self.recorded, services.payer)
        self.spending = self.ledger.spending
        self.added = services.added
        self.hooks = factories.hooks(self, services) if services.added.hooks else None
        for state in services.added.states:
            state.begin(self.events, self.recorded)
        self.folder, self.settings = services.folder, services.settings
        self.background = asyncio.TaskGroup()
        self._services, self._factories = services, factories
        self._agents: dict[type[Agent], Agent] = {}
        self._scope = TaskScope()
        self._endings: list[Callable[[], Awaitable[None]]] = []
        self._task: asyncio.Task[Any] | None = None
        self._halted: KoiError | None = None
        for consumer in services.consumers:
            self.events.subscribe(consumer)

    async def __aenter__(self) -> Run:
        self._task = asyncio.current_task()
        async with AsyncExitStack() as ending:
            ending.enter_context(deep_calls())
            ending.push_async_callback(self._close)
            ending.callback(leave_run, enter_run())
            ending.callback(current.reset, current.set(self))
            ending.enter_context(self.recorder.slots.ready.count())
            ending.enter_context(in_environment(RunEnvironment(self.host, self.recorder, self.events, self.recorded)))
            await self.background.__aenter__()
            self.keep_until_end(self._end_background)
            ending.push(lambda kind, error, trace: self._tell_end(error))
            ending.push_async_callback(self._end_commands)
            await ending.enter_async_context(in_time(self.spending))
            await ending.enter_async_context(self._scope)
            self._ending = ending.pop_all()
        self.events.emit(RunStarted())
        if self._services.plan:
            self.planning.set(True, BEGUN)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._halted is not None and kind is None:
            # It was stopped by what its code did last, which did not wait any more.
            kind, error, trace = await _pending_cancellation()
        try:
            await self._ending.__aexit__(kind, error, trace)
        except asyncio.CancelledError:
            if self._halted is None:
                raise
        if self._halted is not None:
            raise self._halted

    def _tell_end(self, error: BaseException | None) -> None:
        ended: dict[str, Any] = {"ok": error is None or isinstance(error, PlanShownError)}
        if error is not None and not isinstance(error, Exception):
            ended["interrupted"] = True
        elif not ended["ok"] and error is not None:
            ended["code"] = failure_code(error)
            if self.recorder.is_kept:
                ended["origin"] = origin_of(error)
        self._task = None  # from here on only services are closed, which must not be cancelled
        if error is None and "registry" in vars(self):
            self.registry.forget_all()
        self.events.emit(RunEnded(**ended))

    def stop(self, error: KoiError) -> None:
        """Have the run end with an error that no code of the program can catch, as soon as that code waits."""
        self._halted = self._halted or error
        if self._task is not None:
            self._task.cancel()

    def halt(self, error: KoiError) -> NoReturn:
        """End the run with an error that no code of the program can catch."""
        self.stop(error)
        raise asyncio.CancelledError

    def keep_until_end(self, end: Callable[[], Awaitable[None]]) -> None:
        """Have something ended when the run ends, such as a process."""
        self._endings.append(end)

    async def _close(self) -> None:
        """End the started parts, the newest first, then close the services; failures do not stop the others."""
        async with AsyncExitStack() as closing:
            if "registry" in vars(self):
                closing.callback(self.registry.close)
            for name in ("models", "meaning"):
                if name in vars(self):
                    closing.push_async_callback(getattr(self, name).aclose)
            for end in self._endings:
                closing.push_async_callback(end)

    async def _end_background(self) -> None:
        """End the connections to servers, and wait until nothing is left of them."""
        if "servers" in vars(self):
            self.servers.stop()
        await self.background.__aexit__(None, None, None)

    # ------------------------------------------------------------ agents

    def agent(self, declared: type[Agent]) -> Agent:
        """The live agent of a declaration; it comes to life when it is first mentioned."""
        live = self._agents.get(declared)
        if live is None:
            live = self._agents[declared] = declared(self)
        return live

    def phases(self) -> dict[str, str]:
        """The phases of the live agents that are in one, by their names."""
        return {live.name: live.phase_name for live in self._agents.values() if live.phase_name}

    def state_of(self, declared: type[Agent]) -> dict[str, Any]:
        """The state of an agent; for one without an instance its initial state, without creating one."""
        live = self._agents.get(declared)
        return declared.about.state() if live is None else live.state

    def teams(self) -> Sequence[Team]:
        """All teams of the program."""
        return self._services.teams()

    async def call(self, declared: type[Agent], event: str, payload: Any = undefined) -> Any:
        """Have an agent handle an event and give the result."""
        return await self.agent(declared).handle(event, payload)

    async def start(self, declared: type[Agent], event: str, payload: Any) -> Any:
        """Carry out a `run` statement."""
        given = self._services.payload
        if given and isinstance(payload, dict):
            for line in declared.about.unknown_fields(event, given, payload):
                self._services.note(line)
            payload = {**payload, **declared.about.converted_fields(event, given)}
        self.result = await self.call(declared, event, payload)
        return self.result

    def update_state(self, agent: AgentPort, updates: Mapping[str, Any]) -> None:
        """Change fields of an agent's state."""
        agent.state.update(updates)
        self.events.emit(StateChanged(dict(updates)), agent.name, path=leaf_path("state"))

    async def perform(self, agent: AgentPort, intent: str, data: Any) -> Any:
        """A built-in action called from code. Raises AgentError where there is none of that name."""
        return await self._factories.action(self, agent, intent, data)

    async def run_playbook(self, agent: AgentPort, event: str, args: Any, parts: Any) -> Any:
        """Have a model carry out a playbook."""
        return await self._factories.playbook(agent, event, args, parts)

    @property
    def nobody(self) -> Agent:
        """Stands in where a prompt is rendered without an agent."""
        return _Nobody(self)

    # ------------------------------------------------------------ services

    @cached_property
    def permissions(self) -> Permissions:
        """The rules of the person: given beforehand, kept for every run, and added in an earlier part of this one."""
        services = self._services
        kept = () if services.kept_rules is None else services.kept_rules.rules()
        earlier = () if self.recorded.is_live else self.recorded.entries_of(RuleAllowed.type)
        given = (str(entry.data["rule"]) for entry in earlier if "rule" in entry.data)
        rules = (*services.allow, *kept, *given)
        return Permissions(
            rules, lambda rule: self.events.emit(RuleAllowed(rule)), services.restrictions, services.kept_rules
        )

    @cached_property
    def policy(self) -> Policy:
        """The policy, which decides whether something may be done."""
        return Policy(self.host, self.permissions, self.planning)

    @cached_property
    def planning(self) -> PlanMode:
        """Plan mode, and the plan that was accepted."""
        return PlanMode(self.events)

    @cached_property
    def patience(self) -> GuardLimits:
        """The limits of playbooks that make no progress."""
        return GuardLimits.of(self._services.limits)

    @cached_property
    def steering(self) -> Steering:
        """The messages to playbooks that are at work."""
        return Steering(self.events, self.recorded)

    @property
    def is_paused(self) -> bool:
        """Whether its playbooks wait until somebody continues them."""
        return "steering" in vars(self) and self.steering.is_paused

    @cached_property
    def registry(self) -> KeptRegistry:
        """The shared key/value store; opened when it is first used."""
        registry = self._factories.registry(self, self._services)
        registry.follow = self.planning.follow_task
        return registry

    @cached_property
    def sandboxes(self) -> CommandSandboxes:
        """The sandboxes of commands."""
        return self._factories.sandboxes(self, self._services)

    @cached_property
    def calls(self) -> BackgroundCalls:
        """The calls that go on in the background."""
        return BackgroundCalls(self)

    @property
    def has_calls(self) -> bool:
        """Whether there has been any."""
        return "calls" in vars(self)

    @cached_property
    def commands(self) -> BackgroundCommands:
        """The commands that go on in the background."""
        return background_commands.BackgroundCommands(self)

    @property
    def has_commands(self) -> bool:
        """Whether there has been any."""
        return "commands" in vars(self)

    async def _end_commands(self) -> None:
        if self.has_commands:
            await self.commands.end()

    @cached_property
    def changes(self) -> ChangeRecorder:
        """The record of file changes."""
        return change_recorder.ChangeRecorder(self)

    async def sleep(self, seconds: float) -> None:
        """Wait; waiting of an earlier part of the run is not repeated."""
        await self.recorder.perform_as_step(
            Effect("sleep", {"seconds": seconds}, safe=True), lambda: asyncio.sleep(seconds)
        )

    @cached_property
    def models(self) -> ModelGateway:
        """The models that agents use; the gateway is loaded with the first request."""
        return self._factories.models(self, self._services)

    @cached_property
    def servers(self) -> Servers:
        """The MCP servers that are in use."""
        return self._factories.servers(self, self._services)

    @cached_property
    def outputs(self) -> RunOutputs:
        """The long outputs of actions; their files are looked for when there is one."""
        return run_outputs.RunOutputs(self)

    @property
    def has_outputs(self) -> bool:
        """Whether there has been any."""
        return "outputs" in vars(self)

    @cached_property
    def guidance(self) -> Guidance:
        """The instructions and skills of the project."""
        return self._factories.guidance(self, self._services)

    @cached_property
    def meaning(self) -> Meaning:
        """The search by meaning, where an embedding model is configured."""
        return self._factories.meaning(self, self._services)


class _Announcing:
    """A host whose prints, questions and approvals are events, too; repeated prints are not shown again."""

    def __init__(self, host: Host, events: Events, recorder: Recorder) -> None:
        self._host = host
        self._events = events
        self._recorder = recorder
        self.log, self.secret = host.log, host.secret

    def print(self, text: str) -> None:
        self._recorder.show_once(LinePrinted(text), lambda: self._host.print(text))

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        self._events.emit(PersonAsked(question, list(options)))
        answer = await self._host.ask(question, options)
        self._events.emit(PersonAnswered(question, answer))
        return answer

    async def fill(self, question: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        if not isinstance(self._host, FormHost):
            return await forms.Form(question, form).fill_in(self.ask)
        self._events.emit(PersonAsked(question, []))
        answers = await self._host.fill(question, form)
        self._events.emit(PersonAnswered(question, json.dumps(answers)))
        return answers

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        id, chain = request.id or OMITTED, list(request.chain) or OMITTED
        self._events.emit(ApprovalRequested(request.what, request.detail, id, chain), request.agent)
        try:
            decision = await self._host.approve(request)
        except NobodyToAskError:
            self._events.emit(ApprovalGiven(request.what, "no", id), request.agent)
            raise
        reason = visible(decision.reason) or OMITTED
        self._events.emit(ApprovalGiven(request.what, decision.answer, id, reason), request.agent)
        return decision


async def _pending_cancellation() -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """The error that the current task, which is to be cancelled, meets where it waits next."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as error:
        return type(error), error, error.__traceback__
    return asyncio.CancelledError, asyncio.CancelledError(), None


class _Nobody(Agent, koi_name="nobody"):
    """Stands in where a prompt is rendered without an agent."""


# Programs may recurse some 2,000 calls deep; 8 MB of stack hold twice these frames even where all calls pass through C.
MAX_FRAMES = 7500
_lock = threading.Lock()
# How many runs are open, and the limit before the first of them.
_open_runs, _limit_before = 0, 0


@contextmanager
def deep_calls() -> Iterator[None]:
    """Raise the recursion limit to `MAX_FRAMES` until the last of the runs that are open at a time has ended.

    The limit belongs to the process, and so to whoever has imported a program: it is put back, unless somebody else
    has changed it meanwhile. A limit that is higher already stays.
    """
    global _open_runs, _limit_before
    with _lock:
        if _open_runs == 0:
            _limit_before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(MAX_FRAMES, _limit_before))
        _open_runs += 1
    try:
        yield
    finally:
        with _lock:
            _open_runs -= 1
            if _open_runs == 0 and sys.getrecursionlimit() == MAX_FRAMES:
                sys.setrecursionlimit(_limit_before)
