"""The turn loop: ask the model, carry out actions while it writes them, tell it the results, until it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Member, Message, Request, Task
from koi_lang.runtime.actions.builtin import allowed
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.limits import Circles, Failures, Spending
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.execution import Execution, current_execution
from koi_lang.runtime.playbook.references import Names
from koi_lang.runtime.playbook.replies import Action, ReplyError, ReplyReader
from koi_lang.runtime.prompts import Scope, joined
from koi_lang.runtime.tasks import together
from koi_lang.runtime.values.undefined import undefined

MOST_BROKEN = 3
Parts = Callable[[Scope], Sequence[Any]]


@dataclass(slots=True)
class Answer:
    """What has arrived of one answer.

    Attributes:
        text: as the model wrote it.
        feedback: a line for every action that was carried out.
        problem: why the rest was not read or not carried out, for the model.
        broken: the error that cut the stream.
    """

    text: str = ""
    feedback: list[str] = field(default_factory=list)
    problem: str = ""
    broken: ProviderError | None = None


async def run_playbook(agent: Agent, event: str, args: Any, parts: Parts) -> Any:
    """Carry out a playbook and give what it returns. Raises PlaybookError or ProviderError when that fails."""
    execution, messages = begin(agent, event, args)
    broken = 0
    while not execution.ended:
        request = await next_request(execution, messages, parts)
        answer = await carry_out(execution, request)
        broken = broken + 1 if answer.broken is not None and not answer.feedback else 0
        if answer.broken is not None and broken == MOST_BROKEN:
            raise answer.broken
        remember(messages, answer, execution)
    return execution.value


def begin(agent: Agent, event: str, args: Any) -> tuple[Execution, list[Message]]:
    """A new call and its conversation: a delegate's is fresh, a root agent's goes on unless it has amnesia."""
    run, parent = agent.run, current_execution()
    what = f"`{agent.name}.{event}`"
    given = {} if args is undefined else args
    spending = Spending(run.budget(agent, event), what, run.clock, parent.spending if parent else None)
    names = Names(run.evaluate, given, agent.state)
    execution = Execution(agent, event, given, names, spending, Circles(what), Failures(what), parent)
    messages = agent.memory if parent is None and not agent.about.amnesia else []
    messages.append(Message("user", prompting.first_message(given, agent.state)))
    return execution, messages


async def next_request(execution: Execution, messages: list[Message], parts: Parts) -> Request:
    """The next request; prompts that depend on the state are rendered anew, the conversation only grows."""
    agent = execution.agent
    scope = Scope(agent, execution.args)
    execution.playbook = await joined(parts(scope), scope, "\n")
    if execution.failures.must_pivot():
        messages.append(Message("user", prompting.PIVOT))
    system = prompting.system_prompt(agent, execution.playbook, is_delegate=execution.parent is not None)
    return Request(system, tuple(messages), json=True, task=task(execution))


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
        answer.text += piece
        for action in reader.feed(piece):
            actions.put_nowait(action)


async def execute(execution: Execution, answer: Answer, actions: asyncio.Queue[Action | None]) -> None:
    """Carry out the actions of a queue in order; members of a parallel group run at the same time."""
    waiting = await actions.get()
    while waiting is not None:
        if waiting.group:
            waiting, lines = await execute_group(execution, waiting, actions)
        else:
            lines = [await execution.carry_out(waiting)]
            waiting = None if stops(execution, lines) else await actions.get()
        answer.feedback += lines
        if stops(execution, lines):
            return


async def execute_group(
    execution: Execution, first: Action, actions: asyncio.Queue[Action | None]
) -> tuple[Action | None, list[str]]:
    """Start the members of a group as they come; gives what follows the group, and their feedback in order."""
    following: Action | None = first
    async with together() as group:
        members = []
        while following is not None and following.group == first.group:
            members.append(group.create_task(execution.carry_out(following)))
            following = await actions.get()
    return following, [member.result() for member in members]


def stops(execution: Execution, feedback: list[str]) -> bool:
    """Whether the rest of an answer is not carried out: the playbook has returned, or something failed."""
    return execution.ended or any(prompting.is_failure(line) for line in feedback)


def remember(messages: list[Message], answer: Answer, execution: Execution) -> None:
    """Add an answer and what came of it to the conversation."""
    if answer.text:
        messages.append(Message("assistant", answer.text))
    if answer.problem and not execution.ended:
        execution.failures.failed(answer.problem)
        answer.feedback.append(prompting.unreadable(answer.problem))
    messages.append(Message("user", prompting.feedback(answer.feedback)))
