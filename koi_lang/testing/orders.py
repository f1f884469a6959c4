"""Tests in many orders: which branch goes on first, and whether a timer fires before or after an answer comes.

As in loom (Rust) and Coyote (.NET), a scheduler makes every choice that the world would make. Here these are the slots
of a recorded run: the ends of effects and answers, and the timers. Code between two of them is one step.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from koi_lang.errors import UsageError
from koi_lang.events import Event, HandlerStarted
from koi_lang.js.timers import Timer
from koi_lang.runtime.replay.location import BRANCH, Path
from koi_lang.runtime.replay.ordering import BEGIN, END, FIRED, LATE, CompletionOrder, Slot
from koi_lang.testing.cases import CaseOutcome
from koi_lang.testing.loops import Given, JumpingLoop, Overtime

# An order as text: `5:1,9:2` takes the second of what could come at the fifth choice and the third at the ninth, and
# elsewhere what came first. Effects are performed when they are asked for, and behind `late` just before they end.
FIRST = "first"
LATE_EFFECTS = "late"
ORDER = re.compile(rf"{FIRST}|{LATE_EFFECTS}|({LATE_EFFECTS},)?\d+:\d+(,\d+:\d+)*")
# How many further runs make the list of a failure shorter.
MAX_SHORTENINGS = 40
# Of an order without an end, how much is told.
MAX_TOLD_CHARS = 200
# Turns of the event loop after which the next event comes although the program still has something to do.
MAX_TURNS = 400
# Seconds between two looks at work outside of the program, such as a process, and how many there are before the next
# event comes in any case.
LOOK_S = 0.002
MAX_LOOKS = 500


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders in which tests run.

    Attributes:
        count: at most so many for a test.
        seed: what they follow from.
        only: a single one, as a failure has named it; empty for many.
    """

    count: int
    seed: str = ""
    only: str = ""

    def __post_init__(self) -> None:
        if self.only and not ORDER.fullmatch(self.only):
            help = "take the one that a failure of `koi test --orders` names."
            raise UsageError(f"`{self.only}` is no order", help=help)

    def walks(self, name: str) -> Iterator[Walk]:
        """Walks through the orders of a test, no two of them the same. Each is to be taken before the next one."""
        if self.only:
            pairs = (each.split(":") for each in self.only.split(",") if ":" in each)
            only = {int(number) - 1: int(choice) for number, choice in pairs}
            yield Walk(Choices(), only=only, is_late=self.only.startswith(LATE_EFFECTS))
            return
        roots = {False: Choices(), True: Choices()}
        for number in range(self.count):
            is_late = number % 2 == 1 if len(roots) == 2 else True in roots
            chance = random.Random(f"{self.seed} {name} {number}") if number > 1 else None
            walk = Walk(roots[is_late], chance, is_late=is_late)
            yield walk
            if walk.finish():
                del roots[is_late]
            if not walk.depends_on_effects:
                roots.pop(True, None)
            if not roots:
                return


@dataclass(slots=True)
class Choices:
    """A point at which one of several things comes next.

    Attributes:
        width: how many these are.
        after: the next point behind each choice.
        finished: the choices behind which every order has been taken.
    """

    width: int = 0
    after: dict[int, Choices] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)


class Walk:
    """One order of a test.

    Args:
        root: the first point, which knows the orders taken so far.
        chance: makes the choices; without it the first one is taken.
        only: choices that are given, by number; elsewhere the first one is taken.
        is_late: whether effects are performed just before they end, not when they are asked for.

    Attributes:
        has_effects: whether there were effects.
    """

    def __init__(
        self,
        root: Choices,
        chance: random.Random | None = None,
        only: dict[int, int] | None = None,
        *,
        is_late: bool = False,
    ) -> None:
        self.is_late, self.has_effects = is_late, False
        self._points = [root]
        self._chance = chance
        self._only = only
        # Some walks mostly follow priorities of the branches, so that one stays behind for long; others chance alone.
        self._loyalty = chance.random() if chance is not None else 0.0
        self._priorities: dict[str, float] = {}
        self._taken: list[tuple[int, str, str]] = []

    def choose(self, slots: Sequence[Slot], has_timer: bool) -> int:
        """The place of what comes next, in the order in which it came; behind the last one is the next timer."""
        width = len(slots) + has_timer
        if width == 1:
            return 0
        point = self._points[-1]
        point.width = width
        left = [place for place in range(width) if place not in point.finished] or [0]
        chosen = left[0]
        if self._only is not None:
            chosen = min(self._only.get(len(self._taken), 0), width - 1)
        elif self._chance is not None and self._chance.random() >= self._loyalty:
            chosen = self._chance.choice(left)
        elif self._chance is not None:
            branches = [*map(branch_of, slots), "timer"]
            for branch in branches:
                self._priorities.setdefault(branch, self._chance.random())
            chosen = max(left, key=lambda place: self._priorities[branches[place]])
        self._taken.append((chosen, describe(slots, 0), describe(slots, chosen)))
        self._points.append(point.after.setdefault(chosen, Choices()))
        return chosen

    def finish(self) -> bool:
        """Note that this order has been taken; returns whether it was the last one."""
        for point, (chosen, _, _) in zip(reversed(self._points[:-1]), reversed(self._taken), strict=True):
            point.finished.add(chosen)
            if len(point.finished) < point.width:
                return False
        return True

    @property
    def is_taken(self) -> bool:
        """Whether all choices that are given were made."""
        return not self._only or max(self._only) < len(self._taken)

    @property
    def depends_on_effects(self) -> bool:
        """Whether it may matter when effects are performed: there are effects, and something beside them."""
        return self.has_effects and bool(self._taken)

    @property
    def order(self) -> dict[int, int]:
        """The choices other than the first, by number."""
        return {number: chosen for number, (chosen, _, _) in enumerate(self._taken) if chosen}

    @property
    def text(self) -> str:
        """The order as text, for `Orders.only`."""
        choices = [f"{number + 1}:{chosen}" for number, chosen in self.order.items()]
        return ",".join([LATE_EFFECTS] * self.is_late + choices) or FIRST

    @property
    def steps(self) -> list[str]:
        """Where what came first was not taken: what came before it."""
        return [f"{chosen} came before {first}" for place, first, chosen in self._taken if place]


def explore(orders: Orders, name: str, run: Callable[[Walk], CaseOutcome]) -> tuple[Walk, CaseOutcome]:
    """Run a test in its orders until it fails; returns the last walk and its outcome, with the number of orders.

    Of an order in which it fails, choices that the failure does not need are taken back.
    """
    seconds = 0.0
    for count, walk in enumerate(orders.walks(name), 1):
        try:
            outcome = run(walk)
        except Overtime as overtime:
            overtime.add_note(f"  = order: the time was over in order {count}, `--order {walk.text[:MAX_TOLD_CHARS]}`")
            raise
        seconds += outcome.seconds
        if not outcome.ok:
            break
    for number in sorted(walk.order, reverse=True)[: 0 if outcome.ok else MAX_SHORTENINGS]:
        only = {place: chosen for place, chosen in walk.order.items() if place != number}
        shorter = Walk(Choices(), only=only, is_late=walk.is_late)
        again = run(shorter)
        if not again.ok and len(shorter.order) < len(walk.order):
            walk, outcome = shorter, again
    return walk, replace(outcome, seconds=seconds, orders=count)


def branch_of(slot: Slot) -> str:
    """The branch that something belongs to."""
    return "/".join(label for label in slot[1] if label.startswith(BRANCH))


def describe(slots: Sequence[Slot], place: int) -> str:
    """What could come next, for a person."""
    if place == len(slots):
        return "the next timer"
    kind, path = slots[place]
    names = [label.removesuffix("#1").replace("#", " ") for label in path if not label.startswith(BRANCH)]
    if kind == FIRED:
        names[-1] = "timer"
    begin = {BEGIN: "the start of ", LATE: "the time limit of "}.get(kind, "")
    within = f" in `{names[-2]}`" if len(names) > 1 else ""
    branches = [label.removeprefix(BRANCH) for label in path if label.startswith(BRANCH)]
    return f"{begin}`{names[-1]}`{within}" + (f" of branch {branches[0]}" if branches else "")


class OrderedLoop(JumpingLoop):
    """A jumping loop for a walk.

    Attributes:
        order: where the run waits for its slots.
    """

    def __init__(self, walk: Walk) -> None:
        super().__init__()
        self.order = ChosenOrder(walk, self)
        self._timers: list[asyncio.TimerHandle] = []

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Given]], object],
        *args: *Given,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something at a time; timers of the program are noted."""
        handle = super().call_at(when, callback, *args, context=context)
        if isinstance(getattr(callback, "__self__", None), Timer):
            self._timers.append(handle)
        return handle

    def next_timer(self) -> float | None:
        """When the next timer of the program fires, by this clock; None where none waits."""
        self._timers = [timer for timer in self._timers if not timer.cancelled() and timer.when() > self.time()]
        return min((timer.when() for timer in self._timers), default=None)


class ChosenOrder(CompletionOrder):
    """The order that a walk chooses wherever several things could come next.

    Nothing has its slot before everything that is ready has run and work outside of the program has ended, so that the
    choices depend on the program alone. Timers come in the order of the clock. Work that consists of other work, such
    as a call of a handler, ends before all else: nothing outside could delay that.
    """

    def __init__(self, walk: Walk, loop: OrderedLoop) -> None:
        super().__init__()
        self._walk, self._loop = walk, loop
        self.carry_out = self._carry_out
        self._open: list[tuple[Slot, asyncio.Future[None]]] = []
        self._composed: set[Path] = set()
        self._is_looking = self._lets_timer_fire = False
        self._turns = self._looks = 0

    def hear(self, event: Event) -> None:
        """Take an event of the run: a handler consists of other work, even of none."""
        if isinstance(event.data, HandlerStarted):
            self._composed.add(event.path)

    async def take_slot(self, kind: str, path: Path) -> None:
        """Wait until this is chosen to come next."""
        self._composed.update(path[:length] for length in range(1, len(path)))
        mine = ((kind, path), self._loop.create_future())
        self._open.append(mine)
        self._turns = self._looks = 0
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_soon(self._look, context=Context())
        try:
            await mine[1]
        finally:
            if mine in self._open:
                self._open.remove(mine)

    async def _carry_out(self, path: Path, work: Callable[[], Awaitable[Any]]) -> Any:
        """Perform an effect, at once or when its end is chosen to come next."""
        self._walk.has_effects = True
        if self._walk.is_late:
            await self.take_slot(END, path)
            self._composed.add(path)
        return await work()

    def _look(self) -> None:
        """Give the next slot when nothing else is to be done, and look again."""
        self._is_looking = bool(self._open)
        if not self._open:
            return
        if not self.ready.is_empty and self._turns < MAX_TURNS:
            self._turns += 1
            self._loop.call_soon(self._look, context=Context())
        elif self._loop.is_awaiting_others and self._looks < MAX_LOOKS:
            self._looks += 1
            self._loop.call_later(LOOK_S, self._look, context=Context())
        else:
            self._turns = self._looks = 0
            ends = [each for each in self._open if each[0][0] == END and each[0][1] in self._composed]
            fired = [each for each in self._open if each[0][0] == FIRED]
            first = ends[:1] or fired[:1] if self._lets_timer_fire else ends[:1]
            self._lets_timer_fire = self._lets_timer_fire and bool(ends)
            could_come = first or [each for each in self._open if each not in fired[1:]]
            timer = None if ends or fired else self._loop.next_timer()
            chosen = self._walk.choose([slot for slot, _ in could_come], timer is not None)
            if chosen < len(could_come):
                self._open.remove(could_come[chosen])
                if not could_come[chosen][1].done():
                    could_come[chosen][1].set_result(None)
                self._loop.call_soon(self._look, context=Context())
            else:
                assert timer is not None, "only a timer stands behind what waits"
                self._lets_timer_fire = True
                self._loop.call_at(timer, self._look, context=Context())
