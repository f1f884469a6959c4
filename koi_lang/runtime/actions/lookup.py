"""All built-in actions, beside those that extensions add to a run: importing this module fills the table."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.actions import control, core, mcp, outputs, planning, registry, shell
from koi_lang.runtime.actions.client_tools import client_offer
from koi_lang.runtime.actions.layers import perform
from koi_lang.runtime.actions.registered import MAX_SHOWN, ActionContext, ActionKind, builtin_actions, find_builtin
from koi_lang.runtime.guards.access_rules import Kind
from koi_lang.runtime.guards.policy import action_access, any_access
from koi_lang.runtime.model_calls import frozen_plans
from koi_lang.runtime.narrowing import bounds
from koi_lang.runtime.outputs.ends import READ_OUTPUT

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort, RunPort

# The order in which prompts and documentation list them.
MODULES = (core, registry, control, shell, mcp, outputs, planning, frozen_plans)
# Permissions for what may give long results in any run.
LONG_RESULTS = ("execute", "delegate")
# The kind of access of actions by their permission. Those of extensions that say nothing of themselves may have none.
ACCESSES: Mapping[str, Kind] = {"read": "read", "write": "write", "execute": "run", "web_access": "web"}


def all_actions() -> Sequence[ActionKind]:
    """Every built-in action, module after module, in the order of declaration."""
    order = [module.__name__ for module in MODULES]
    return sorted(builtin_actions(), key=lambda kind: order.index(kind.function.__module__))


def find_action(run: RunPort, name: str) -> ActionKind | None:
    """An action of a run by name: a built-in one, else one of an extension, or a tool of the client."""
    return find_builtin(name) or run.added.actions.get(name) or client_offer.get().actions.get(name)


async def call_action(run: RunPort, agent: AgentPort, name: str, data: Any) -> Any:
    """Run an action that code calls, and return its result.

    Raises:
        AgentError: there is no such action.
        PermissionDeniedError: the call is narrowed to a role that lacks what the action needs.
    """
    kind = find_action(run, name)
    if kind is None:
        names = [each.name for each in (*all_actions(), *run.added.actions.values())]
        raise AgentError(f"there is no action `{name}`", help=suggestion(name, names, "action"))
    run.policy.check(action_access(kind, bounds=bounds(), topic=kind.name))
    fields = data if isinstance(data, dict) else {} if data is undefined else {"data": data}
    return await perform(kind, ActionContext(run, agent), fields)


def reads_outputs(agent: AgentPort, *, is_plain: bool = False) -> bool:
    """Whether an agent is offered the action that reads long results.

    Where commands, tools, functions or other agents can give some, that is from the start: a list of tools that never
    changes stays in the prompt cache of a provider.

    Args:
        is_plain: whether its model is told of no more than it needs.
    """
    run = agent.run
    has_long = bool(agent.about.mcps()) or any(kind.shown > MAX_SHOWN for kind in run.added.actions.values())
    if not is_plain:
        has_long |= bool(agent.offered_skills) or any(map(agent.role.allows, LONG_RESULTS))
    return has_long or (run.has_outputs and bool(run.outputs.told_to(agent.name))) or has_commands(agent)


def has_commands(agent: AgentPort) -> bool:
    """Whether an agent is offered the actions for commands in the background: where it has or may well have some."""
    run = agent.run
    return "run_command" in run.added.actions or (run.has_commands and bool(run.commands.of_agent(agent.name)))


def actions_of(agent: AgentPort, hidden: Container[str] = ()) -> list[ActionKind]:
    """The actions an agent's role permits now; outputs, skills, plans and clients have theirs where there are any.

    Args:
        hidden: those that are left out.
    """
    known = [*all_actions(), *agent.run.added.actions.values(), *client_offer.get().actions.values()]
    useful_now = {
        READ_OUTPUT: reads_outputs(agent),
        outputs.READ_SKILL: agent.about.reads_skills,
        control.FOR_EACH: False,
        frozen_plans.EXPECT: False,
        core.PHASE_DONE: agent.phases is not None,
    }
    has_calls = agent.run.has_calls and bool(agent.run.calls.of_agent(agent.name))
    useful_now |= dict.fromkeys((core.AWAIT_CALL, core.CANCEL_CALL, core.LIST_CALLS), has_calls)
    plan = agent.run.planning
    policy = agent.run.policy
    closed = {needs for needs, access in ACCESSES.items() if policy.verdict(any_access(access)).outcome == "denied"}
    has_background = has_commands(agent) and "execute" not in closed
    useful_now |= dict.fromkeys((shell.LIST_COMMANDS, shell.STOP_COMMAND), has_background)
    role = agent.role
    wanted = [kind for kind in known if kind.name not in hidden and (kind.tool == "other" or kind.needs not in closed)]
    useful = [kind for kind in wanted if useful_now.get(kind.name, True) and plan.offers(kind.name)]
    return [
        kind for kind in useful if policy.verdict(action_access(kind, role=role, topic=kind.name)).outcome != "denied"
    ]


@dataclass(frozen=True, slots=True)
class PermittedActions:
    """The names of the actions that an agent's role permits, looked up for whoever asks."""

    agent: AgentPort = field(repr=False, compare=False)

    def __contains__(self, name: object) -> bool:
        return any(kind.name == name for kind in actions_of(self.agent))


__all__ = [
    "MODULES",
    "PermittedActions",
    "actions_of",
    "all_actions",
    "call_action",
    "find_action",
    "find_builtin",
    "reads_outputs",
]
