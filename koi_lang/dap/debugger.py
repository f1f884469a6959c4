"""The debugger of one run: decides where it stops, and serves the person while it does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal

from koi_lang.dap.action_decisions import changed_fields, copy_of, filter_of
from koi_lang.dap.breakpoints import Breakpoint, Breakpoints
from koi_lang.dap.channel import Channel
from koi_lang.dap.inspection import Inspection, value_at
from koi_lang.dap.nodes import ActionNode, CallNode, Node, current_node, innermost
from koi_lang.dap.stack import Level, levels_of
from koi_lang.dap.steps import Step, StepKind
from koi_lang.dap.trail import Mark, MarkKind, Trail
from koi_lang.dap.values import text_of
from koi_lang.errors import KoiError, PermissionDeniedError, UsageError
from koi_lang.events import Event, HandlerFailed
from koi_lang.js.operators import truth
from koi_lang.program.error_report import message
from koi_lang.runtime.actions.registered import ActionError
from koi_lang.runtime.agents.result_types import ResultTypeError
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.intervention import Intervention
from koi_lang.runtime.ports import CallPort
from koi_lang.runtime.replay.location import current_path

HOLE = re.compile(r"\{([^{}]*)\}")
STEPS: Mapping[str, StepKind] = {"next": "over", "stepIn": "in", "stepOut": "out"}
BACK = frozenset({"stepBack", "reverseContinue", "restartFrame"})
# What a person can decide about an action, as requests and as commands of the console.
DECISIONS: Mapping[str, Literal["fields", "skip", "result"]] = {
    "koi/fields": "fields", "koi/skip": "skip", "koi/result": "result",
    ".fields": "fields", ".skip": "skip", ".result": "result",
}  # fmt: skip
CONSOLE_HELP = """\
an expression, or `name = expression`; at an action of a playbook also
  .fields {…}    carries it out with other fields
  .skip          does not carry it out
  .result VALUE  takes a result instead; of a recorded run this goes on as a branch"""
BRANCH_HELP = "`.result VALUE` goes on from here as a branch."
LABELS = {"refused": "refused action", "misfit": "misfit result", "failed": "failed handler"}
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
    _told: list[BaseException] = field(default_factory=list)
    _decided: Intervention | None = None

    # ------------------------------------------------------------ places

    def reach(self, node: CallNode) -> None:
        """A line is about to be carried out."""
        self._pass_by("line", node)

    def _pass_by(self, kind: MarkKind, node: Node) -> None:
        """Stop at a place, where there is reason to."""
        mark = self._mark(kind, node, node.current_line)
        is_hit = self._is_hit(node)
        if is_hit and self.trail is not None:
            self.trail.note_hit()
        reason = self._reason(node, mark, is_hit=is_hit)
        if reason:
            self.stop(reason, levels_of(node))

    def _mark(self, kind: MarkKind, node: Node, line: int) -> Mark | None:
        return None if self.trail is None else self.trail.pass_by(kind, node, line)

    def _is_goal(self, mark: Mark | None) -> bool:
        """Whether a place is the one to go to, which it is then no more."""
        is_goal = self.plan.goal is not None and mark == self.plan.goal
        if is_goal:
            self.plan.goal = None
        return is_goal

    def _reason(self, node: Node, mark: Mark | None, *, is_hit: bool) -> str:
        """Why a place is a stop; empty where it is none."""
        if self.plan.goal is not None:
            return "step" if self._is_goal(mark) else ""
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

    # ------------------------------------------------------------ actions

    @contextmanager
    def around_action(
        self, call: CallPort, intent: str, fields: Mapping[str, Any], known: Intervention | None
    ) -> Iterator[Intervention | None]:
        """Stop before an action where there is reason to, and have what it does stand on the stack inside of it."""
        handler = call.agent.about.handlers[call.event].function.__code__
        playbook = self.breakpoints.lines.playbooks.get(handler)
        if playbook is None:  # of the standard library
            yield known
            return
        name = f"{call.agent.name}.{call.event}: {intent}"
        node = ActionNode(innermost(), handler.co_filename, name, playbook.first, current_path())
        node.intent, node.fields, node.call = intent, copy_of(dict(fields)), call
        token = current_node.set(node)
        try:
            self._decided = None
            self._pass_by("action", node)
            yield known or self._decided or changed_fields(node, fields)
        except (ActionError, PermissionDeniedError, LimitReachedError) as error:
            self._stop_at_failure(filter_of(intent, error), error, levels_of(node))
            raise
        finally:
            node.is_over = True
            current_node.reset(token)

    # ------------------------------------------------------------ failures

    def note_failure(self, node: CallNode, error: BaseException) -> None:
        """Keep the stack of an exception where it was raised, which is gone when somebody is told of it."""
        if self._failed is None or self._failed[0] is not error:
            self._failed = (error, levels_of(node))
            if isinstance(error, ResultTypeError):
                self._stop_at_failure("misfit", error, self._failed[1])

    def follow(self, event: Event) -> None:
        """Follow the events of the run: a handler that fails stops it, where the person wants that."""
        if not isinstance(event.data, HandlerFailed):
            return
        error, levels = self._failed or (None, [])
        if error is None or str(error) != event.data.error or error in self._told:
            return
        self._told.append(error)
        self._stop_at_failure("failed", error, levels)

    def _stop_at_failure(self, kind: str, error: BaseException, levels: list[Level]) -> None:
        """Stop because of an error, where the person wants that."""
        if not kind or not levels:
            return
        mark = self._mark("failure", levels[0].node, levels[0].line)
        is_wanted = kind in self.filters
        if is_wanted and self.trail is not None:
            self.trail.note_hit()
        if self._is_goal(mark) or (is_wanted and self.plan.goal is None):
            self.stop("exception", levels, description=LABELS[kind], text=message(error))

    # ------------------------------------------------------------ the end of a replay

    def stop_at_end(self) -> None:
        """Stop where a recorded run ends, so that one can go back from there."""
        node = self.trail.last_node() if self.trail is not None else None
        if node is None:
            return
        mark = self._mark("end", node, node.current_line)
        if self.plan.goal is None or self._is_goal(mark):
            self.stop("step", levels_of(node), description="end of the recorded run", text="end of the recorded run")

    # ------------------------------------------------------------ stops

    def stop(self, reason: str, levels: list[Level], **about: str) -> None:
        """Stop, and serve the person until the run goes on. Raises KeyboardInterrupt where it is to end."""
        began = time.monotonic()
        self.step, self.must_pause, self.is_stopped = None, False, True
        self.inspection = Inspection(levels, may_change=self.trail is None)
        self.channel.tell("stopped", reason=reason, **about)
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
        if command == "koi/place":
            return {"goal": self._here().as_data()}, False
        if command in DECISIONS:
            return self._decide(DECISIONS[command], given.get("value")), True
        if command == "evaluate" and str(given["expression"]).lstrip().startswith("."):
            return self._obey(str(given["expression"]).strip(), given.get("frameId"))
        if command in STEPS:
            self.step = Step(STEPS[command], self.inspection.levels[0].node)
            return {}, True
        if command in BACK:
            return {"goal": self._goal(command, given).as_data()}, False
        return INSPECTED[command](self.inspection, given), False

    def _obey(self, text: str, frame: Any) -> tuple[Any, bool]:
        """Carry out a command of the console. Raises KoiError."""
        assert self.inspection is not None, "requests are served at a stop"
        word, _, rest = text.partition(" ")
        if word not in DECISIONS:
            return {"result": CONSOLE_HELP, "variablesReference": 0}, False
        value = self.inspection.value(rest, frame) if rest.strip() else None
        self._decide(DECISIONS[word], value)
        self.channel.tell("continued")
        return {"result": "", "variablesReference": 0}, True

    def _decide(self, decision: Literal["fields", "skip", "result"], value: Any) -> Any:
        """Decide about the action at which the run is stopped. Raises UsageError."""
        assert self.inspection is not None, "requests are served at a stop"
        if self.trail is not None:
            raise UsageError("what was recorded cannot be changed", help=BRANCH_HELP)
        if not isinstance(self.inspection.levels[0].node, ActionNode):
            raise UsageError("this is no action of a playbook", help="Stop in a playbook to decide about its actions.")
        if decision == "fields" and not isinstance(value, dict):
            raise UsageError("the fields of an action are an object", help='Write `.fields { message: "Hi" }`.')
        self._decided = Intervention(decision, value)
        return {}

    def _here(self) -> Mark:
        if self.trail is None or not self.trail.marks:
            raise UsageError("only a recorded run can go back", help="`koi debug ID` debugs one.")
        return self.trail.marks[-1]

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
