"""The calls that a Python program, or the client of a session, made of a recorded run, made again to what is known."""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, JournalError, KoiError, Outcome, capture
from koi_lang.events import CallEnded, CallStarted, CompactionAsked, HandlerStarted, PlanModeChanged, RunEnded
from koi_lang.js.promises import TaskScope
from koi_lang.program import declarations
from koi_lang.program.error_report import message
from koi_lang.runtime.budget.limits import Budget, BudgetAccount, in_time
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.journal.calls import CALL, MAIN
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import is_cut
from koi_lang.runtime.plan_mode import BEGUN as PLAN_BEGUN
from koi_lang.runtime.playbook.compaction import request_compaction
from koi_lang.runtime.replay.location import Location, current_place, enter_place
from koi_lang.runtime.replay.ordering import BEGIN
from koi_lang.runtime.run import Run


async def repeat_calls(run: Run, module: ModuleType, budget: Budget) -> None:
    """Make the calls of a recorded run again, in a run that has been entered, each in the slot that it had.

    Those that had not ended go on; nothing is called that was not called then.

    Args:
        budget: the most that each may take.

    Raises:
        JournalError: it is of a version that did not record calls.
        KoiError: a replayed run had failed outside of its calls.
        Exception: what a call fails with that had not ended.
    """
    history, root = run.recorded.history, current_place()
    assert history is not None, "a run that goes on"
    assert root is not None, "a run that has been entered"
    begun = [entry for entry in history.entries if entry.kind == CallStarted.type]
    if not begun and any(entry.kind == HandlerStarted.type for entry in history.entries):
        raise JournalError("the journal does not hold what Python called", help="Make the calls again from Python.")
    async with together() as group:
        tasks = [
            group.create_task(_repeat(run, module, budget, entry, place, place))
            for entry in begun
            for place in (_place_of(entry, root),)
        ]
    failed = [error for task in tasks if (error := task.result()) is not None]
    if failed:
        raise failed[0]
    end = next((entry for entry in history.entries if entry.kind == RunEnded.type), None)
    if not run.recorded.policy.has_outside and end is not None and not end.data.get("ok"):
        raise KoiError("the Python program had failed, or was interrupted")


async def repeat_session(run: Run, module: ModuleType, budget: Budget) -> None:
    """Do again in order what the client of a recorded session asked for, in a replay that has been entered.

    Args:
        budget: the most that each call may take.

    Raises:
        KoiError: an agent that its client named is not there any more.
    """
    history, root = run.recorded.history, current_place()
    assert history is not None, "a replay"
    assert root is not None, "a run that has been entered"
    agents = {agent.about.name: agent for agent in declarations.agents_of(module)}
    # Calls that were alone in their session have no place of their own, but for their beginning and end.
    placed = {entry.path[0] for entry in history.entries if len(entry.path) > 1}
    for entry in history.entries:
        if entry.kind == CallStarted.type:
            place = _place_of(entry, root)
            await _repeat(run, module, budget, entry, place, place if place.label in placed else root)
        elif entry.kind == PlanModeChanged.type and (entry.path == PLAN_BEGUN or len(entry.path) == 1):
            run.planning.set(entry.data.get("on") is True, entry.path)
        elif entry.kind == CompactionAsked.type and entry.agent in agents:
            run.events.emit(CompactionAsked(str(entry.data.get("instructions", ""))), entry.agent)
            with suppress(KoiError):  # as it was then, when the client was told
                await request_compaction(run.agent(agents[entry.agent]), str(entry.data.get("instructions", "")))


def _place_of(call: JournalEntry, root: Location) -> Location:
    """The place that a call had; one that was ended before it began has no entry, but a number."""
    number = call.path[-1].rpartition("#")[2] if call.path else ""
    root.counts[CALL] = int(number) - 1 if number.isdecimal() else 0
    return root.child(CALL)


async def _repeat(
    run: Run, module: ModuleType, budget: Budget, call: JournalEntry, place: Location, within: Location
) -> Exception | None:
    """Make a call again; gives what it fails with, unless it had ended.

    Args:
        place: where its beginning and its end are told.
        within: where its work is done.
    """
    id, name = str(call.data.get("call", "")), str(call.data.get("name", ""))
    await run.recorder.slots.take_slot(BEGIN, place.path)
    run.events.emit(CallStarted(id, name, args=call.data.get("args")), path=place.path)
    ended = None if run.recorded.history is None else run.recorded.history.find(CallEnded.type, place.path)
    with enter_place(within):
        work = _carry_out(run, module, name, call.data.get("args"), budget)
        if ended is not None and is_cut(ended):
            await run.recorder.follow_to_cut(capture(work), place.path)
            return None
        outcome = await capture(work)
    if ended is not None:
        return None
    run.events.emit(_end_of(id, name, outcome), path=place.path)
    return outcome.error


def _end_of(id: str, name: str, outcome: Outcome[Any]) -> CallEnded:
    if outcome.error is not None:
        return CallEnded(id, name, ok=False, error=message(outcome.error))
    return CallEnded(id, name, ok=True, result=outcome.value)


async def _carry_out(run: Run, module: ModuleType, name: str, args: Any, budget: Budget) -> Any:
    """What comes of a call, by its name. Raises AgentError when the program has nothing of that name any more."""
    async with in_time(BudgetAccount(budget, f"`{name}`", run.clock)):
        if name == MAIN:
            async with TaskScope():
                return await module.main()
        first, _, event = name.partition(".")
        agents = {agent.about.name: agent for agent in declarations.agents_of(module)}
        if first not in agents:
            raise AgentError(f"there is no agent `{first}`", help=suggestion(first, list(agents), "agent"))
        return await run.call(agents[first], event, args)
