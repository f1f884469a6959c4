"""The runtime of `std/improve`: its rounds as events, the files of the best one, and the reasons of failures."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from koi_lang.errors import BestEffortError
from koi_lang.events import ChangesNotKept, FileChanged, FileRestored, RoundEnded, RoundStarted
from koi_lang.js.errors import ErrorValue
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.concurrency.stoppable_threads import Stop, run_in_thread
from koi_lang.runtime.context import current
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.file_changes.undo_plan import CHANGED_SINCE
from koi_lang.runtime.guards.write_quota import no_quota
from koi_lang.runtime.host import visible
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import Path as Location
from koi_lang.runtime.replay.location import current_path, leaf_path
from koi_lang.std.effects import agent, perform_effect
from koi_lang.std.workspace import SNAPSHOT

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# Of the line that names what is put back.
MAX_NAMED = 20


def begin_round(number: int, rounds: int) -> list[str]:
    """Report the start of a round; returns the place of its event, by which `put_back` finds it."""
    return _emit(RoundStarted(number, rounds), "round")


def end_round(number: int, rounds: int, decision: str, score: float | None, gates: Mapping[str, bool]) -> list[str]:
    """Report the end of a round: its score, its gates, and the decision; returns the place of its event."""
    return _emit(RoundEnded(number, rounds, decision, score, dict(gates)), "round_end")


async def put_back(place: Sequence[str], tree: str) -> bool:
    """Put back what the run itself has changed since a snapshot; the changes of anybody else stay.

    Args:
        place: as `begin_round` or `end_round` gave it: the snapshot is the last one of the tree before it.
        tree: the id of the snapshot.

    Returns:
        Whether the run is recorded, without which nothing tells its changes from those of others.

    Raises:
        KoiError: the journal or the project cannot be read.
    """

    async def work() -> bool:
        run = current.get()
        if run is None or not path_of(run.folder, run.id).exists():
            return False
        await _put_back(run, tuple(place), tree)
        return True

    return bool(await perform_effect(Effect("improve.put_back", {"snapshot": tree}, safe=True), work))


async def _put_back(run: RunPort, place: Location, tree: str) -> None:
    """Carry out the undo of a run that goes on, as changes of its own, so that `koi undo` can revert them."""
    loop, around = asyncio.get_running_loop(), current_path()
    asking = agent()
    name = "" if asking is None else asking.name

    def emit(undone: FileRestored) -> None:
        with no_quota():
            change = FileChanged(undone.file, undone.before, undone.after)
            run.events.emit(change, name, path=(*around, f"file#{secrets.token_hex(6)}"))

    def note(undone: FileRestored) -> None:
        if undone.before != undone.after:
            loop.call_soon_threadsafe(emit, undone)

    def carry_out(stop: Stop) -> list[str]:
        entries = read(path_of(run.folder, run.id)).entries
        last = next(each.n for each in entries if each.path == place)
        snapshots = (each for each in entries if each.kind == "done" and each.data.get("intent") == SNAPSHOT)
        taken = (each.n for each in snapshots if each.n < last and dict(each.data["result"])["id"] == tree)
        undo = RunUndo(run.folder, run.id, entries, run.settings)
        plan = undo.plan(max(taken))
        done = undo.carry_out(plan, note)
        names = sorted(visible(each.undo.file) for each in done if not each.refusal and not each.is_kept_folder)
        left = {each.undo.file: each.refusal for each in done if each.refusal}
        left |= {each.file: each.refusal for each in plan.refusals}
        more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        again = f"`koi undo {run.id} --to {entries[-1].n}` reverts that"
        is_partial = any(each.kind == ChangesNotKept.type for each in entries)
        return [
            *(["not all that was changed was stored, so that some of it may stay"] if is_partial else []),
            *([f"put back as the best round left it: {', '.join(names[:MAX_NAMED])}{more}; {again}"] if names else []),
            *(
                f"{visible(file)} is left as it is: {'somebody else has changed it' if why == CHANGED_SINCE else why}"
                for file, why in sorted(left.items())
            ),
        ]

    for line in await run_in_thread(carry_out):
        run.host.log(line)


def is_limit(error: Any) -> bool:
    """Whether a caught error is a limit that ended the work, rather than a failure of it."""
    return isinstance(error, ErrorValue) and isinstance(error.exception, LimitReachedError)


def _emit(data: RoundStarted | RoundEnded, name: str) -> list[str]:
    run, asking = current.get(), agent()
    place = leaf_path(name)
    if run is not None:
        run.events.emit(data, "" if asking is None else asking.name, path=place)
    return list(place)


def end(checks: str) -> NoReturn:
    """End the run with the result of rounds that were not accepted.

    Args:
        checks: what the checks said of the best round, as a clause.

    Raises:
        BestEffortError: always.
    """
    run = current.get()
    if run is not None and run.planning.is_on:
        raise BestEffortError("no plan was accepted, so nothing was changed", help="Say what the plan is to be like.")
    help = "Look at what was changed; `koi undo` puts it back."
    raise BestEffortError(f"this is the best that came of it: {checks}", help=help)
