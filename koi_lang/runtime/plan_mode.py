"""Plan mode: agents look, think and ask, and change nothing before the person has accepted a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from koi_lang.events import OMITTED, PlanDecided, PlanModeChanged, PlanStepFinished
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.replay.location import Path, leaf_path

if TYPE_CHECKING:
    from koi_lang.runtime.events import Events

PROPOSE, FINISH = "propose_plan", "finish_step"
# What any role is narrowed to. What is allowed must be safe besides, so that nothing is posted to the web.
LOOKING = ("read", "read_tasks", "registry:read", "read_koi_md", "delegate", "call_mcp", "web_access")
PLANNING = Role("plan mode", LOOKING)
# What the functions of skills may need that are called meanwhile.
READING = frozenset(("read", "read_tasks", "registry:read"))
# Actions that find out themselves whether what they are asked for is safe.
CHECKING = frozenset(("call_mcp",))
HELP = f"Propose a plan with `{PROPOSE}`."
SECTION = f"""\
## Plan mode
Change nothing yet: only look, search, think and ask. Then `{PROPOSE}`; once it is accepted, carry it out."""
ACCEPTED = f"## Plan\nThe person has accepted it. Call `{FINISH}` for each step that is done."
# Of an accepted plan in a prompt, in characters.
MAX_PLAN_CHARS = 3000
DONE = "done"
# Where a run is that begins in plan mode.
BEGUN = ("plan_mode_begun#1",)


class ActionTraits(Protocol):
    """The traits of an action for plan mode: name, permission, safety, and whether it stays within the program."""

    @property
    def name(self) -> str:
        """As models call it."""

    @property
    def needs(self) -> str | None:
        """The permission that it needs."""

    @property
    def safe(self) -> bool:
        """Whether carrying it out twice does no harm."""

    @property
    def inside(self) -> bool:
        """Whether it works within the program only."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of an accepted plan.

    Attributes:
        touches: files or other things that it changes.
        task: id of its task in `std/tasks`.
    """

    text: str
    touches: tuple[str, ...] = ()
    task: str = ""
    is_done: bool = False

    @property
    def line(self) -> str:
        """The step with the files and commands that it touches."""
        return f"{self.text} ({', '.join(self.touches)})" if self.touches else self.text


def changes_something(kind: ActionTraits) -> bool:
    """Whether an action may change anything outside of the program."""
    is_safe = kind.safe or kind.inside or kind.name in CHECKING
    return not (is_safe and PLANNING.allows(kind.needs))


class PlanMode:
    """Whether a run only plans, and the plan that was accepted in it.

    Attributes:
        is_on: whether nothing may be changed.
        steps: of the plan that the person accepted last; empty before.
    """

    def __init__(self, events: Events) -> None:
        self.is_on = False
        self.steps: tuple[PlanStep, ...] = ()
        self._events = events

    # ------------------------------------------------------------ what is allowed

    def offers(self, name: str) -> bool:
        """Whether an action is of use now; those of plans are told of only where there is one, or is to be."""
        is_open = any(not step.is_done for step in self.steps)
        return {PROPOSE: self.is_on, FINISH: is_open}.get(name, True)

    # ------------------------------------------------------------ what models are told

    def section(self) -> str:
        """The section for a model; empty where there is neither plan mode nor a plan with open steps."""
        if self.is_on:
            return SECTION
        left = {number: step for number, step in number_steps(self.steps).items() if not step.is_done}
        if not left:
            return ""
        done = [str(number) for number in range(1, len(self.steps) + 1) if number not in left]
        return "\n".join([ACCEPTED, *([f"Done: {', '.join(done)}"] if done else []), plan_text(left, MAX_PLAN_CHARS)])

    # ------------------------------------------------------------ what changes

    def set(self, on: bool, path: Path | None = None) -> None:
        """Begin or end plan mode, and tell it."""
        if on is not self.is_on:
            self.is_on = on
            self._events.emit(PlanModeChanged(on), path=leaf_path(PlanModeChanged.type) if path is None else path)

    def accept(self, steps: Sequence[PlanStep]) -> None:
        """Have a plan count from now on; it ends plan mode."""
        self.steps = tuple(steps)
        tasks = [step.task for step in steps]
        self._tell(PlanDecided("accepted", [step.line for step in steps], tasks))
        self.set(False)

    def drop(self) -> tuple[PlanStep, ...]:
        """Forget the accepted plan; gives the steps of it that are not done."""
        steps, self.steps = self.steps, ()
        return tuple(step for step in steps if not step.is_done)

    def refuse(self, steps: Sequence[PlanStep], words: str) -> None:
        """Tell that the person does not accept a plan."""
        self._tell(PlanDecided("refused", [step.line for step in steps], words=words or OMITTED))

    def show(self, steps: Sequence[PlanStep]) -> None:
        """Tell that nobody was there to decide about a plan."""
        self._tell(PlanDecided("shown", [step.line for step in steps]))

    def _tell(self, decided: PlanDecided) -> None:
        self._events.emit(decided, path=leaf_path(PlanDecided.type))

    def follow_task(self, key: str, task: Any) -> None:
        """Tick a step off whose task in the registry is done or dropped."""
        status = task.get("status") if isinstance(task, Mapping) else ""
        for index, step in enumerate(self.steps):
            if key == f"task:{step.task}" and status in (DONE, "dropped") and not step.is_done:
                self.steps = (*self.steps[:index], replace(step, is_done=True), *self.steps[index + 1 :])
                finished = PlanStepFinished(index + 1, len(self.steps), step.line)
                self._events.emit(finished, path=leaf_path(PlanStepFinished.type))


def number_steps(steps: Sequence[PlanStep]) -> dict[int, PlanStep]:
    """Steps by their numbers, which count from 1."""
    return dict(enumerate(steps, 1))


def plan_text(steps: Mapping[int, PlanStep], most: int = 0) -> str:
    """Steps with their numbers, a line each; beyond so many characters they are counted only."""
    lines = [f"{number}. {step.line}" for number, step in steps.items()]
    shown, room = list[str](), most
    for line in lines:
        room -= len(line) + 1
        if most and room < 0:
            return "\n".join([*shown, f"… and {len(lines) - len(shown)} more steps"])
        shown.append(line)
    return "\n".join(shown)
