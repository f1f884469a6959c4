"""The events of a run on their way to consumers, which are callables."""

from __future__ import annotations

import time
from collections.abc import Callable

from koi_lang.events import ConsumerDropped, Event, EventData
from koi_lang.outcome import failure_of
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.runtime.replay.location import Path, current_path

Consumer = Callable[[Event], None]
# Whether an event of a type and path has happened before.
Known = Callable[[str, Path], bool]


class Events:
    """Hands every event to all consumers in the order they subscribed; one that raises is dropped and reported."""

    def __init__(self, run: str, clock: Callable[[], float] = time.time, known: Known | None = None) -> None:
        self._run, self._clock, self._known = run, clock, known
        self._consumers: list[Consumer] = []
        self._seq = 0

    def subscribe(self, consumer: Consumer) -> None:
        """Add a consumer; it sees what happens from now on."""
        self._consumers.append(consumer)

    def record(self) -> list[Event]:
        """A list that fills with all further events."""
        seen: list[Event] = []
        self.subscribe(seen.append)
        return seen

    def emit(self, data: EventData, agent: str = "", *, path: Path | None = None) -> None:
        """Tell the consumers what happened; without a path it was where the current code is."""
        if not self._consumers:
            return
        self._seq += 1
        count_written(data.as_data())
        where = current_path() if path is None else path
        recalled = self._known is not None and self._known(data.type, where)
        event = Event(self._seq, self._clock(), self._run, agent, data, where, recalled)
        # A broken consumer loses its own output and nothing else.
        broken = [consumer for consumer in self._consumers if _is_broken(consumer, event)]
        for consumer in broken:
            if consumer not in self._consumers:  # it broke at an event of its own, too
                continue
            self._consumers.remove(consumer)
            self.emit(ConsumerDropped(getattr(consumer, "__name__", repr(consumer))))


def _is_broken(consumer: Consumer, event: Event) -> bool:
    """Whether a consumer fails with an event. Raises RecursionError: then it is the program that calls too deeply."""
    error = failure_of(consumer, event)
    if isinstance(error, RecursionError):
        raise error
    return error is not None
