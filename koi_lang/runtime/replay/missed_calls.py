"""Missed calls: calls on Python objects that were recalled and not made, so that the objects lack their effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
