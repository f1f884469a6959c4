"""The port of recorders: what code of a run may ask of whoever sees to it that each effect takes place once.

`RunRecorder` is one implementation; `tests/journal/test_contract.py` says what any has to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractContextManager

    from koi_lang.errors import Outcome
    from koi_lang.events import EventData
    from koi_lang.runtime.replay.calls import Effect
    from koi_lang.runtime.replay.location import Path
    from koi_lang.runtime.replay.ordering import CompletionOrder

T = TypeVar("T")


class Recorder(Protocol):
    """The way of one run to the outside: whatever it records it gives again when the run goes on or is repeated.

    Everything is meant for the current location. Outside of any, and inside of an effect, which is recorded as a whole,
    work is simply done.

    Attributes:
        is_kept: whether outcomes are recorded with what makes them up, or looked up.
        slots: what happens at moments that the clock decides, in order.
    """

    is_kept: bool
    slots: CompletionOrder

    def count_steps(self) -> AbstractContextManager[None]:
        """While the run is open: it is known what it has to do at once, where an order is kept."""

    # ------------------------------------------------------------ effects

    async def perform(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do once what the action at the current location is for. Raises as the work does, or did."""

    async def perform_as_step(self, effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do something once, at a location and with events of its own. Raises as the work does, or did."""

    def perform_as_step_nowait(self, effect: Effect, work: Callable[[], Any]) -> Any:
        """The same for what does not wait."""

    def look_at(self, owner: Any, name: str, look: Callable[[], Any]) -> Any:
        """What a Python object has, once it has been through the calls that were made on it before."""

    # ------------------------------------------------------------ what is there at once

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """What code sees outside, such as the clock: the same again when it runs again."""

    def random_bytes(self, count: int) -> bytes:
        """At most 64 bytes of chance: the same again when the code runs again."""

    def show_once(self, shown: EventData, work: Callable[[], None]) -> None:
        """Show something to the person, unless the same was shown before; then tell it as an event."""

    # ------------------------------------------------------------ order and time

    async def complete(self, work: Awaitable[T]) -> Outcome[T]:
        """How some work ends, when it is its slot to end: nobody hears of it before."""

    async def wait_for_slot(self, kind: str = ..., path: Path | None = ...) -> None:
        """Wait for the slot in which something happens; without a kind: in which what is at the location ends."""

    async def with_recorded_timeout(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What some work gives; what had taken too long gets as far as it had got, and takes too long again."""

    def diverge(self, how: str, path: Path) -> NoReturn:
        """End a resumed run that takes another way than before; `how` says at which difference."""
