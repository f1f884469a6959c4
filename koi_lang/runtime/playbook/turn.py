"""One answer of a model, carried out action by action while it arrives."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
from koi_lang.runtime.guards.write_quota import write_quota
from koi_lang.runtime.model_calls.answer_stream import AnswerStream
from koi_lang.runtime.playbook.action_parsing import Action, ReplyError
from koi_lang.runtime.playbook.call import Execution
from koi_lang.runtime.playbook.prompting import Feedback
from koi_lang.runtime.playbook.reply_parser import ReplyReader
from koi_lang.runtime.playbook.result_keys import shapes_of
from koi_lang.runtime.tasks import together

# After `return`, what the answer took is usually told at once; it is not waited for any longer than this.
GRACE_S = 1.0


@dataclass(slots=True)
class ReceivedAnswer:
    """What has arrived of one answer.

    Attributes:
        pieces: as the model wrote it.
        feedback: on every action that was carried out, or failed.
        failed: whether any of them failed.
        problem: why the rest was not read, for the model.
        broken: the error that cut the stream.
        arriving: its way from the model.
    """

    pieces: list[str] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)
    failed: bool = False
    problem: str = ""
    broken: ProviderError | None = None
    arriving: AnswerStream | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens of request and answer together, as the provider counted; 0 where it did not."""
        return 0 if self.arriving is None else self.arriving.counted

    def add(self, feedback: Feedback) -> None:
        """Note what came of an action."""
        self.feedback.append(feedback)
        self.failed |= not feedback.ok


async def carry_out(execution: Execution, request: Request) -> ReceivedAnswer:
    """Read an answer and carry out its actions as they become complete.

    Reading goes on while an action runs. A failure or `return` ends the answer: what would follow is not read.
    """
    answer = ReceivedAnswer()
    actions: asyncio.Queue[Action | None] = asyncio.Queue()
    async with together() as group:
        reading = group.create_task(read(execution, request, answer, actions))
        with write_quota():
            await execute(execution, answer, actions)
        if execution.ended:
            await asyncio.wait([reading], timeout=GRACE_S)
        reading.cancel()
    return answer


async def read(
    execution: Execution, request: Request, answer: ReceivedAnswer, actions: asyncio.Queue[Action | None]
) -> None:
    """Put the actions of an answer into a queue while it arrives, then None."""
    reader = ReplyReader(shapes_of(execution.playbook))
    try:
        models = execution.agent.run.models
        async with models.stream_answer(execution.agent, request, execution.spending) as arriving:
            answer.arriving = arriving
            await read_pieces(arriving, reader, answer, actions)
        for action in reader.finish(is_cut=arriving.is_cut):
            actions.put_nowait(action)
    except ReplyError as error:
        answer.problem = error.message
    except ProviderError as error:
        answer.broken, answer.problem = error, f"the connection broke: {error.message}"
    actions.put_nowait(None)


async def read_pieces(
    arriving: AnswerStream, reader: ReplyReader, answer: ReceivedAnswer, actions: asyncio.Queue[Action | None]
) -> None:
    """Feed pieces of an answer to the reader; what an action was read from is kept before it can begin."""
    async with aclosing(arriving.pieces()) as pieces:
        async for piece in pieces:
            answer.pieces.append(piece)
            for action in reader.feed(piece):
                arriving.keep()
                actions.put_nowait(action)


async def execute(execution: Execution, answer: ReceivedAnswer, actions: asyncio.Queue[Action | None]) -> None:
    """Carry out the actions of a queue in order; members of a parallel group run at the same time."""
    waiting = await actions.get()
    while waiting is not None and not stops(execution, answer):
        if waiting.group:
            waiting = await execute_group(execution, waiting, answer, actions)
            continue
        answer.add(await execution.carry_out(waiting))
        if not stops(execution, answer):
            waiting = await actions.get()


async def execute_group(
    execution: Execution, first: Action, answer: ReceivedAnswer, actions: asyncio.Queue[Action | None]
) -> Action | None:
    """Start the members of a group as they come, and wait for all of them; gives what follows the group."""
    following: Action | None = first
    async with together() as group:
        members = []
        while following is not None and following.group == first.group:
            members.append(group.create_task(execution.carry_out(following)))
            following = await actions.get()
    for member in members:
        answer.add(member.result())
    return following


def stops(execution: Execution, answer: ReceivedAnswer) -> bool:
    """Whether the rest of an answer is not carried out: the playbook has returned, or something failed."""
    return execution.ended or answer.failed
