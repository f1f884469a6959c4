"""What happens in a run, as one envelope for everything; consumers are callables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from koi_lang.outcome import failure_of
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.runtime.replay.location import Path, current_path

VERSION = 1


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        seq: counts from 1 within the run.
        ts: seconds since the epoch.
        run: id of the run.
        path: where in the run it happened, from the outside in, such as `("Lead.start#1", "print#2")`.
        agent: name of the agent it concerns, empty for the run itself.
        type: what happened, in the past tense.
        data: further fields, JSON values.
        recalled: whether it had happened in an earlier part of the run, or in the run that is replayed.
    """

    seq: int
    ts: float
    run: str
    agent: str
    type: str
    data: dict[str, Any] = field(default_factory=dict)
    path: Path = ()
    recalled: bool = False

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        envelope = {
            "v": VERSION,
            "seq": self.seq,
            "ts": self.ts,
            "run": self.run,
            "path": list(self.path),
            "agent": self.agent,
            "type": self.type,
        }
        if self.recalled:
            envelope["recalled"] = True
        return envelope | self.data


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

    def emit(self, type: str, agent: str = "", *, path: Path | None = None, **data: Any) -> None:
        """Tell the consumers; without a path it happened where the current code is."""
        if not self._consumers:
            return
        self._seq += 1
        count_written(data)
        where = current_path() if path is None else path
        recalled = self._known is not None and self._known(type, where)
        event = Event(self._seq, self._clock(), self._run, agent, type, data, where, recalled)
        # A broken consumer loses its own output and nothing else.
        broken = [consumer for consumer in self._consumers if _is_broken(consumer, event)]
        for consumer in broken:
            if consumer not in self._consumers:  # it broke at an event of its own, too
                continue
            self._consumers.remove(consumer)
            self.emit("consumer_dropped", consumer=getattr(consumer, "__name__", repr(consumer)))


def _is_broken(consumer: Consumer, event: Event) -> bool:
    """Whether a consumer fails with an event. Raises RecursionError: then it is the program that calls too deeply."""
    error = failure_of(consumer, event)
    if isinstance(error, RecursionError):
        raise error
    return error is not None
