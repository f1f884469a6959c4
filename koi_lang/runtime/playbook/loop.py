"""The turn loop: ask the model, carry out what it answers, tell it the results, until it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.errors import MissingKeyError, ProviderError, RequestError
from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import DelegateInfo, Message, Request, Task
from koi_lang.llm.models import card_of
from koi_lang.runtime.actions.lookup import actions_of
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.context import current_execution
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.call import Execution
from koi_lang.runtime.playbook.compaction import explain_error, fit, make_room, open_for_wishes
from koi_lang.runtime.playbook.conversation import Conversation
from koi_lang.runtime.playbook.loop_guard import Failures, RepetitionGuard
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.steering import ActivePlaybook, QueuedMessage
from koi_lang.runtime.playbook.turn import ReceivedAnswer, carry_out, stops
from koi_lang.runtime.prompts import PromptContext, join_parts
from koi_lang.runtime.replay.calls import Effect

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

MOST_BROKEN = 3
Parts = Callable[[PromptContext], Sequence[Any]]


async def run_playbook(agent: AgentPort, event: str, args: Any, parts: Parts) -> Any:
    """Carry out a playbook and give what it returns. Raises PlaybookError or ProviderError when that fails."""
    execution = begin(agent, event, args)
    said = execution.conversation = Conversation.of(agent, execution.spending, recall_messages(execution))
    messages = said.begin(prompting.first_message(execution.args, agent.state))
    work = ActivePlaybook(agent.name, event, messages, execution.parent is not None)
    with agent.run.steering.working(work), open_for_wishes(said):
        while not execution.ended:
            await look_for_tools(execution)
            answer = await take_turn(execution, messages, parts)
            remember(messages, answer, execution)
            follow_up(execution, messages)
    if has_memory(execution):
        said.settle()
    return execution.value


async def look_for_tools(execution: Execution) -> None:
    """Find out what MCP servers offer an agent; they are started for that, and asked again when that changes."""
    agent = execution.agent
    servers = agent.about.mcps() if agent.role.allows("call_mcp") else ()
    members = delegation.remote_tools(agent) if agent.role.allows("delegate") else {}
    if not servers and not members:
        return
    before, known = execution.tools, agent.run.servers
    found = await agent.run.effects.perform_as_step(
        Effect("tools", {}, agent.name, safe=True),
        lambda: known.news(servers, members, before) if before else known.offers(servers, members),
    )
    execution.tools = found or before


def begin(agent: AgentPort, event: str, args: Any) -> Execution:
    """A new call of a playbook, which spends what the call of its handler may."""
    run, parent, spending = agent.run, current_execution(), current_spending()
    assert spending is not None, "a handler that was called"
    what = f"`{agent.name}.{event}`"
    given = {} if args is undefined else args
    names = ActionScope(run.evaluate, given, agent.state)
    patience = run.patience
    return Execution(
        agent, event, given, names, spending, RepetitionGuard(what, patience), Failures(what, patience), parent
    )


def recall_messages(execution: Execution) -> list[Message]:
    """What has been said before; calls at the same time do not mix, and one that fails leaves nothing behind."""
    return execution.agent.memory if has_memory(execution) else []


def has_memory(execution: Execution) -> bool:
    """Whether the conversation lasts: not with a delegate, nor with an agent that has amnesia."""
    return execution.parent is None and not execution.agent.about.amnesia


async def take_turn(execution: Execution, messages: list[Message], parts: Parts) -> ReceivedAnswer:
    """One answer, carried out as far as it goes. An answer that breaks off before anything happens is asked for again.

    Raises:
        ProviderError: it broke off three times, or another attempt is no use.
    """
    for _ in range(MOST_BROKEN):
        execution.spending.begin_turn()
        execution.circles.next_answer()
        answer = await carry_out(execution, await next_request(execution, messages, parts))
        if answer.broken is None or answer.feedback:
            return answer
        if not may_succeed_later(answer.broken) and not await make_room(conversation_of(execution), answer.broken):
            break
    assert answer.broken is not None
    raise explain_error(conversation_of(execution), answer.broken)


def conversation_of(execution: Execution) -> Conversation:
    """The conversation of a call that has begun."""
    assert execution.conversation is not None
    return execution.conversation


def may_succeed_later(error: ProviderError) -> bool:
    """Whether the same request may be answered another time."""
    return not isinstance(error, MissingKeyError) and (not isinstance(error, RequestError) or error.repeatable)


async def next_request(execution: Execution, messages: list[Message], parts: Parts) -> Request:
    """The next request; prompts that depend on the state are rendered anew, the conversation grows while it fits."""
    agent = execution.agent
    scope = PromptContext(agent, execution.args)
    execution.playbook = await join_parts(parts(scope), scope, "\n")
    if execution.failures.must_pivot():
        messages.append(Message("user", prompting.PIVOT))
    is_delegate = execution.parent is not None
    add_notes(execution, messages, await agent.run.steering.before_request(agent.name, delegated=is_delegate))
    playbook = execution.playbook.text
    system = prompting.system_prompt(agent, playbook, is_delegate=is_delegate, tools=execution.tools)
    await fit(conversation_of(execution), system, playbook)
    return Request(system, tuple(messages), json=True, task=task(execution, playbook))


def follow_up(execution: Execution, messages: list[Message]) -> None:
    """Have a playbook that has returned go on with what was queued for its end."""
    if execution.ended:
        said = execution.agent.run.steering.at_end(execution.agent.name, delegated=execution.parent is not None)
        add_notes(execution, messages, said)
        execution.ended = not said


def add_notes(execution: Execution, messages: list[Message], said: Sequence[QueuedMessage]) -> None:
    """Add what was said meanwhile to the conversation; it is new to the model, as an answer of the person is."""
    messages += [Message("user", note.message, note.images) for note in said]
    if said:
        execution.circles.forget()


def task(execution: Execution, playbook: str) -> Task:
    """What the request is about, as data, for models inside this process."""
    agent = execution.agent
    members = delegation.reachable(agent) if agent.role.allows("delegate") else []
    return Task(
        playbook=playbook,
        args=execution.args,
        state=dict(agent.state),
        actions=tuple(kind.name for kind in actions_of(agent)),
        members=tuple(DelegateInfo(m.key, m.agent.about.affordance, tuple(m.events)) for m in members),
        results=tuple(execution.results),
        parts=execution.playbook.parts,
    )


def remember(messages: list[Message], answer: ReceivedAnswer, execution: Execution) -> None:
    """Add an answer and what came of it to the conversation."""
    text = prompting.clip_answer("".join(answer.pieces))
    if text:
        messages.append(Message("assistant", text))
    conversation_of(execution).note(answer.total_tokens)
    if answer.problem and not stops(execution, answer):
        execution.failures.unreadable(answer.problem)
        answer.add(prompting.unreadable(answer.problem, is_rest=bool(answer.feedback)))
    messages.append(prompting.joined_feedback(answer.feedback, sees=can_see_images(execution)))


def can_see_images(execution: Execution) -> bool:
    """Whether the model of a call is known to see; others are told of images in results, and nothing fails."""
    agent = execution.agent
    return card_of(agent.run.models.of(agent).model).vision is True
