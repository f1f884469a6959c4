"""The turn loop: ask the model, carry out its actions, tell it the results, until it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import KoiError, PlaybookError
from koi_lang.llm.messages import Member, Message, Request, Result, Task
from koi_lang.runtime.actions import core, registry
from koi_lang.runtime.actions.table import ActionContext, allowed, find, perform
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.team import gathered
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.replies import Action, Group, ReplyError, Step, read_reply
from koi_lang.runtime.prompts import Scope, joined
from koi_lang.runtime.values.undefined import undefined

MOST_TURNS = 50
MOST_FAILURES = 10
ACTION_MODULES = (core, registry)


@dataclass(slots=True)
class Call:
    """One call of a playbook handler.

    Attributes:
        messages: the conversation so far; the list is the agent's memory for calls that are remembered.
        results: what was carried out in this call.
        failures: actions and answers that failed, one after the other.
        ended: whether `return` was carried out; `value` is its result.
    """

    agent: Agent
    event: str
    args: Any
    parts: Callable[[Scope], Sequence[Any]]
    messages: list[Message]
    results: list[Result] = field(default_factory=list)
    failures: int = 0
    ended: bool = False
    value: Any = undefined


async def run_playbook(agent: Agent, event: str, args: Any, parts: Callable[[Scope], Sequence[Any]]) -> Any:
    """Carry out a playbook and give what it returns. Raises PlaybookError when it cannot be completed."""
    remembered = not agent.about.amnesia and not agent.run.is_delegated()
    call = Call(agent, event, args, parts, agent.memory if remembered else [])
    call.messages.append(Message("user", prompting.first_message(args, agent.state)))
    for _ in range(MOST_TURNS):
        answer = await ask(call)
        await carry_out(call, answer)
        if call.ended:
            return call.value
        if call.failures >= MOST_FAILURES:
            raise PlaybookError(f"`{agent.name}.{event}` gave up after {call.failures} failures in a row")
    raise PlaybookError(f"`{agent.name}.{event}` did not return within {MOST_TURNS} turns")


async def ask(call: Call) -> str:
    """The model's next answer; prompts that depend on the state are rendered anew for each."""
    playbook = await joined(call.parts(Scope(call.agent, call.args)), Scope(call.agent, call.args), "\n")
    system = prompting.system_prompt(call.agent, playbook)
    request = Request(system, tuple(call.messages), json=True, task=task(call, playbook))
    answer = await call.agent.run.answer(call.agent, request)
    call.messages.append(Message("assistant", answer))
    return answer


def task(call: Call, playbook: str) -> Task:
    """What the request is about, as data, for models inside this process."""
    agent = call.agent
    members = delegation.reachable(agent) if agent.role.allows("delegate") else []
    return Task(
        playbook=playbook,
        args={} if call.args is undefined else call.args,
        state=dict(agent.state),
        actions=tuple(kind.name for kind in allowed(agent)),
        members=tuple(Member(m.key, m.agent.about.affordance, tuple(m.agent.about.handlers)) for m in members),
        results=tuple(call.results),
    )


async def carry_out(call: Call, answer: str) -> None:
    """Carry out the steps of an answer in order, up to a failure or `return`, and add the feedback."""
    try:
        steps = read_reply(answer)
    except ReplyError as error:
        call.failures += 1
        call.messages.append(Message("user", prompting.unreadable(error.message)))
        return
    feedback: list[str] = []
    for step in steps:
        done = await carry_out_step(call, step)
        feedback += done
        if call.ended or any(line.startswith("❌") for line in done):
            break
    call.messages.append(Message("user", "\n".join([*feedback, "Continue."])))


async def carry_out_step(call: Call, step: Step) -> list[str]:
    """One action, or a group of them at the same time; gives a line of feedback for each."""
    if isinstance(step, Group):
        return list(await gathered(carry_out_action(call, action) for action in step.actions))
    return [await carry_out_action(call, step)]


async def carry_out_action(call: Call, action: Action) -> str:
    """One action; whatever goes wrong is told to the model."""
    events, name = call.agent.run.events, call.agent.name
    events.emit("action_started", name, intent=action.intent)
    try:
        value = await dispatch(call, action)
    except KoiError as error:
        call.failures += 1
        call.results.append(Result(action.intent, dict(action.data), False, error.message))
        events.emit("action_failed", name, intent=action.intent, error=error.message)
        return prompting.failed(action.intent, action.id, f"{error.message}. {error.help or ''}".strip())
    call.failures = 0
    call.results.append(Result(action.intent, dict(action.data), True, value))
    events.emit("action_ended", name, intent=action.intent)
    if action.intent == "return":
        call.ended, call.value = True, value
    return prompting.succeeded(action.intent, action.id, value)


def dispatch(call: Call, action: Action) -> Awaitable[Any]:
    """Hand an action to the built-in function or the team member it names."""
    kind = None if action.delegated else find(action.intent)
    if kind is not None:
        return perform(kind, ActionContext(call.agent.run, call.agent), action.data, checked=True)
    return delegate(call, action)


async def delegate(call: Call, action: Action) -> Any:
    """Have a team member do it, with fresh memory. Raises PermissionDenied or AgentError."""
    call.agent.run.require(call.agent, "delegate", action.intent)
    member, event = delegation.resolve(call.agent, action.intent)
    return await call.agent.run.delegate(member, event, action.data.get("data", dict(action.data)))
