"""What a program gets from outside: done once, told to everybody, and answered from the past where that knows it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, nullcontext
from hashlib import blake2b
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from koi_lang.errors import AgentError, JournalError, KoiError
from koi_lang.runtime.events import Events
from koi_lang.runtime.failing import data_of, from_data
from koi_lang.runtime.outside import Effect, is_data, is_over, never
from koi_lang.runtime.paths import Path, Place, current_place, passing, step
from koi_lang.runtime.tasks import together
from koi_lang.runtime.turns import END, LATE, Turns

if TYPE_CHECKING:
    from koi_lang.runtime.journal.entries import Entry
    from koi_lang.runtime.journal.past import Past


TIMED_OUT = "timed_out"


class NotRecorded(KoiError):
    """A replayed program asks for something that its recording does not hold."""


class Effects:
    """The way of one run to the outside.

    Attributes:
        past: what is known beforehand.
        is_kept: whether outcomes are told with what makes them up, or looked up.
        turns: what happens at moments that the clock decides, in order.

    Args:
        recorded: whether outcomes are kept for later; without that, and without a past, nothing is looked up.
        seed: what random numbers follow from.
        halt: ends the run with an error.
    """

    def __init__(
        self,
        events: Events,
        halt: Callable[[KoiError], NoReturn],
        *,
        recorded: bool = False,
        seed: str = "",
        past: Past | None = None,
    ) -> None:
        self.past = past
        self._events, self._halt, self._seed = events, halt, seed
        self.is_kept = recorded or past is not None
        self.turns = Turns(past.order if past is not None else ())

    # ------------------------------------------------------------ what takes time

    async def once(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do what the action around the current code is for, or give what came of it before.

        Raises:
            Exception: as the work did, now or then.
        """
        place = current_place()
        if place is None or place.covered:
            return await work()
        if is_over(place) and self.past is not None and self.past.outcome(place.path) is None:
            await never()
        before = self._outcome(place, effect)
        if before is not None:
            return result_of(before)
        place.covered = True
        with self._held(place):
            return await work()

    def _held(self, place: Place) -> AbstractContextManager[None]:
        """While something that had ended is done again, what had ended after it waits."""
        past = self.past
        is_again = past is not None and not place.changed and past.outcome(place.path) is not None
        return self.turns.held() if is_again else nullcontext()

    async def announced(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do something for code: once, with a path and events of its own. Raises as the work does."""
        if not self._is_looked_after():
            return await work()
        with step(effect.name):
            self._tell_begin(effect)
            async with self.ending(lambda raised: self._tell_failure(effect, raised)):
                value = await self.once(effect, work)
            self._tell_end(effect, value)
        return value

    def announced_nowait(self, effect: Effect, work: Callable[[], Any]) -> Any:
        """The same for what does not wait."""
        if not self._is_looked_after():
            return work()
        with step(effect.name) as place:
            assert place is not None
            self._tell_begin(effect)
            with ExitStack() as ending:
                ending.push(lambda kind, raised, trace: self._tell_failure(effect, raised))
                before = self._outcome(place, effect)
                place.covered = True
                value = work() if before is None else result_of(before)
            self._tell_end(effect, value)
        return value

    def _is_looked_after(self) -> bool:
        place = current_place()
        return place is not None and not place.covered and self.is_kept

    def _tell_begin(self, effect: Effect) -> None:
        if not effect.safe:
            self._events.emit("effect_started", effect.agent, **effect.told())

    def _tell_failure(self, effect: Effect, raised: BaseException | None) -> None:
        if isinstance(raised, Exception):
            self._events.emit("effect_failed", effect.agent, **effect.told(), **data_of(raised))

    def _tell_end(self, effect: Effect, value: Any) -> None:
        result = {"result": value} if is_data(value) else {"opaque": True}
        self._events.emit("effect_ended", effect.agent, **effect.told(), **result)

    def ending(self, tell: Callable[[Exception], None]) -> AbstractAsyncContextManager[None]:
        """Wait at the end of a block until it is its turn to end; when it failed, `tell` is then told the error."""
        return _Ending(self, tell)

    async def in_order(self, kind: str = END) -> None:
        """Wait until it is the turn of something to begin or to end at the current place."""
        place = current_place()
        if place is not None and not place.covered and self.is_kept:
            await self.turns.take(kind, place.path)

    def _outcome(self, place: Place, effect: Effect) -> Entry | None:
        """How an effect ended before; None when it is to be done now."""
        past = self.past
        if past is None or place.changed:
            return None
        path = place.path
        before, begun = past.outcome(path), past.find("begun", path)
        asked = begun or before
        if asked is not None and "fields" in asked.data and not past.is_same(asked.data["fields"], dict(effect.given)):
            before = self._differs(place, before, f"`{effect.name}` is given something else than before")
        if before is None:
            self._begin_anew(place, effect, in_doubt=begun is not None and not effect.safe and not place.changed)
        is_gone = before is not None and (before.data.get("opaque") or self._is_hidden(before, effect))
        return None if is_gone else before

    def _is_hidden(self, before: Entry, effect: Effect) -> bool:
        """Whether an outcome holds a secret that was not written down, and can be had again without harm."""
        is_replay = self.past is not None and self.past.mode == "replay"
        return effect.safe and not is_replay and before.lacks_secret("result")

    def _begin_anew(self, place: Place, effect: Effect, *, in_doubt: bool) -> None:
        assert self.past is not None
        if self.past.mode == "replay":
            raise NotRecorded(f"the recording holds no outcome of `{effect.name}`")
        if in_doubt:
            self._settle_doubt(effect, place.path)
        if self.past.mode == "branch":
            place.mark_changed()

    def _settle_doubt(self, effect: Effect, path: Path) -> None:
        """Do what was decided about an effect that had begun and of which nobody knows whether it ended."""
        assert self.past is not None
        decision = self.past.decisions.get(path, "stop")
        self._events.emit("doubt_settled", effect.agent, intent=effect.name, decision=decision)
        told = f"`{effect.name}` had begun when the run was interrupted, and its end is not known"
        if decision == "skip":
            raise AgentError(f"{told}; it was not done again", help="Find out whether it took place.")
        if decision == "stop":
            self._halt(JournalError(told, help="Go on with `koi resume --on-doubt retry` or `--on-doubt skip`."))

    def _differs(self, place: Place, before: Entry | None, how: str) -> Entry | None:
        """What an outcome counts for when the program asks for something else than before."""
        assert self.past is not None
        if self.past.mode == "replay":
            return before
        if self.past.mode == "resume":
            self.diverge(how, place.path)
        place.mark_changed()
        return None

    def diverge(self, how: str, path: Path) -> NoReturn:
        """End a resumed run that takes another way than before."""
        told = f"the program does something else than when it was recorded: {how}, at {' / '.join(path)}"
        help = "Go on as a branch with `koi resume --branch`; the recorded run stays as it is."
        self._halt(JournalError(told, help=help))

    # ------------------------------------------------------------ what is there at once

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """What code sees outside, such as the clock: the same again when it runs again."""
        place = current_place()
        if place is None or place.covered or not self.is_kept:
            return look()
        path = passing(what)
        before = self._found("observed", place, path)
        value = look() if before is None else before.data.get("value")
        self._events.emit("observed", path=path, what=what, value=value)
        return value

    def show(self, type: str, work: Callable[[], None], **data: Any) -> None:
        """Show something to the person once, then tell it as an event."""
        place = current_place()
        if place is None or place.covered:
            work()
            self._events.emit(type, **data)
            return
        path = passing(type)
        before = self._found(type, place, path)
        if self.past is None or before is None or self.past.mode == "replay" or not self._has_shown(before, data):
            work()
        self._events.emit(type, path=path, **data)

    def _has_shown(self, before: Entry, data: Mapping[str, Any]) -> bool:
        """Whether the person has seen the same; a program that has been changed may show something else."""
        return self.past is not None and all(self.past.is_same(before.data.get(name), data[name]) for name in data)

    def _found(self, kind: str, place: Place, path: Path) -> Entry | None:
        if self.past is None or place.changed:
            return None
        found = self.past.find(kind, path)
        if found is None and self.past.mode == "branch":
            place.mark_changed()
        return found

    async def as_long_as(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What some work at the current place gives.

        Work that took too long in an earlier part of the run gets as far as it had got then, and takes too long again.
        """
        past, place = self.past, current_place()
        before = None if past is None or place is None or place.changed else past.find(TIMED_OUT, place.path)
        if before is None or past is None or place is None:
            return await work
        place.late = True
        async with together() as group:
            task = group.create_task(work)
            await self.turns.take(LATE, place.path)
            task.cancel()
        self._events.emit(TIMED_OUT, before.agent, **{k: v for k, v in before.data.items() if k != "recalled"})
        raise from_data(before.data)

    # ------------------------------------------------------------ chance

    def random_bytes(self, count: int) -> bytes:
        """At most 64 bytes that follow from the seed and the place in the program; nobody else can guess them."""
        place = current_place()
        if place is None:
            return os.urandom(count)
        text = f"{'/'.join(place.path)}#{place.occurrence('random')}"
        return blake2b(text.encode(), key=self._seed.encode()[:64], digest_size=count).digest()


class _Ending(AbstractAsyncContextManager[None]):
    def __init__(self, effects: Effects, tell: Callable[[Exception], None]) -> None:
        self._effects, self._tell = effects, tell

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if raised is not None and not isinstance(raised, Exception):
            return
        await self._effects.in_order()
        if raised is not None:
            self._tell(raised)


def result_of(entry: Entry) -> Any:
    """What an entry says came of something. Raises the error that it failed with."""
    if entry.kind == "failed":
        raise from_data(entry.data)
    return entry.data.get("result")
