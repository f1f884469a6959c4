"""The services that a run needs, and the factories of its optional parts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.agents.declarations import Team
from koi_lang.runtime.guards.permissions import NO_RESTRICTIONS, KeptRules, Restrictions
from koi_lang.runtime.hooks.additions import NOTHING_ADDED, Additions
from koi_lang.runtime.host import Host, SilentHost
from koi_lang.settings import ProjectSettings
from koi_lang.system.interpolation import Evaluate, ExpressionRules

if TYPE_CHECKING:
    from koi_lang.runtime import command_sandbox, registry
    from koi_lang.runtime.actions import lookup
    from koi_lang.runtime.budget.limits import BudgetAccount
    from koi_lang.runtime.guidance import service
    from koi_lang.runtime.hooks import runner
    from koi_lang.runtime.journal.history import History
    from koi_lang.runtime.mcp import servers, sign_in
    from koi_lang.runtime.mcp.sign_in import SignIn
    from koi_lang.runtime.model_calls import gateway
    from koi_lang.runtime.model_calls.pool import Connect
    from koi_lang.runtime.playbook import loop
    from koi_lang.runtime.ports import AgentPort, DebuggerPort, RunPort
    from koi_lang.runtime.routing import semantic
    from koi_lang.runtime.routing.semantic import ConnectEmbedder
else:
    command_sandbox = lazy_module("koi_lang.runtime.command_sandbox")
    gateway = lazy_module("koi_lang.runtime.model_calls.gateway")
    lookup = lazy_module("koi_lang.runtime.actions.lookup")
    loop = lazy_module("koi_lang.runtime.playbook.loop")
    registry = lazy_module("koi_lang.runtime.registry")
    runner = lazy_module("koi_lang.runtime.hooks.runner")
    semantic = lazy_module("koi_lang.runtime.routing.semantic")
    service = lazy_module("koi_lang.runtime.guidance.service")
    servers = lazy_module("koi_lang.runtime.mcp.servers")
    sign_in = lazy_module("koi_lang.runtime.mcp.sign_in")


def _no_expressions(text: str, names: Mapping[str, Any], rules: ExpressionRules = ExpressionRules.LENIENT, /) -> Any:
    raise KoiError("expressions are not available in this run")


@dataclass(slots=True)
class Services:
    """The services that a run needs.

    Attributes:
        connect: makes a model from the settings of an `llm` block.
        connect_embedder: makes one for embeddings; None where none is to be asked.
        teams: gives all teams of the program, for agents that use none.
        folder: of the files that the program works on, its registry among them.
        settings: the settings files of the project, as whoever prepared the run has read them.
        config: the content of `.koi-config.json`.
        consumers: are told every event.
        payload: fields that `run` statements pass on beside their own.
        evaluate: computes an expression over names, safely; for conditions and references in actions.
        limits: from the command line or `koi.toml`: tokens, usd and time (seconds) for the whole run, turns for each
            playbook (counts before what agents declare), and the fields of `Patience`.
        clock: seconds that only grow.
        allow: permissions given beforehand, such as `shell` or `write:src/**`.
        restrictions: what is denied or asked about, whatever is allowed.
        kept_rules: what the person keeps for later runs; None where nothing is kept.
        verbatim: whether events carry all that a model is told.
        detailed: whether events carry what handlers and actions are given and give, and what models answer.
        redact: takes secrets out of a text, as whoever keeps the events does.
        history: what an earlier run came to, where this one goes on from it or repeats it.
        id: names the run; empty makes a new name.
        seed: what random numbers of the program follow from; empty makes a new one.
        today: date and place that models are told; empty tells none.
        models: the settings of models by purpose, such as `small`, for agents that declare none for it.
        added: what extensions add; for one run only.
        note: is told what the person may have got wrong, a line each.
        note_once: is told, with a name for it, what the person need not be told again in the next run.
        sign_in: how to sign in to MCP servers; None where that is not possible.
        plan: whether the run begins in plan mode.
        debugger: stops before actions of playbooks; None in ordinary runs.
        payer: who pays for the run beside itself, perhaps for several runs; None for nobody.
        is_served: whether others than the person at this machine may call the program, as callers of a service may.
        no_memory: whether agents that say `uses memory` are told no notes.
        plans: the folder of the program, whose `plans` are used; None where they are not used.
        service: the folder of the service of which the run is a session; its commands see only `folder` in there.
    """

    connect: Connect
    host: Host = field(default_factory=SilentHost)
    teams: Callable[[], Sequence[Team]] = tuple
    folder: Path = field(default_factory=Path.cwd)
    settings: ProjectSettings = field(default_factory=lambda: ProjectSettings(Path.cwd()))
    config: Mapping[str, Any] = field(default_factory=dict)
    consumers: Sequence[Callable[[Any], None]] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    evaluate: Evaluate = _no_expressions
    limits: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    allow: Sequence[str] = ()
    restrictions: Restrictions = NO_RESTRICTIONS
    kept_rules: KeptRules | None = None
    verbatim: bool = False
    detailed: bool = False
    redact: Callable[[str], str] = str
    history: History | None = None
    id: str = ""
    seed: str = ""
    today: str = ""
    models: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    connect_embedder: ConnectEmbedder | None = None
    added: Additions = NOTHING_ADDED
    note: Callable[[str], None] = lambda line: None
    note_once: Callable[[str, str], None] = lambda name, line: None
    sign_in: SignIn | None = None
    plan: bool = False
    debugger: DebuggerPort | None = None
    payer: BudgetAccount | None = None
    is_served: bool = False
    no_memory: bool = False
    plans: Path | None = None
    service: Path | None = None


def make_models(run: RunPort, services: Services) -> gateway.ModelGateway:
    """The gateway to the models."""
    return gateway.ModelGateway(
        run, services.connect, services.models, verbatim=services.verbatim, plans=services.plans
    )


def make_meaning(run: RunPort, services: Services) -> semantic.Meaning:
    """The router by meaning."""
    return semantic.Meaning(run, services.connect_embedder, services.models)


def make_registry(run: RunPort, services: Services) -> registry.KeptRegistry:
    """The key/value store that the settings of the folder ask for. Raises SettingsError or RegistryError."""
    return registry.KeptRegistry(registry.open_registry(services.folder, services.config), run.recorder, run.id)


def make_sandboxes(run: RunPort, services: Services) -> command_sandbox.CommandSandboxes:
    """The sandboxes of commands; whether they work is found out with the first command."""
    return command_sandbox.CommandSandboxes(
        services.folder,
        services.settings,
        run.permissions.restrictions,
        services.note_once,
        services.note,
        services.service,
        is_bounded=services.is_served or services.service is not None,
    )


def make_hooks(run: RunPort, services: Services) -> runner.Hooks:
    """The hooks that extensions add."""
    return runner.Hooks(run, services.added.hooks)


def make_servers(run: RunPort, services: Services) -> servers.Servers:
    """The MCP servers, none of which is started yet."""
    person = None if services.sign_in is None else sign_in.PersonSignIn(services.sign_in, run.host)
    return servers.Servers(run.background, services.settings, services.note, person)


def make_guidance(run: RunPort, services: Services) -> service.Guidance:
    """The instructions and skills of the project, wherever the files are that its programs work on, and notes there."""
    folder, tells_notes = services.settings.folder, not services.no_memory
    return service.Guidance(folder, services.note, is_served=services.is_served, tells_notes=tells_notes)


async def call_action(run: RunPort, agent: AgentPort, name: str, data: Any) -> Any:
    """The result of a built-in action that code calls. Raises AgentError where there is no such action."""
    return await lookup.call_action(run, agent, name, data)


async def run_playbook(agent: AgentPort, event: str, args: Any, parts: Any) -> Any:
    """The result of a playbook."""
    return await loop.run_playbook(agent, event, args, parts)


@dataclass(frozen=True, slots=True)
class Factories:
    """Factories of the parts of a run; optional ones are imported when they are made first."""

    models: Callable[[RunPort, Services], gateway.ModelGateway] = make_models
    meaning: Callable[[RunPort, Services], semantic.Meaning] = make_meaning
    registry: Callable[[RunPort, Services], registry.KeptRegistry] = make_registry
    sandboxes: Callable[[RunPort, Services], command_sandbox.CommandSandboxes] = make_sandboxes
    hooks: Callable[[RunPort, Services], runner.Hooks] = make_hooks
    servers: Callable[[RunPort, Services], servers.Servers] = make_servers
    guidance: Callable[[RunPort, Services], service.Guidance] = make_guidance
    action: Callable[[RunPort, AgentPort, str, Any], Awaitable[Any]] = call_action
    playbook: Callable[[AgentPort, str, Any, Any], Awaitable[Any]] = run_playbook


MADE_WHEN_USED = Factories()
