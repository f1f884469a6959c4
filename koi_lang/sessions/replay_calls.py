"""The commands of a recorded session, repeated in order with known outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from koi_lang.errors import KoiError
from koi_lang.events import (
    CallEnded,
    CallStarted,
    CompactionAsked,
    EffortChanged,
    ModelChanged,
    PlanModeChanged,
    SessionNamed,
)
from koi_lang.js.undefined import undefined
from koi_lang.runtime.actions.client_tools import ClientOffer, use_offer
from koi_lang.runtime.journal.calls import MAIN
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import History, ProgramFit, is_cut
from koi_lang.runtime.plan_mode import BEGUN
from koi_lang.sessions.calls import (
    PROMPT,
    agent_named,
    begin_checked,
    begin_main,
    begin_prompt,
    compact_memory,
    handler_named,
)
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.session import Session
from koi_lang.settings.efforts import EFFORTS


async def go_over(session: Session, history: History) -> None:
    """Bring a session to where it was. A call that had not ended is begun, and goes on.

    Raises:
        KoiError: the program cannot make the calls again.
        ProgramChangedError: they do not fit the program any more.
    """
    await _use_model(session, history)
    _use_effort(session, history)
    for entry in history.entries:
        if entry.kind in AGAIN:
            await AGAIN[entry.kind](session, entry)
    if history.fit is not None and history.fit.call is None:
        history.fit.is_whole = True


async def _use_model(session: Session, history: History) -> None:
    """Use the model that was chosen last, unless one has been chosen now."""
    chosen = [str(entry.data.get("model", "")) for entry in history.entries if entry.kind == ModelChanged.type]
    choice = session.choice
    if not chosen or choice.name():
        return
    try:
        await choice.change(chosen[-1])
    except KoiError as error:
        session.client.log(f"`{chosen[-1]}` cannot be used any more: {error.message}")
    else:
        session.client.log(f"answers come from {choice.name()}, as before")


def _use_effort(session: Session, history: History) -> None:
    """Have models think as much as was chosen last, unless something has been chosen now."""
    chosen = [str(entry.data.get("effort", "")) for entry in history.entries if entry.kind == EffortChanged.type]
    choice = session.choice
    if chosen and chosen[-1] in EFFORTS and not choice.effort():
        choice.change_effort(chosen[-1])


async def _call(session: Session, entry: JournalEntry) -> None:
    history = session.run.recorded.history
    assert history is not None, "a session that goes on"
    ended, fit = history.find(CallEnded.type, entry.path), history.fit
    if fit is not None:
        fit.begin_call(entry, ended)
    call = _begun(session, entry)
    if ended is not None and is_cut(ended):
        await session.follow_to_its_cut(call)
    # Where there was another call, this one had ended even if its end cannot be read.
    elif ended is not None or any(each.kind == CallStarted.type and each.n > entry.n for each in history.entries):
        await asyncio.wait([call.task])
        if fit is not None and ended is not None:
            _require_same_end(call.describe_end(str), ended, fit)
    else:
        return
    if fit is not None:
        if ended is not None and (gone := history.untold_before(ended.n)):
            raise fit.fail(gone)
        fit.end_call()


def _require_same_end(now: CallEnded, before: JournalEntry, fit: ProgramFit) -> None:
    """Raise ProgramChangedError where a call fails that had not failed, or the other way round."""
    if now.ok == before.data.get("ok"):
        return
    raise fit.fail(f"`{now.name}` had failed" if now.ok else f"`{now.name}` fails now: {now.as_data()['error']}")


def _begun(session: Session, entry: JournalEntry) -> HeldCall:
    number = entry.path[-1].rpartition("#")[2] if entry.path else ""
    session.number_from(int(number) if number.isdecimal() else 1)
    name, history = str(entry.data.get("name", "")), session.run.recorded.history
    fit = None if history is None else history.fit
    try:
        if name == MAIN:
            return begin_main(session)
        first, _, prompt = name.partition(" ")
        if first == PROMPT:
            return begin_prompt(session, prompt, entry.data.get("args") or ())
        agent, event = handler_named(session, name, is_private=True)
        begin = session.begin_handler if fit is None or fit.is_past else partial(begin_checked, session)
        with use_offer(ClientOffer.of_entry(entry.data)):
            return begin(agent, event, entry.data.get("args", undefined), str(entry.data.get("call", "")))
    except SessionError as error:
        if fit is None:
            raise
        raise fit.fail(f"`{name}` cannot be called as it was: {error.message}") from error


async def _compaction(session: Session, entry: JournalEntry) -> None:
    try:
        await compact_memory(session, agent_named(session, entry.agent), str(entry.data.get("instructions", "")))
    except SessionError:
        raise
    except KoiError as error:  # as it was then, when the client was told
        session.client.log(error.message)


async def _model(session: Session, entry: JournalEntry) -> None:
    session.emit(ModelChanged(entry.data.get("model")))


async def _effort(session: Session, entry: JournalEntry) -> None:
    session.emit(EffortChanged(str(entry.data.get("effort", ""))))


async def _plan_mode(session: Session, entry: JournalEntry) -> None:
    is_on = entry.data.get("on") is True
    if entry.path == BEGUN:  # the run began so, as the command line that goes on with it need not say again
        session.run.planning.set(is_on, BEGUN)
    elif len(entry.path) == 1:  # what is deeper was done by a call, which does it again
        session.set_plan_mode(is_on)


async def _name(session: Session, entry: JournalEntry) -> None:
    session.named = str(entry.data.get("name", ""))
    session.emit(SessionNamed(session.named))


AGAIN: Mapping[str, Callable[[Session, JournalEntry], Awaitable[None]]] = {
    CallStarted.type: _call,
    CompactionAsked.type: _compaction,
    EffortChanged.type: _effort,
    ModelChanged.type: _model,
    PlanModeChanged.type: _plan_mode,
    SessionNamed.type: _name,
}
