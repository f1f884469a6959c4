"""The turn loop: ask the model, carry out actions while it writes them, tell it the results, until it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import MissingKey, ProviderError
from koi_lang.llm.failures import RequestFailed
from koi_lang.llm.messages import Member, Message, Request, Task
from koi_lang.runtime.actions.builtin import allowed
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.context import current_execution
from koi_lang.runtime.limits import Spending, in_time
from koi_lang.runtime.patience import Circles, Failures
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.execution import Execution
from koi_lang.runtime.playbook.intents import Action, ReplyError
from koi_lang.runtime.playbook.prompting import Feedback
from koi_lang.runtime.playbook.references import Names
from koi_lang.runtime.playbook.replies import ReplyReader
from koi_lang.runtime.prompts import Scope, joined
from koi_lang.runtime.tasks import together
from koi_lang.runtime.values.undefined import undefined

MOST_BROKEN = 3
# After `return`, what the answer took is usually told at once; it is not waited for any longer than this.
GRACE_S = 1.0
Parts = Callable[[Scope], Sequence[Any]]


@dataclass(slots=True)
class Answer:
    """What has arrived of one answer.

    Attributes:
        pieces: as the model wrote it.
        feedback: on every action that was carried out, or failed.
        problem: why the rest was not read, for the model.
        broken: the error that cut the stream.
    """

    pieces: list[str] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)
    problem: str = ""
    broken: ProviderError | None = None

    @property
    def came_to_nothing(self) -> bool:
        """Whether the stream was cut before anything happened."""
        return self.broken is not None and not self.feedback


async def run_playbook(agent: Agent, event: str, args: Any, parts: Parts) -> Any:
    """Carry out a playbook and give what it returns. Raises PlaybookError or ProviderError when that fails."""
    execution = begin(agent, event, args)
    messages = conversation(execution)
    known = len(messages)
    messages.append(Message("user", prompting.first_message(execution.args, agent.state)))
    async with in_time(*enclosing(execution)):
        while not execution.ended:
            answer = await take_turn(execution, messages, parts)
            remember(messages, answer, execution)
    if execution.parent is None:
        agent.memory += messages[known:]
    return execution.value


def begin(agent: Agent, event: str, args: Any) -> Execution:
    """A new call, with a budget within that of whoever delegated it, or of the run."""
    run, parent = agent.run, current_execution()
    what = f"`{agent.name}.{event}`"
    given = {} if args is undefined else args
    outer = parent.spending if parent else run.spending
    spending = Spending(run.budget(agent, event), what, run.clock, outer)
    names = Names(run.evaluate, given, agent.state)
    patience = run.patience
    return Execution(agent, event, given, names, spending, Circles(what, patience), Failures(what, patience), parent)


def conversation(execution: Execution) -> list[Message]:
    """What has been said before: nothing to a delegate or an agent with amnesia.

    It is a copy, so that calls at the same time do not mix, and one that fails leaves nothing behind.
    """
    agent = execution.agent
    return list(agent.memory) if execution.parent is None and not agent.about.amnesia else []


def enclosing(execution: Execution) -> list[Spending]:
    """Whose time limits the call has to look after; those of whoever delegated it are looked after there."""
    own = [execution.spending]
    return own if execution.parent is not None else [*own, execution.agent.run.spending]


async def take_turn(execution: Execution, messages: list[Message], parts: Parts) -> Answer:
    """One answer, carried out as far as it goes. An answer that breaks off before anything happens is asked for again.

    Raises:
        ProviderError: it broke off three times, or another attempt is no use.
    """
    for _ in range(MOST_BROKEN):
        execution.spending.begin_turn()
        execution.circles.next_answer()
        answer = await carry_out(execution, await next_request(execution, messages, parts))
        if answer.broken is None or not answer.came_to_nothing:
            return answer
        if not may_succeed_later(answer.broken):
            break
    assert answer.broken is not None
    raise answer.broken


def may_succeed_later(error: ProviderError) -> bool:
    """Whether the same request may be answered another time."""
    return not isinstance(error, MissingKey) and (not isinstance(error, RequestFailed) or error.repeatable)


async def next_request(execution: Execution, messages: list[Message], parts: Parts) -> Request:
    """The next request; prompts that depend on the state are rendered anew, the conversation only grows."""
    agent = execution.agent
    scope = Scope(agent, execution.args)
    execution.playbook = await joined(parts(scope), scope, "\n")
    if execution.failures.must_pivot():
        messages.append(Message("user", prompting.PIVOT))
    system = prompting.system_prompt(agent, execution.playbook, is_delegate=execution.parent is not None)
    return Request(system, tuple(messages), json=True, schema=prompting.ANSWER, task=task(execution))


def task(execution: Execution) -> Task:
    """What the request is about, as data, for models inside this process."""
    agent = execution.agent
    members = delegation.reachable(agent) if agent.role.allows("delegate") else []
    return Task(
        playbook=execution.playbook,
        args=execution.args,
        state=dict(agent.state),
        actions=tuple(kind.name for kind in allowed(agent)),
        members=tuple(Member(m.key, m.agent.about.affordance, tuple(m.events)) for m in members),
        results=tuple(execution.results),
    )


# ---------------------------------------------------------------- one answer


async def carry_out(execution: Execution, request: Request) -> Answer:
    """Read an answer and carry out its actions as they become complete.

    Reading goes on while an action runs. A failure or `return` ends the answer: what would follow is not read.
    """
    answer = Answer()
    actions: asyncio.Queue[Action | None] = asyncio.Queue()
    async with together() as group:
        reading = group.create_task(read(execution, request, answer, actions))
        await execute(execution, answer, actions)
        if execution.ended:
            await asyncio.wait([reading], timeout=GRACE_S)
        reading.cancel()
    return answer


async def read(execution: Execution, request: Request, answer: Answer, actions: asyncio.Queue[Action | None]) -> None:
    """Put the actions of an answer into a queue while it arrives, then None."""
    reader = ReplyReader()
    try:
        async with aclosing(execution.agent.run.stream(execution.agent, request, execution.spending)) as pieces:
            await read_pieces(pieces, reader, answer, actions)
        reader.finish()
    except ReplyError as error:
        answer.problem = error.message
    except ProviderError as error:
        answer.broken, answer.problem = error, f"the connection broke: {error.message}"
    actions.put_nowait(None)


async def read_pieces(
    pieces: AsyncIterator[str], reader: ReplyReader, answer: Answer, actions: asyncio.Queue[Action | None]
) -> None:
    """Feed pieces of an answer to the reader."""
    async for piece in pieces:
        answer.pieces.append(piece)
        for action in reader.feed(piece):
            actions.put_nowait(action)


async def execute(execution: Execution, answer: Answer, actions: asyncio.Queue[Action | None]) -> None:
    """Carry out the actions of a queue in order; members of a parallel group run at the same time."""
    waiting = await actions.get()
    while waiting is not None and not stops(execution, answer):
        if waiting.group:
            waiting = await execute_group(execution, waiting, answer, actions)
            continue
        answer.feedback.append(await execution.carry_out(waiting))
        if not stops(execution, answer):
            waiting = await actions.get()


async def execute_group(
    execution: Execution, first: Action, answer: Answer, actions: asyncio.Queue[Action | None]
) -> Action | None:
    """Start the members of a group as they come, and wait for all of them; gives what follows the group."""
    following: Action | None = first
    async with together() as group:
        members = []
        while following is not None and following.group == first.group:
            members.append(group.create_task(execution.carry_out(following)))
            following = await actions.get()
    answer.feedback += [member.result() for member in members]
    return following


def stops(execution: Execution, answer: Answer) -> bool:
    """Whether the rest of an answer is not carried out: the playbook has returned, or something failed."""
    return execution.ended or not all(feedback.ok for feedback in answer.feedback)


def remember(messages: list[Message], answer: Answer, execution: Execution) -> None:
    """Add an answer and what came of it to the conversation."""
    text = prompting.clipped("".join(answer.pieces))
    if text:
        messages.append(Message("assistant", text))
    if answer.problem and not stops(execution, answer):
        execution.failures.failed(answer.problem)
        answer.feedback.append(prompting.unreadable(answer.problem))
    messages.append(Message("user", prompting.joined_feedback(answer.feedback)))
