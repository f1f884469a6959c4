"""The port of recorders, through which code of a run performs each effect once.

`RunRecorder` is one implementation; `tests/journal/test_contract.py` says what any has to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from koi_lang.errors import Outcome
    from koi_lang.events import EventData
    from koi_lang.runtime.replay.calls import Effect
    from koi_lang.runtime.replay.location import Path
    from koi_lang.runtime.replay.ordering import CompletionOrder
    from koi_lang.runtime.replay.policies import Change

T = TypeVar("T")


class Recorder(Protocol):
    """The way of one run to the outside: it records outcomes, and returns them on resume and replay.

    Everything is meant for the current location. Outside of any, and inside of an effect, which is recorded as a whole,
    work is simply done.

    Attributes:
        is_kept: whether outcomes are recorded with what makes them up, or looked up.
        slots: what happens at moments that the clock decides, in order.
    """

    is_kept: bool
    slots: CompletionOrder

    # ------------------------------------------------------------ effects

    async def perform(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Perform the effect of the action at the current location once. Raises as the work does, or did."""

    async def perform_as_step(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do something once, at a location and with events of its own. Raises as the work does, or did."""

    def perform_as_step_nowait(self, effect: Effect, work: Callable[[], Any]) -> Any:
        """Like `perform_as_step`, for work that does not wait."""

    def look_at(self, owner: Any, name: str, look: Callable[[], Any]) -> Any:
        """The value of a Python object's attribute, after the missed calls on it have been made."""

    # ------------------------------------------------------------ what is there at once

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """A value from outside, such as the clock, equal again on resume."""

    def random_bytes(self, count: int) -> bytes:
        """At most 64 bytes of chance: the same again when the code runs again."""

    def show_once(self, shown: EventData, work: Callable[[], None]) -> None:
        """Show something to the person, unless the same was shown before; then tell it as an event."""

    # ------------------------------------------------------------ order and time

    async def complete(self, work: Awaitable[T]) -> Outcome[T]:
        """How some work ends, when it is its slot to end: nobody hears of it before."""

    async def wait_for_slot(self, kind: str = ..., path: Path | None = ...) -> None:
        """Wait for the slot of an event; without a kind, for the end of the work at the location."""

    async def with_recorded_timeout(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work under a timeout; a recorded timeout is repeated at the same point."""

    async def follow_to_cut(self, work: Coroutine[Any, Any, Any], path: Path = ...) -> None:
        """Repeat work as far as it had got when it was ended, in the slot of a path."""

    def diverge(self, how: Change, path: Path, kind: str, callee: str = "") -> NoReturn:
        """End a resumed run that takes another way than before: at an entry of a kind, of an action or effect."""
