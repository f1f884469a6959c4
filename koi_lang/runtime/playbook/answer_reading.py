"""The actions of an answer, read and carried out while it arrives."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
from koi_lang.llm.stream_state import ENDLESS, TOOLS_LEFT_OUT
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards.write_quota import write_quota
from koi_lang.runtime.model_calls.answer_stream import AnswerStream
from koi_lang.runtime.playbook.action_layers import carry_out_action
from koi_lang.runtime.playbook.action_parsing import MIXED_FORM, NO_ACTION, Action, ReplyError
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.direct_results import PROTOCOL, read_result, text_as_result, wrapper_of
from koi_lang.runtime.playbook.reply_parser import ReplyReader
from koi_lang.runtime.playbook.turn import Turn
from koi_lang.runtime.playbook.written_texts import WrittenResult, WrittenTexts

# Answers that may be texts for the person.
TEXT_FORMS = frozenset({NO_ACTION, MIXED_FORM})
# After `return`, what the answer took is usually told at once; it is not waited for any longer than this.
GRACE_S = 1.0


async def carry_out(call: PlaybookCall, request: Request) -> Turn:
    """Read an answer and carry out its actions as they become complete.

    Reading goes on while an action runs. A failure or `return` ends the answer: what would follow is not read.
    """
    turn = call.begin_turn(request)
    actions: asyncio.Queue[Action | None] = asyncio.Queue()
    async with together() as group:
        reading = group.create_task(read(call, turn, actions))
        with write_quota():
            await execute(call, turn, actions)
        if call.ended:
            await asyncio.wait([reading], timeout=GRACE_S)
        reading.cancel()
    turn.has_returned = call.ended
    return turn


async def read(call: PlaybookCall, turn: Turn, actions: asyncio.Queue[Action | None]) -> None:
    """Put the actions of an answer into a queue while it arrives, then None."""
    arriving, reader = None, ReplyReader(call.result_shapes)
    try:
        async with call.agent.run.models.stream_answer(call.agent, turn.request, call.spending) as arriving:
            call.names.is_of_program = arriving.is_frozen
            has_reader = call.agent.run.events.has_onlookers and not call.is_held_back
            listener = WrittenTexts(arriving.emit) if has_reader else None
            reader = ReplyReader(call.result_shapes, listener=listener)
            growing = None
            if has_reader and call.result_type is not None:
                names = frozenset(call.result_type.schema.get("properties", ()))
                growing = WrittenResult(
                    arriving.emit,
                    is_alone=call.is_direct,
                    wrapper=wrapper_of(call.result_type) if call.is_direct else "",
                    names=names - PROTOCOL,
                    protocol=(PROTOCOL | {"data"}) - names,
                )
            await read_pieces(arriving, None if call.is_direct else reader, turn, actions, growing)
        is_cut, is_endless = arriving.is_cut, arriving.stop_reason == ENDLESS
        turn.is_endless = is_endless
        if call.is_direct:
            rest = iter(read_result(call, turn.text, is_cut=is_cut, is_endless=is_endless))
        else:
            rest = reader.finish(is_cut=is_cut, is_endless=is_endless)
        for action in rest:
            turn.values.append(max(1, reader.values))
            actions.put_nowait(action)
    except ReplyError as error:
        turn.problem = error.message
        turn.advice = error.help or ""
        turn.unread = reader.values
        turn.form = error.form
        has_tools = arriving is not None and arriving.stop_reason != TOOLS_LEFT_OUT
        is_over = has_tools and error.form in TEXT_FORMS and not (reader.count or call.is_direct)
        if is_over and (final := text_as_result(call, turn)) is not None:
            turn.problem, turn.values = "", [1]
            actions.put_nowait(final)
    except ProviderError as error:
        turn.error, turn.problem = error, f"the connection broke: {error.message}"
    finally:
        if arriving is not None:
            turn.tokens, turn.thoughts = arriving.counted, arriving.thoughts
    actions.put_nowait(None)


async def read_pieces(
    arriving: AnswerStream,
    reader: ReplyReader | None,
    turn: Turn,
    actions: asyncio.Queue[Action | None],
    growing: WrittenResult | None,
) -> None:
    """Collect the pieces of an answer and feed them to a reader, and to who tells the result while it grows.

    What an action was read from is kept before it can begin.
    """
    async with aclosing(arriving.pieces()) as pieces:
        async for piece in pieces:
            turn.pieces.append(piece)
            if growing is not None:
                growing.add(piece)
            if reader is None:
                continue
            for action in reader.feed(piece):
                arriving.keep()
                turn.values.append(reader.values)
                actions.put_nowait(action)


async def execute(call: PlaybookCall, turn: Turn, actions: asyncio.Queue[Action | None]) -> None:
    """Carry out the actions of a queue in order; members of a parallel group run at the same time."""
    waiting = await actions.get()
    while waiting is not None and not stops(call, turn):
        if waiting.group:
            waiting = await execute_group(call, waiting, turn, actions)
            continue
        turn.add(await carry_out_action(call, waiting))
        if not stops(call, turn):
            waiting = await actions.get()


async def execute_group(
    call: PlaybookCall, first: Action, turn: Turn, actions: asyncio.Queue[Action | None]
) -> Action | None:
    """Start the members of a group as they arrive and wait for all; returns the action behind the group."""
    following: Action | None = first
    async with together() as group:
        members = []
        while following is not None and following.group == first.group:
            members.append(group.create_task(carry_out_action(call, following)))
            following = await actions.get()
    for member in members:
        turn.add(member.result())
    return following


def stops(call: PlaybookCall, turn: Turn) -> bool:
    """Whether the rest of an answer is not carried out: the playbook has returned, or something failed."""
    return call.ended or turn.has_failed
