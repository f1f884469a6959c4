"""The debugger of one run: decides where it stops, and serves the person while it does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from koi_lang.dap.breakpoints import Breakpoint, Breakpoints
from koi_lang.dap.channel import Channel
from koi_lang.dap.inspection import Inspection, value_at
from koi_lang.dap.nodes import CallNode, Node
from koi_lang.dap.stack import Level, levels_of
from koi_lang.dap.steps import Step, StepKind
from koi_lang.dap.trail import Mark, MarkKind, Trail
from koi_lang.dap.values import text_of
from koi_lang.errors import KoiError, UsageError
from koi_lang.js.operators import truth

HOLE = re.compile(r"\{([^{}]*)\}")
STEPS: Mapping[str, StepKind] = {"next": "over", "stepIn": "in", "stepOut": "out"}
BACK = frozenset({"stepBack", "reverseContinue", "restartFrame"})
Request = Mapping[str, Any]


@dataclass(slots=True)
class StartPlan:
    """How a run is begun.

    Attributes:
        goal: the place to go to before anything stops; None to stop as a person has said.
        stops_at_entry: whether the first line is a stop.
    """

    goal: Mark | None = None
    stops_at_entry: bool = False


@dataclass(slots=True)
class Debugger:
    """Stops of a run, and what a person does at them.

    Attributes:
        requests: of the person, for the thread of the run; None ends the run.
        filters: the exceptions that stop it.
        trail: what was passed; None for a run that is not a replay.
        waited_s: how long it has been stopped, in all.
        must_pause: whether the next place is a stop.
    """

    channel: Channel
    breakpoints: Breakpoints
    plan: StartPlan
    trail: Trail | None = None
    filters: frozenset[str] = frozenset()
    requests: SimpleQueue[Request | None] = field(default_factory=SimpleQueue)
    step: Step | None = None
    waited_s: float = 0.0
    must_pause: bool = False
    is_stopped: bool = False
    inspection: Inspection | None = None
    _failed: tuple[BaseException, list[Level]] | None = None

    # ------------------------------------------------------------ places

    def reach(self, node: CallNode) -> None:
        """A line is about to be carried out."""
        self.pass_by("line", node)

    def pass_by(self, kind: MarkKind, node: Node) -> None:
        """Stop at a place, where there is reason to."""
        mark = None if self.trail is None else self.trail.pass_by(kind, node)
        is_hit = self._is_hit(node)
        if is_hit and self.trail is not None:
            self.trail.hits.append(len(self.trail.marks) - 1)
        reason = self._reason(node, mark, is_hit=is_hit)
        if reason:
            self.stop(reason, levels_of(node))

    def _reason(self, node: Node, mark: Mark | None, *, is_hit: bool) -> str:
        """Why a place is a stop; empty where it is none."""
        if self.plan.goal is not None:
            if mark != self.plan.goal:
                return ""
            self.plan.goal = None
            return "step"
        if self.plan.stops_at_entry:
            self.plan.stops_at_entry = False
            return "entry"
        if is_hit:
            return "breakpoint"
        if self.must_pause:
            return "pause"
        return "step" if self.step is not None and self.step.ends_at(node) else ""

    def _is_hit(self, node: Node) -> bool:
        """Whether a breakpoint stops at a place; messages of those that only tell something are shown."""
        found = self.breakpoints.at(node.file, node.current_line)
        stopping = [breakpoint for breakpoint in found if self._stops(breakpoint, node)]  # each of them is asked
        return bool(stopping)

    def _stops(self, breakpoint: Breakpoint, node: Node) -> bool:
        level = Level(node, node.current_line, node.frame)
        if not self._holds(breakpoint, level) or not breakpoint.is_counted():
            return False
        if not breakpoint.message:
            return True
        if self.plan.goal is None:
            text = HOLE.sub(lambda hole: self._interpolate(hole[1], level), breakpoint.message)
            self.tell(f"{text}\n", "console")
        return False

    def _holds(self, breakpoint: Breakpoint, level: Level) -> bool:
        if not breakpoint.condition:
            return True
        try:
            return truth(value_at(level, breakpoint.condition))
        except KoiError as error:
            self.tell(f"the condition `{breakpoint.condition}` has no value: {error.message}\n", "important")
            return True

    def _interpolate(self, text: str, level: Level) -> str:
        try:
            value = value_at(level, text)
        except KoiError as error:
            return f"{{{error.message}}}"
        return value if isinstance(value, str) else text_of(value)

    def tell(self, text: str, category: str) -> None:
        """Show a text in the person's console."""
        self.channel.tell("output", output=text, category=category)

    def note_failure(self, node: CallNode, error: BaseException) -> None:
        """Keep the stack of an exception where it was raised, which is gone when somebody is told of it."""
        if self._failed is None or self._failed[0] is not error:
            self._failed = (error, levels_of(node))

    # ------------------------------------------------------------ stops

    def stop(self, reason: str, levels: list[Level], text: str = "") -> None:
        """Stop, and serve the person until the run goes on. Raises KeyboardInterrupt where it is to end."""
        began = time.monotonic()
        self.step, self.must_pause, self.is_stopped = None, False, True
        self.inspection = Inspection(levels, may_change=self.trail is None)
        self.channel.tell("stopped", reason=reason, **({"text": text} if text else {}))
        try:
            while not self._serve(self.requests.get()):
                pass
        finally:
            self.is_stopped, self.inspection = False, None
            self.waited_s += time.monotonic() - began

    def _serve(self, request: Request | None) -> bool:
        """Do what the person asks for; whether the run goes on."""
        if request is None:
            raise KeyboardInterrupt
        try:
            body, goes_on = self._answer(str(request["command"]), request.get("arguments") or {})
        except (KoiError, LookupError, TypeError, ValueError) as error:
            self.channel.refuse(request, error)
            return False
        self.channel.reply(request, body)
        return goes_on

    def _answer(self, command: str, given: Mapping[str, Any]) -> tuple[Any, bool]:
        assert self.inspection is not None, "requests are served at a stop"
        if command == "continue":
            return {"allThreadsContinued": True}, True
        if command in STEPS:
            self.step = Step(STEPS[command], self.inspection.levels[0].node)
            return {}, True
        if command in BACK:
            return {"goal": self._goal(command, given).as_data()}, False
        return INSPECTED[command](self.inspection, given), False

    def _goal(self, command: str, given: Mapping[str, Any]) -> Mark:
        """Where a way back leads. Raises UsageError for a run that is not a replay."""
        assert self.inspection is not None, "requests are served at a stop"
        if self.trail is None:
            raise UsageError("only a recorded run can go back", help="`koi debug ID` debugs one.")
        if command == "reverseContinue":
            return self.trail.last_hit()
        if command == "restartFrame":
            return self.trail.beginning_of(self.inspection.level(given.get("frameId")).node)
        return self.trail.before(self.inspection.levels[0].node)


Answer = Callable[[Inspection, Mapping[str, Any]], dict[str, Any]]
INSPECTED: Mapping[str, Answer] = {
    "stackTrace": lambda shown, given: shown.stack(given.get("startFrame") or 0, given.get("levels") or 0),
    "scopes": lambda shown, given: shown.scopes(given["frameId"]),
    "variables": lambda shown, given: shown.variables(
        given["variablesReference"], given.get("start") or 0, given.get("count") or 0
    ),
    "evaluate": lambda shown, given: shown.evaluate(str(given["expression"]), given.get("frameId")),
    "setVariable": lambda shown, given: shown.set_variable(
        given["variablesReference"], str(given["name"]), str(given["value"])
    ),
}
