"""One run of a program: its live agents, its services, and the end of everything it started."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, KoiError
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.team import Query, Team
from koi_lang.runtime.context import current
from koi_lang.runtime.events import Events
from koi_lang.runtime.host import Approval, Host, SilentHost, use_host
from koi_lang.runtime.limits import MOST_TURNS, Budget, Spending
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.runtime.paths import enter_run, leave_run, passing
from koi_lang.runtime.patience import Patience
from koi_lang.runtime.values.promises import Scope
from koi_lang.runtime.values.undefined import undefined

if TYPE_CHECKING:
    from koi_lang.llm.messages import Adapter, Request, Usage
    from koi_lang.runtime.prompts import Scope as PromptScope
    from koi_lang.runtime.registry import Registry

Connect = Callable[[Mapping[str, Any]], "Adapter"]
Evaluate = Callable[[str, Mapping[str, Any]], Any]
# Providers that work inside this process.
UNPAID = ("scripted", "rehearsal")


def _no_expressions(text: str, names: Mapping[str, Any]) -> Any:
    raise KoiError("expressions are not available in this run")


@dataclass(slots=True)
class Services:
    """What a run needs from the world above it.

    Attributes:
        connect: makes a model from the settings of an `llm` block.
        teams: gives all teams of the program, for agents that use none.
        folder: where the registry of the run is.
        config: the content of `.koi-config.json`.
        consumers: are told every event.
        payload: fields that `run` statements pass on beside their own.
        evaluate: computes an expression over names, safely; for conditions and references in actions.
        limits: from the command line or `koi.toml`: tokens, usd and time (seconds) for the whole run, turns for each
            playbook (counts before what agents declare), and the fields of `Patience`.
        clock: seconds that only grow.
        allow: permissions given beforehand, such as `shell` or `shell:git status`.
        verbatim: whether events carry all that a model is told.
        detailed: whether events carry what handlers and actions are given and give, and what models answer.
    """

    connect: Connect
    host: Host = field(default_factory=SilentHost)
    teams: Callable[[], Sequence[Team]] = tuple
    folder: Path = field(default_factory=Path.cwd)
    config: Mapping[str, Any] = field(default_factory=dict)
    consumers: Sequence[Callable[[Any], None]] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    evaluate: Evaluate = _no_expressions
    limits: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    allow: Sequence[str] = ()
    verbatim: bool = False
    detailed: bool = False


class Run:
    """An async context in which agents live; leaving it waits for everything they started and closes the services.

    Attributes:
        id: names the run.
        host: the person and the terminal.
        events: what happens.
        evaluate: computes an expression over names, safely.
        clock: seconds that only grow.
        detailed: whether events carry what handlers and actions are given and give, and what models answer.
        allowed: what the person has allowed, such as `shell:git status`.
        spending: what everything together spends.
        servers: the MCP servers that are in use.
        patience: how long playbooks that get nowhere are left alone.
    """

    def __init__(self, services: Services) -> None:
        self.id = os.urandom(6).hex()
        self.events = Events(self.id)
        self.host: Host = _Announcing(services.host, self.events)
        self.evaluate, self.clock = services.evaluate, services.clock
        self.detailed = services.detailed
        self.allowed = set(services.allow)
        self.spending = Spending(replace(Budget.of(services.limits), turns=None), "the run", self.clock)
        self.patience = Patience.of(services.limits)
        self.servers = Servers()
        self._services = services
        self._agents: dict[type[Agent], Agent] = {}
        self._models: dict[str, Adapter] = {}
        self._unpriced: set[str] = set()
        self._registry: Registry | None = None
        self._scope = Scope()
        self._endings: list[Callable[[], Awaitable[None]]] = []
        for consumer in services.consumers:
            self.events.subscribe(consumer)

    async def __aenter__(self) -> Run:
        self._token, self._place = current.set(self), enter_run()
        use_host(self.host)
        await self.servers.open()
        self.keep_until_end(self.servers.close)
        await self._scope.__aenter__()
        self.events.emit("run_started")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._scope.__aexit__(kind, error, trace)
        finally:
            self.events.emit("run_ended", ok=error is None)
            current.reset(self._token)
            leave_run(self._place)
            await self._close()

    def keep_until_end(self, end: Callable[[], Awaitable[None]]) -> None:
        """Have something ended when the run ends, such as a process."""
        self._endings.append(end)

    async def _close(self) -> None:
        for end in reversed(self._endings):
            await end()
        for model in self._models.values():
            await model.aclose()
        if self._registry is not None:
            self._registry.close()

    # ------------------------------------------------------------ agents

    def agent(self, declared: type[Agent]) -> Agent:
        """The live agent of a declaration; it comes to life when it is first mentioned."""
        live = self._agents.get(declared)
        if live is None:
            live = self._agents[declared] = declared(self)
        return live

    def peers(self, agent: Agent | None, team: Team | None = None) -> Query:
        """A query over the teams an agent uses, else over the first that lists it; or over one team it can reach."""
        reachable = self._teams_of(agent)
        if team is None:
            return Query(self, reachable)
        if agent is not None and team not in reachable:
            known = ", ".join(f"`{other.name}`" for other in reachable) or "none"
            help = f"write `uses team {team.name}` in `{agent.name}`; its teams are: {known}."
            raise AgentError(f"`{agent.name}` has no access to the team `{team.name}`", help=help)
        return Query(self, (team,))

    def _teams_of(self, agent: Agent | None) -> tuple[Team, ...]:
        if agent is None:
            return ()
        used = tuple(agent.about.teams())
        if used:
            return used
        return tuple(team for team in self._services.teams() if team.lists(type(agent)))[:1]

    async def call(self, declared: type[Agent], event: str, payload: Any = undefined) -> Any:
        """Have an agent handle an event and give the result."""
        return await self.agent(declared).handle(event, payload)

    async def start(self, declared: type[Agent], event: str, payload: Any) -> Any:
        """Carry out a `run` statement."""
        if self._services.payload and isinstance(payload, dict):
            payload = {**payload, **self._services.payload}
        return await self.call(declared, event, payload)

    def update_state(self, agent: Agent, updates: Mapping[str, Any]) -> None:
        """Change fields of an agent's state."""
        agent.state.update(updates)
        self.events.emit("state_changed", agent.name, updates=dict(updates))

    async def perform(self, agent: Agent, intent: str, data: Any) -> Any:
        """A built-in action called from code; an unknown one gives null."""
        from koi_lang.runtime.actions import builtin
        from koi_lang.runtime.actions.table import ActionContext, perform

        find = builtin.find
        kind = find(intent)
        if kind is None:
            return None
        fields = data if isinstance(data, dict) else {} if data is undefined else {"data": data}
        return await perform(kind, ActionContext(self, agent), fields, checked=False)

    def bare_scope(self) -> PromptScope:
        """A scope for prompts called from code, outside of any playbook."""
        from koi_lang.runtime.prompts import Scope as PromptScope

        return PromptScope(_Nobody(self), {})

    # ------------------------------------------------------------ services

    @property
    def registry(self) -> Registry:
        """The shared key/value store; opened when it is first used."""
        if self._registry is None:
            from koi_lang.runtime.registry import open_registry

            self._registry = open_registry(self._services.folder, self._services.config)
        return self._registry

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def model(self, agent: Agent, use: str = "default") -> Adapter:
        """The model an agent uses for a purpose; agents with the same settings share it."""
        declared = agent.about.llm.get(use) or agent.about.llm.get("default")
        settings = dict(declared()) if declared is not None else {}
        key = repr(sorted(settings.items()))
        if key not in self._models:
            self._models[key] = self._services.connect(settings)
        return self._models[key]

    def budget(self, agent: Agent, event: str) -> Budget:
        """The most a call of a handler may spend: its playbook's, its agent's, the default."""
        declared = Budget.of(agent.handler(event).budget).over(Budget.of(agent.about.budget))
        turns = self._services.limits.get("turns", declared.turns)
        return replace(declared, turns=MOST_TURNS if turns is None else turns)

    async def stream(
        self, agent: Agent, request: Request, spending: Spending | None = None, use: str = "default"
    ) -> AsyncGenerator[str, None]:
        """The answer of an agent's model for a use (`default`, `small`, `judge`), piece by piece.

        Raises:
            LimitReached: a budget does not allow the request, or its time is up.
            ProviderError: the model cannot answer.
        """
        from koi_lang.llm.accounting import usage_of, worst_case
        from koi_lang.llm.layers import opened
        from koi_lang.llm.messages import Finished, TextDelta

        model = self.model(agent, use)
        name = request.model or model.model
        spending = spending or self.spending
        tokens, usd = worst_case(request, name)
        spending.allow(tokens, usd)
        if usd is None and spending.limits_usd() and model.provider not in UNPAID:
            self._note_unpriced(name)
        path = passing("model")
        self.events.emit("model_asked", agent.name, path=path, model=name, **self._verbatim(request))
        answer, end = _Arriving(self.detailed), Finished(None, "cut")
        try:
            async with opened(model, request) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta):
                        answer.add(delta.text)
                        yield delta.text
                    else:
                        end = delta
        finally:
            # An answer that broke off, or was no longer wanted, is paid for all the same.
            model_name = end.answered_by or name
            about = {"path": path, "model": model_name, "stop": end.stop_reason, **answer.text()}
            if end.replayed:
                self._tell_replayed(agent, about)
            elif answer.length or end.usage:
                usage = usage_of(request, answer.length, end.usage)
                self._account(agent, usage, spending, about)

    def _note_unpriced(self, name: str) -> None:
        if name not in self._unpriced:
            self.host.log(f"the price of `{name}` is not known, so no budget in usd bounds what it takes")
            self._unpriced.add(name)

    def _verbatim(self, request: Request) -> dict[str, Any]:
        """All that a model is told, where that was asked for."""
        if not self._services.verbatim:
            return {}
        return {"system": request.system, "messages": [[message.role, message.text] for message in request.messages]}

    def _account(self, agent: Agent, usage: Usage, spending: Spending, about: Mapping[str, Any]) -> None:
        from koi_lang.llm.models import cost_usd

        usd, tokens = cost_usd(about["model"], usage), usage.input_tokens + usage.output_tokens
        spending.spend(tokens, usd)
        counted = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": usage.cached_tokens}
        self.events.emit("model_answered", agent.name, tokens=counted, usd=usd, **about)

    def _tell_replayed(self, agent: Agent, about: Mapping[str, Any]) -> None:
        """An answer that was kept from an earlier request costs nothing; only who wants its text is told of it."""
        if self.detailed:
            counted = {"input": 0, "output": 0, "cached": 0}
            self.events.emit("model_answered", agent.name, tokens=counted, usd=0.0, replayed=True, **about)

    async def complete(
        self, agent: Agent, instruction: str, data: str, spending: Spending | None = None, use: str = "small"
    ) -> str:
        """A plain answer to an instruction about some data, from the agent's model for a use."""
        from koi_lang.llm.messages import Message, Request

        request = Request(instruction, (Message("user", data),))
        return "".join([piece async for piece in self.stream(agent, request, spending, use)])


class _Arriving:
    """What has arrived of an answer: how long it is, and its text where somebody wants it."""

    def __init__(self, keep: bool) -> None:
        self.length = 0
        self._pieces: list[str] | None = [] if keep else None

    def add(self, piece: str) -> None:
        self.length += len(piece)
        if self._pieces is not None:
            self._pieces.append(piece)

    def text(self) -> dict[str, str]:
        return {} if self._pieces is None else {"text": "".join(self._pieces)}


class _Announcing:
    """A host whose prints, questions and approvals are events, too."""

    def __init__(self, host: Host, events: Events) -> None:
        self._host, self._events = host, events
        self.log, self.secret = host.log, host.secret

    def print(self, text: str) -> None:
        self._events.emit("printed", message=text)
        self._host.print(text)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        self._events.emit("asked", question=question, options=list(options))
        answer = await self._host.ask(question, options)
        self._events.emit("answered", question=question, answer=answer)
        return answer

    async def approve(self, what: str, detail: str) -> Approval:
        self._events.emit("approval_requested", what=what, detail=detail)
        answer = await self._host.approve(what, detail)
        self._events.emit("approval_given", what=what, answer=answer)
        return answer


class _Nobody(Agent, koi_name="nobody"):
    """Stands in where a prompt is rendered without an agent."""
