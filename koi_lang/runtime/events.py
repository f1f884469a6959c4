"""The events of a run on their way to consumers, which are callables."""

from __future__ import annotations

import time
from collections.abc import Callable

from koi_lang.errors import error_of
from koi_lang.events import ConsumerDropped, Event, EventData
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.runtime.replay.location import Path, current_path

Consumer = Callable[[Event], None]
# Whether an event of a type and path has happened before.
Known = Callable[[str, Path], bool]


class Events:
    """Hands every event to all consumers in the order they subscribed; one that raises is dropped and reported.

    Transient events, such as the pieces of an answer, are only handed to those who want them.
    """

    def __init__(self, run: str, clock: Callable[[], float] = time.time, known: Known | None = None) -> None:
        self._run = run
        self._clock = clock
        self._known = known
        self._consumers: list[Consumer] = []
        self._of_transient: list[Consumer] = []
        self._seq = 0

    def subscribe(self, consumer: Consumer, *, transient: bool = False) -> None:
        """Add a consumer of events from now on, of `transient` ones only if it wants them.

        One that has subscribed before sees every event once, as before.
        """
        if consumer not in self._consumers:
            self._consumers.append(consumer)
        if transient:
            self.subscribe_to_transient(consumer)

    def subscribe_to_transient(self, consumer: Consumer) -> None:
        """Add a consumer of transient events alone."""
        if consumer not in self._of_transient:
            self._of_transient.append(consumer)

    @property
    def has_onlookers(self) -> bool:
        """Whether anybody is told transient events."""
        return bool(self._of_transient)

    def record(self) -> list[Event]:
        """A list that fills with all further events."""
        seen: list[Event] = []
        self.subscribe(seen.append)
        return seen

    def emit(self, data: EventData, agent: str = "", *, path: Path | None = None) -> None:
        """Send an event to the consumers; the default path is the location of the current code.

        Raises:
            RecursionError: the program calls too deeply for a consumer.
        """
        consumers = self._of_transient if data.is_transient else self._consumers
        if not consumers:
            return
        place = current_path() if path is None else path
        if data.is_transient:
            event = Event(0, self._clock(), self._run, agent, data, place)
        else:
            self._seq += 1
            is_recalled = self._known is not None and self._known(data.type, place)
            event = Event(self._seq, self._clock(), self._run, agent, data, place, is_recalled)
            count_written(data)
        broken: list[Consumer] = []
        for consumer in consumers:
            error = error_of(consumer, event)
            if isinstance(error, RecursionError):  # it is the program that calls too deeply
                raise error
            if error is not None:
                broken.append(consumer)
        # A broken consumer loses its own output and nothing else.
        for consumer in broken:
            self._drop(consumer)

    def _drop(self, consumer: Consumer) -> None:
        lists = [each for each in (self._consumers, self._of_transient) if consumer in each]
        if not lists:  # it broke at an event of its own, too
            return
        for each in lists:
            each.remove(consumer)
        self.emit(ConsumerDropped(getattr(consumer, "__name__", repr(consumer))))
