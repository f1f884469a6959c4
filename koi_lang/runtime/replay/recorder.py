"""Effects of a program: performed once, reported as events, and recalled where they are recorded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from koi_lang.errors import AgentError, JournalError, KoiError, Outcome, capture, error_of
from koi_lang.events import DoubtSettled, EffectEnded, EffectFailed, EffectStarted, EventData, TimedOut, ValueObserved
from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Events
from koi_lang.runtime.guards.write_quota import require_quota
from koi_lang.runtime.replay.calls import Effect, PythonCall, never
from koi_lang.runtime.replay.doubts import HOW_TO_DECIDE, Doubt
from koi_lang.runtime.replay.error_records import data_of, from_data
from koi_lang.runtime.replay.location import Location, Path, current_place, enter, leaf_path
from koi_lang.runtime.replay.ordering import DOUBT, END, LATE, CompletionOrder
from koi_lang.runtime.replay.policies import Change
from koi_lang.runtime.replay.recorded_run import RecordedRun

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import JournalEntry


T = TypeVar("T")


class NotRecordedError(KoiError):
    """A replayed program asks for something that its recording does not hold."""


class RunRecorder:
    """A `Recorder`, which documents the methods: it reports outcomes as events, and recalls those of a history.

    Attributes:
        is_kept: whether outcomes are told with what makes them up, or looked up.
        slots: what happens at moments that the clock decides, in order.

    Args:
        recorded: what is known beforehand.
        is_kept: whether outcomes are kept for later; without that, and where nothing is known, nothing is looked up.
        seed: what random numbers follow from.
        halt: ends the run with an error.
    """

    def __init__(
        self,
        events: Events,
        halt: Callable[[KoiError], NoReturn],
        recorded: RecordedRun,
        *,
        is_kept: bool = False,
        seed: str = "",
    ) -> None:
        self._recorded, self._past = recorded, recorded.history
        self._events = events
        self._halt = halt
        self._seed = seed
        self.is_kept = is_kept or not recorded.is_live
        self.slots = CompletionOrder(self._past.order if self._past is not None else ())
        self._missed = MissedCalls()

    # ------------------------------------------------------------ what takes time

    async def perform(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Perform the effect of the action around the current code, or recall its outcome.

        Raises:
            Exception: as the work did, now or then.
        """
        place = current_place()
        if place is None or place.state.is_covered:
            return await work()
        if self._past is not None and place.state.is_over and self._past.outcome(place.path) is None:
            await never()
        known = self._recall_outcome(place, effect, work)
        if isinstance(known, Doubt):
            if known.why == "begun":
                # Whoever ended it then, such as a group of which another member failed, ends it again before this.
                await self.slots.take_slot(DOUBT, place.path)
            known = self._settle(known)
        if known is None and effect.call is not None:
            known = self._lost(place, effect, effect.call)
        if known is not None:
            return known.result()
        with self.slots.held_for(END, place.path), place.cover():
            for call in () if effect.call is None else self._missed_by(effect.call):
                await capture(_result(call.work))
            return await (self.slots.carry_out(place.path, work) if self.slots.carry_out is not None else work())

    async def perform_as_step(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do something for code: once, with a path and events of its own. Raises as the work does."""
        effect.require_execution()
        if not self._is_looked_after():
            return await work()
        with enter(effect.name):
            require_quota(effect.given, f"what `{effect.name}` is given")
            self._tell_begin(effect)
            ended = await self.complete(self.perform(effect, work))
            if ended.error is None and effect.safe:  # what has been changed is told in any case
                refusal = error_of(require_quota, effect.as_told(ended.value), f"what `{effect.name}` gave")
                ended = ended if refusal is None else Outcome(error=refusal)
            if ended.error is not None:
                self._tell_failure(effect, ended.error)
            else:
                self._tell_end(effect, ended.value)
        return ended.result()

    def perform_as_step_nowait(self, effect: Effect, work: Callable[[], Any]) -> Any:
        """Like `perform_as_step`, for work that does not wait."""
        effect.require_execution()
        if not self._is_looked_after():
            return work()
        with enter(effect.name) as place:
            assert place is not None
            require_quota(effect.given, f"what `{effect.name}` is given")
            self._tell_begin(effect)
            if self._past is not None and place.state.is_over and self._past.outcome(place.path) is None:
                raise asyncio.CancelledError  # it was under way when the time was up, and cannot wait for that
            with ExitStack() as ending:
                ending.push(lambda kind, raised, trace: self._tell_failure(effect, raised))
                ending.callback(self.slots.pass_over, END, place.path)
                known = self._recall_outcome(place, effect, work)
                known = self._settle(known) if isinstance(known, Doubt) else known
                if known is None and effect.call is not None:
                    known = self._lost(place, effect, effect.call)
                with place.cover():
                    value = self._do(effect, work) if known is None else known.result()
            self._tell_end(effect, value)
        return value

    def _is_looked_after(self) -> bool:
        place = current_place()
        return place is not None and not place.state.is_covered and self.is_kept

    def _tell_begin(self, effect: Effect) -> None:
        if effect.slow or not effect.safe:
            self._events.emit(EffectStarted(**effect.event_fields()), effect.agent)

    def _tell_failure(self, effect: Effect, raised: BaseException | None) -> None:
        if isinstance(raised, Exception):
            failed = EffectFailed(**effect.event_fields(), failure=data_of(raised), **_changes(effect))
            self._events.emit(failed, effect.agent)

    def _tell_end(self, effect: Effect, value: Any) -> None:
        ended = EffectEnded(**effect.event_fields(), **(as_fields(effect.as_told(value)) | _changes(effect)))
        self._events.emit(ended, effect.agent)

    async def complete(self, work: Awaitable[T]) -> Outcome[T]:
        """How some work at the current place ends, when it is its slot to end: nobody hears of it before.

        So what follows from it happens in the order that is recorded, also in the run that records it.
        """
        ended = await capture(work)
        await self.wait_for_slot()
        return ended

    async def wait_for_slot(self, kind: str = END, path: Path | None = None) -> None:
        """Wait for the slot in which something begins or ends, at the current place or on a path from there."""
        place = current_place()
        if place is not None and not place.state.is_covered and self.is_kept:
            await self.slots.take_slot(kind, place.path if path is None else path)

    def _do(self, effect: Effect, work: Callable[[], Any]) -> Any:
        """Perform an effect that does not wait."""
        for call in () if effect.call is None else self._missed_by(effect.call):
            error_of(call.work)
        return work()

    def _recall_outcome(self, place: Location, effect: Effect, work: Callable[[], Any]) -> Outcome[Any] | Doubt | None:
        """The recorded outcome of an effect, or the doubt about it; None when it is to be performed now."""
        past = self._past
        if past is None or (effect.reads_files and past.policy.reads_files_anew):
            return None
        if place.state.has_diverged:
            return self._again(effect, place.path)
        path = place.path
        before, begun = past.outcome(path), past.find("begun", path)
        asked = begun or before
        if asked is not None and "fields" in asked.data and not past.is_same(asked.data["fields"], dict(effect.given)):
            self._differ(place, effect)
            if past.policy.on_different == "diverge":
                return self._again(effect, path)
        if before is None:
            if begun is None and past.is_settled:
                self.diverge("new", path, "begun", effect.name)
            return self._doubt_unfinished(place, effect, has_begun=begun is not None)
        why = self._lack(before)
        if why is None:
            return self._recall(effect, before, work)
        if effect.safe or past.only_reads(path) or not past.policy.has_outside:
            return self._mark_in(effect, path)
        detail = f"`{before.data['opaque']}`" if isinstance(before.data.get("opaque"), str) else ""
        return Doubt(effect.name, path, why, effect.given, effect.agent, detail)

    def _mark_in(self, effect: Effect, path: Path) -> Doubt | None:
        """The doubt about an effect that is to be done with the mark of a secret instead of that."""
        if self._past is None or not self._past.passes_mark_on((effect.given, effect.unseen)):
            return None
        return Doubt(effect.name, path, "unknown", effect.given, effect.agent)

    def _recall(self, effect: Effect, before: JournalEntry, work: Callable[[], Any]) -> Outcome[Any]:
        """The outcome in an entry, with its changes applied to the inputs of the effect."""
        if self._past is not None:
            for said, agent in self._past.dialogue(before.path):
                self._events.emit(said, agent)
            if not effect.safe:
                self._past.take_over(effect.name, dict(effect.given))
        if effect.call is not None:
            lacking = effect.call.restore(before.data)
            self._missed.add(effect.name, lacking, work, safe=effect.safe)
        return outcome_of(before)

    def _lost(self, place: Location, effect: Effect, call: PythonCall) -> Outcome[Any] | None:
        """The decision where an effect works on objects with missed calls; None to make these, and then the effect."""
        if self._past is None or not self._past.policy.has_outside:
            return None
        missed = self._missed.of(call.objects)
        if all(each.safe for each in missed):
            return None
        detail = list_calls(missed)
        return self._settle(Doubt(effect.name, place.path, "lost", effect.given, effect.agent, detail))

    def _missed_by(self, call: PythonCall) -> list[MissedCall]:
        """The calls that the objects of a call lack; they are about to be made."""
        missed = self._missed.of(call.objects)
        self._missed.forget(missed)
        return missed

    def look_at(self, owner: Any, name: str, look: Callable[[], Any]) -> Any:
        """The value of a Python object's attribute, after the missed calls on it have been made."""
        place = current_place()
        if self._past is None or place is None or place.state.is_covered or not self._missed.of((owner,)):
            return look()
        looking = _Looking((owner,))
        effect = Effect(name, call=looking)
        known = self._lost(place, effect, looking)
        with place.cover():
            return self._do(effect, look) if known is None else known.result()

    def _lack(self, before: JournalEntry) -> Literal["opaque", "redacted"] | None:
        """Why an outcome cannot be given again as it was; None when it can."""
        if before.data.get("opaque"):
            return "opaque"
        return None if self._past is None or self._past.can_give(before) else "redacted"

    def _doubt_unfinished(self, place: Location, effect: Effect, *, has_begun: bool) -> Doubt | None:
        """The doubt about an effect without an outcome; None when it is to be performed now."""
        assert self._past is not None
        if self._past.policy.on_missing == "refuse":
            raise NotRecordedError(f"the recording holds no outcome of `{effect.name}`")
        path = place.path
        if self._past.policy.on_missing == "diverge":
            place.diverge()
        if has_begun and not effect.safe and not self._past.only_reads(path) and not self._past.waits_for_leave(path):
            return Doubt(effect.name, path, "begun", effect.given, effect.agent)
        return self._again(effect, path) or self._mark_in(effect, path)

    def _again(self, effect: Effect, path: Path) -> Doubt | None:
        """The doubt about an effect of a branch that its parent has performed too."""
        if effect.safe or self._past is None or not self._past.take_over(effect.name, dict(effect.given)):
            return None
        return Doubt(effect.name, path, "again", effect.given, effect.agent)

    def _settle(self, doubt: Doubt) -> Outcome[Any] | None:
        """The decision about an effect in doubt: its outcome, or None to perform it.

        Raises:
            AgentError: it is left out.
        """
        assert self._past is not None
        decision = self._past.decide(doubt)
        self._past.forget(doubt.path)
        self._events.emit(DoubtSettled(doubt.name, doubt.why, decision.choice), doubt.agent)
        if decision.choice == "done":
            return Outcome(decision.result)
        if decision.choice == "skip":
            raise AgentError(f"{doubt.reason}; it was not done again", help="Find out whether it took place.")
        if decision.choice == "stop":
            self._halt(JournalError(doubt.text, help=HOW_TO_DECIDE))
        return None

    def _differ(self, place: Location, effect: Effect) -> None:
        """Note that an effect is given something else; a replay reports that and uses the record where it can."""
        assert self._past is not None
        if self._past.policy.on_different == "stop":
            self.diverge("other", place.path, "begun", effect.name)
        if self._past.policy.on_different == "diverge":
            place.diverge()

    def diverge(self, how: Change, path: Path, kind: str, callee: str = "") -> NoReturn:
        """End a resumed run that takes another way than before; the arguments are those of `History.describe`."""
        assert self._past is not None
        difference = self._past.describe(how, path, kind, callee)
        if self._past.fit is not None:
            self._halt(self._past.fit.fail(difference))
        message = f"the program does something else than when it was recorded: {difference}, at {' / '.join(path)}"
        help = "Give it the limits and models of then. `koi resume ID --branch` has a run go on as a branch of its own."
        self._halt(JournalError(message, help=help))

    # ------------------------------------------------------------ what is there at once

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """A value from outside, such as the clock, equal again on resume."""
        place = current_place()
        if place is None or place.state.is_covered or not self.is_kept:
            return look()
        path = leaf_path(what)
        before = self._find_entry(ValueObserved.type, place, path)
        is_known = before is not None and self._past is not None and self._past.can_give(before)
        value = before.data.get("value") if before is not None and is_known else look()
        self._events.emit(ValueObserved(what, value), path=path)
        return value

    def show_once(self, shown: EventData, work: Callable[[], None]) -> None:
        """Show something to the person once, then tell it as an event."""
        place = current_place()
        if place is None or place.state.is_covered:
            work()
            self._events.emit(shown)
            return
        path = leaf_path(shown.type)
        before = self._find_entry(shown.type, place, path)
        if before is None and self._past is not None and place.state.is_over:
            return  # what the person did not see then is of no use now
        if self._recorded.policy.shows_again or not (self._recorded.is_settled or self._has_shown(before, shown)):
            work()
        self._events.emit(shown, path=path)

    def _has_shown(self, before: JournalEntry | None, shown: EventData) -> bool:
        """Whether the person has seen the same; a program that has been changed may show something else."""
        past, data = self._past, shown.as_data()
        return (
            past is not None
            and before is not None
            and all(past.is_same(before.data.get(name), data[name]) for name in data)
        )

    def _find_entry(self, kind: str, place: Location, path: Path) -> JournalEntry | None:
        if self._past is None or place.state.has_diverged:
            return None
        found = self._past.find(kind, path)
        if found is None and self._past.policy.on_missing == "diverge":
            place.diverge()
        return found

    async def with_recorded_timeout(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work at the current place under a timeout.

        Work that took too long in an earlier part of the run gets as far as it had got then, and takes too long again.
        """
        past, place = self._past, current_place()
        before = (
            None if past is None or place is None or place.state.has_diverged else past.find(TimedOut.type, place.path)
        )
        if before is None or past is None or place is None:
            return await work
        await self.follow_to_cut(work, place.path)
        failure = {name: value for name, value in before.data.items() if name != "recalled"}
        self._events.emit(TimedOut(failure), before.agent)
        raise from_data(before.data)

    async def follow_to_cut(self, work: Coroutine[Any, Any, Any], path: Path = ()) -> None:
        """Repeat work at the current place as far as it had got when it was ended, in the slot of a path."""
        place = current_place()
        assert place is not None, "a run that has been entered"
        with place.time_out():
            async with together() as group:
                task = group.create_task(work)
                await self.slots.take_slot(LATE, path)
                task.cancel()

    # ------------------------------------------------------------ chance

    def random_bytes(self, count: int) -> bytes:
        """At most 64 bytes that follow from the seed and the place in the program; nobody else can guess them."""
        place = current_place()
        if place is None:
            return os.urandom(count)
        text = f"{'/'.join(place.path)}#{place.occurrence('random')}"
        return blake2b(text.encode(), key=self._seed.encode()[:64], digest_size=count).digest()


def _changes(effect: Effect) -> dict[str, Any]:
    return {} if effect.call is None else effect.call.changes()


@dataclass(frozen=True, slots=True)
class _Looking:
    """Nothing is called: an object is looked at."""

    objects: Sequence[Any]

    def changes(self) -> dict[str, Any]:
        return {}

    def restore(self, data: Mapping[str, Any]) -> Sequence[Any]:
        """There is nothing to change."""
        return ()


async def _result(work: Callable[[], Any]) -> Any:
    """The result of some work, awaited or not."""
    value = work()
    return await value if isawaitable(value) else value


def outcome_of(entry: JournalEntry) -> Outcome[Any]:
    """The outcome in an entry."""
    if entry.kind != "failed":
        return Outcome(from_fields(entry.data))
    error = from_data(entry.data)
    assert isinstance(error, Exception), "only errors are kept"
    return Outcome(error=error)


MAX_LISTED = 3


@dataclass(frozen=True, slots=True, eq=False)
class MissedCall:
    """A call whose outcome was recalled.

    Attributes:
        number: counts the calls of a run that were missed.
        objects: the Python objects that it was made on, or was given.
        work: makes it.
    """

    number: int
    name: str
    objects: Sequence[Any]
    work: Callable[[], Any]
    safe: bool


class MissedCalls:
    """Those of one run, by the objects that lack them."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, MissedCall]] = {}
        self._count = 0

    def add(self, name: str, objects: Sequence[Any], work: Callable[[], Any], *, safe: bool) -> None:
        """Note a call that was recalled; one that no object takes part in leaves nothing behind."""
        self._count += 1
        call = MissedCall(self._count, name, objects, work, safe)
        for value in objects:  # the call keeps them alive, so that their ids stay theirs
            self._of.setdefault(id(value), {})[call.number] = call

    def of(self, objects: Iterable[Any]) -> list[MissedCall]:
        """The calls that some objects lack, in order; with each object come those that it was used together with."""
        found: dict[int, MissedCall] = {}
        looked_at: set[int] = set()
        waiting = [id(value) for value in objects]
        while waiting:
            one = waiting.pop()
            if one not in looked_at:
                looked_at.add(one)
                calls = self._of.get(one, {})
                found |= calls
                waiting += [id(value) for call in calls.values() for value in call.objects]
        return [found[number] for number in sorted(found)]

    def forget(self, calls: Iterable[MissedCall]) -> None:
        """Some of them have been made."""
        for call in calls:
            for value in call.objects:
                self._of.get(id(value), {}).pop(call.number, None)


def list_calls(calls: Sequence[MissedCall]) -> str:
    """Some calls for a message."""
    more = f" and {len(calls) - MAX_LISTED} more" if len(calls) > MAX_LISTED else ""
    return ", ".join(f"`{call.name}`" for call in calls[:MAX_LISTED]) + more
