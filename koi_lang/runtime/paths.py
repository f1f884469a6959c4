"""Where in a run something happens, told without the clock: handlers, actions and branches, each counted by its caller.

A branch is work that goes on beside the code that started it. It gets its number when it is started and counts on its
own, so that paths do not depend on who is faster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token, copy_context
from dataclasses import dataclass, field

Path = tuple[str, ...]
# A branch of a branch says where it comes from; past this many characters a hash says it, so that a timer that sets
# the next one for days keeps a short path.
LONGEST_TRAIL = 32
BRANCH = "~"


@dataclass(slots=True, eq=False)
class Place:
    """A handler call, an action or a branch that is under way.

    Attributes:
        outer: the place around it; for a branch that of the code which was branched off, never another branch.
        label: its own part of the path, empty for the whole run.
        trail: numbers of the branches that lead here, empty when it is no branch.
        counts: how often something of a name has begun right in it.
    """

    outer: Place | None = None
    label: str = ""
    trail: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The labels from the outside in."""
        labels: list[str] = []
        place: Place | None = self
        while place is not None:
            if place.label:
                labels.append(place.label)
            place = place.outer
        return tuple(reversed(labels))

    def occurrence(self, name: str) -> int:
        """Count something that begins here."""
        count = self.counts[name] = self.counts.get(name, 0) + 1
        return count

    def inside(self, name: str) -> Place:
        """The place of something that begins here."""
        return Place(self, f"{name}#{self.occurrence(name)}")

    def branched(self) -> Place:
        """The place of work that will go on beside this one."""
        number = self.occurrence(BRANCH)
        trail = f"{self.trail}.{number}" if self.trail else str(number)
        if len(trail) > LONGEST_TRAIL:
            trail = hashlib.sha256(trail.encode()).hexdigest()[:16]
        return Place(self.outer if self.trail else self, BRANCH + trail, trail)


_place: ContextVar[Place | None] = ContextVar("koi_place", default=None)


def enter_run() -> Token[Place | None]:
    """Begin to count for a run; `leave_run` takes what this gives."""
    return _place.set(Place())


def leave_run(token: Token[Place | None]) -> None:
    """Go back to where the run was entered."""
    _place.reset(token)


def current_path() -> Path:
    """Where the current code is; empty outside of handlers."""
    place = _place.get()
    return () if place is None else place.path


@contextmanager
def step(name: str) -> Iterator[None]:
    """Be inside of something of a name for a while."""
    place = _place.get()
    token = _place.set(None if place is None else place.inside(name))
    try:
        yield
    finally:
        _place.reset(token)


def passing(name: str) -> Path:
    """The path of something that is counted here and has nothing inside."""
    place = _place.get()
    return () if place is None else place.inside(name).path


def branch() -> Context:
    """A copy of the context for work that goes on beside the current code."""
    context, place = copy_context(), _place.get()
    if place is not None:
        context.run(_place.set, place.branched())
    return context
