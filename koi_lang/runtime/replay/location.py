"""Where in a run something happens, told without the clock: handlers, actions and branches, each counted by its caller.

A branch is work that goes on beside the code that started it. It gets its number when it is started and counts on its
own, so that paths do not depend on who is faster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar, Token, copy_context
from dataclasses import dataclass, field, replace

Path = tuple[str, ...]
# A branch of a branch says where it comes from; past this many characters a hash says it, so that a timer that sets
# the next one for days keeps a short path.
MAX_TRAIL = 32
BRANCH = "~"


@dataclass(frozen=True, slots=True)
class LocationState:
    """The valid part of the record at a location; a new one begins like the one around it.

    Attributes:
        is_covered: whether what happens is part of one effect, which is recorded as a whole.
        has_diverged: whether something that was done before has turned out differently, so that what was recorded of
            later steps counts no more.
        has_timed_out: whether it took too long when it was recorded, and is followed up to there.
    """

    is_covered: bool = False
    has_diverged: bool = False
    has_timed_out: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing begins that had not begun when it was recorded."""
        return self.has_timed_out and not self.has_diverged


FOLLOWING = LocationState()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Location:
    """A handler call, an action or a branch that is under way.

    Attributes:
        outer: the place around it; for a branch that of the code which was branched off, never another branch.
        label: its own part of the path, empty for the whole run.
        trail: numbers of the branches that lead here, empty when it is no branch.
        counts: how often something of a name has begun right in it.
        state: what counts here of what was recorded. Steps that were already under way beside a location do not take
            part in its changes.
    """

    outer: Location | None = None
    label: str = ""
    trail: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    state: LocationState = FOLLOWING

    @property
    def path(self) -> Path:
        """The labels from the outside in."""
        labels: list[str] = []
        place: Location | None = self
        while place is not None:
            if place.label:
                labels.append(place.label)
            place = place.outer
        return tuple(reversed(labels))

    def occurrence(self, name: str) -> int:
        """Count something that begins here."""
        count = self.counts[name] = self.counts.get(name, 0) + 1
        return count

    def next_label(self, name: str) -> str:
        """The label of the next step of a name here."""
        return f"{name}#{self.counts.get(name, 0) + 1}"

    def child(self, name: str) -> Location:
        """The place of something that begins here."""
        label = f"{name}#{self.occurrence(name)}"
        return Location(self, label, state=self.state)

    @contextmanager
    def cover(self) -> Iterator[None]:
        """A context in which steps belong to the effect of this location; its end is its own."""
        before = self.state.is_covered
        self.state = replace(self.state, is_covered=True)
        try:
            yield
        finally:
            self.state = replace(self.state, is_covered=before)

    def fork(self) -> Location:
        """The place of work that will go on beside this one."""
        number = self.occurrence(BRANCH)
        trail = f"{self.trail}.{number}" if self.trail else str(number)
        if len(trail) > MAX_TRAIL:
            trail = hashlib.sha256(trail.encode()).hexdigest()[:16]
        outer = self.outer if self.trail else self
        return Location(outer, BRANCH + trail, trail, state=self.state)

    @contextmanager
    def time_out(self) -> Iterator[None]:
        """While work that took too long is done again here, nothing begins that had not begun then."""
        before = self.state.has_timed_out
        self.state = replace(self.state, has_timed_out=True)
        try:
            yield
        finally:
            self.state = replace(self.state, has_timed_out=before)

    def diverge(self) -> None:
        """Invalidate the record of later steps; a branch reports this to the code it was branched off."""
        self.state = replace(self.state, has_diverged=True)
        if self.trail and self.outer is not None:
            self.outer.state = replace(self.outer.state, has_diverged=True)


_place: ContextVar[Location | None] = ContextVar("koi_place", default=None)


def enter_run() -> Token[Location | None]:
    """Begin counting for a run; returns the token for `leave_run`."""
    return _place.set(Location())


def leave_run(token: Token[Location | None]) -> None:
    """Go back to where the run was entered."""
    _place.reset(token)


def current_path() -> Path:
    """Where the current code is; empty outside of handlers."""
    place = _place.get()
    return () if place is None else place.path


def current_place() -> Location | None:
    """The place of the current code; None outside of runs."""
    return _place.get()


def enter(name: str) -> AbstractContextManager[Location | None]:
    """Be inside of something of a name for a while; None outside of runs."""
    place = _place.get()
    return enter_place(None if place is None else place.child(name))


@contextmanager
def enter_place(own: Location | None) -> Iterator[Location | None]:
    """Be at a place inside of the current one for a while."""
    place = _place.get()
    token = _place.set(own)
    try:
        yield own
    finally:
        _place.reset(token)
        if place is not None and own is not None and own.state.has_diverged:
            place.state = replace(place.state, has_diverged=True)


def leaf_path(name: str) -> Path:
    """The path of something that is counted here and has nothing inside."""
    place = _place.get()
    return () if place is None else place.child(name).path


def branch() -> Context:
    """A copy of the context for work that goes on beside the current code."""
    context, place = copy_context(), _place.get()
    if place is not None:
        context.run(_place.set, place.fork())
    return context
