"""What code sees and does outside of its program, by way of the run it belongs to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from koi_lang.runtime.context import current
from koi_lang.runtime.paths import Path, Place, current_place
from koi_lang.runtime.turns import FIRED


@dataclass(frozen=True, slots=True)
class Effect:
    """Something whose outcome comes from outside of the program.

    Attributes:
        name: what it is, such as `shell` or `fetch`.
        given: what it is given, JSON values.
        agent: on whose behalf.
        safe: whether doing it twice does no harm.
        lasting: whether the disk is waited for before it begins.
    """

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    safe: bool = False
    lasting: bool = True

    def told(self) -> dict[str, Any]:
        """What is told of its beginning."""
        careful = {} if self.safe else {"unsafe": True, "lasting": self.lasting}
        return {"intent": self.name, "fields": dict(self.given), **careful}


def is_data(value: Any) -> bool:
    """Whether a value comes back from a journal as it was."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_data(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_data, value))
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and isfinite(value))


def seen(what: str, look: Callable[[], Any]) -> Any:
    """What code sees outside, such as the clock; in a run it is kept, so that a run that goes on sees the same."""
    run = current.get()
    return look() if run is None else run.effects.observe(what, look)


def random_bytes(count: int) -> bytes:
    """At most 64 bytes that nobody can guess; in a run that goes on they come again."""
    run = current.get()
    return os.urandom(count) if run is None else run.effects.random_bytes(count)


def fired_before(path: Path) -> bool:
    """Whether a timer of a run that goes on does not wait for the clock: it has fired before, or never will."""
    run = current.get()
    past = None if run is None else run.effects.past
    return past is not None and (past.has("fired", path) or is_over(current_place()))


def turn_to_fire(path: Path) -> Awaitable[None] | None:
    """What to wait for before a timer fires; None where no order is kept."""
    run = current.get()
    if run is None or not run.effects.is_kept:
        return None
    past = run.effects.past
    if is_over(current_place()) and past is not None and not past.has("fired", path):
        return never()
    return run.effects.turns.take(FIRED, path)


def is_over(place: Place | None) -> bool:
    """Whether nothing new begins at a place, because it took too long when it was recorded."""
    return place is not None and place.late and not place.changed


async def never() -> None:
    """Wait until the code around is ended."""
    await asyncio.get_running_loop().create_future()


def tell_fired(path: Path) -> None:
    """Tell that a timer fires, where that is kept."""
    run = current.get()
    if run is not None and run.effects.is_kept:
        run.events.emit("fired", path=path)
