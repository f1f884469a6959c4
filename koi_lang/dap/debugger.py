"""The debugger of one run: which of the places that it passes are stops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from koi_lang.dap.breakpoints import Breakpoint, Breakpoints
from koi_lang.dap.inspection import value_at
from koi_lang.dap.nodes import ActionNode, CallNode, Node, current_node, innermost
from koi_lang.dap.stack import Level, levels_of
from koi_lang.dap.stop_service import StopService
from koi_lang.dap.trail import Mark, MarkKind
from koi_lang.dap.values import text_of
from koi_lang.errors import KoiError, McpServerError, PermissionDeniedError
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
LABELS = {"refused": "refused action", "misfit": "misfit result", "failed": "failed handler"}


@dataclass(slots=True)
class StartPlan:
    """How a run is begun.

    Attributes:
        goal: the place to go to before anything stops; None to stop as a person has said.
        stops_at_entry: whether the first line is a stop.
        passes_goal: whether the run goes on from the goal without a stop, as a branch does.
    """

    goal: Mark | None = None
    stops_at_entry: bool = False
    passes_goal: bool = False


class Debugger:
    """Where a run stops.

    Args:
        service: serves the person at its stops.

    Attributes:
        filters: the exceptions that stop it.
    """

    def __init__(self, service: StopService, breakpoints: Breakpoints, plan: StartPlan) -> None:
        self.service = service
        self.breakpoints = breakpoints
        self.plan = plan
        self.filters: frozenset[str] = frozenset()
        self._numbers = {(entry.kind, entry.path): entry.n for entry in service.recorded}
        self._failed: tuple[BaseException, list[Level]] | None = None
        self._known_failures: list[BaseException] = []

    # ------------------------------------------------------------ places

    def reach(self, node: CallNode) -> None:
        """A line is about to be carried out."""
        self._pass_by("line", node)

    def _pass_by(self, kind: MarkKind, node: Node) -> None:
        """Stop at a place, where there is reason to. Raises KeyboardInterrupt where the run is to end."""
        if self.service.is_ending:
            raise KeyboardInterrupt
        mark = self._mark(kind, node, node.current_line)
        is_hit = self._is_hit(node)
        if is_hit and self.service.trail is not None:
            self.service.trail.note_hit()
        reason = self._reason(node, mark, is_hit=is_hit)
        if reason:
            self.service.stop(reason, levels_of(node))

    def _mark(self, kind: MarkKind, node: Node, line: int) -> Mark | None:
        return None if self.service.trail is None else self.service.trail.pass_by(kind, node, line)

    def _is_goal(self, mark: Mark | None) -> bool:
        """Whether a place is the one to go to, which it is then no more."""
        is_goal = self.plan.goal is not None and mark == self.plan.goal
        if is_goal:
            self.plan.goal = None
            self.service.trail = None if self.plan.passes_goal else self.service.trail
        return is_goal

    def _reason(self, node: Node, mark: Mark | None, *, is_hit: bool) -> str:
        """Why a place is a stop; empty where it is none."""
        if self.plan.goal is not None:
            return "step" if self._is_goal(mark) and not self.plan.passes_goal else ""
        if self.plan.stops_at_entry:
            self.plan.stops_at_entry = False
            return "entry"
        if is_hit:
            return "breakpoint"
        if self.service.must_pause:
            return "pause"
        return "step" if self.service.step is not None and self.service.step.ends_at(node) else ""

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
            self.service.tell(f"{text}\n", "console")
        return False

    def _holds(self, breakpoint: Breakpoint, level: Level) -> bool:
        if not breakpoint.condition:
            return True
        try:
            return truth(value_at(level, breakpoint.condition))
        except KoiError as error:
            self.service.tell(f"the condition `{breakpoint.condition}` has no value: {error.message}\n", "important")
            return True

    def _interpolate(self, text: str, level: Level) -> str:
        try:
            value = value_at(level, text)
        except KoiError as error:
            return f"{{{error.message}}}"
        return value if isinstance(value, str) else text_of(value)

    # ------------------------------------------------------------ actions

    @contextmanager
    def around_action(
        self, call: CallPort, intent: str, fields: Mapping[str, Any], known: Intervention | None
    ) -> Iterator[Intervention | None]:
        """Stop before an action if a breakpoint or step says so, and keep it on the stack while it runs."""
        about = call.agent.about
        handler = {**about.handlers, **about.guards}[call.event].function.__code__
        playbook = self.breakpoints.lines.playbooks.get(handler)
        if playbook is None:  # of the standard library
            yield known
            return
        name = f"{call.agent.name}.{call.event}: {intent}"
        node = ActionNode(innermost(), handler.co_filename, name, playbook.first, current_path())
        node.intent = intent
        node.fields = copy_of(dict(fields))
        node.call = call
        token = current_node.set(node)
        try:
            self.service.decided = None
            self._pass_by("action", node)
            yield known or self.service.decided or changed_fields(node, fields)
        except (ActionError, McpServerError, PermissionDeniedError, LimitReachedError) as error:
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
        if self.service.trail is not None and self.service.trail.marks:
            number = self._numbers.get((event.data.journal_kind, event.path))
            if number is not None:
                self.service.met[number] = self.service.trail.marks[-1]
        if not isinstance(event.data, HandlerFailed):
            return
        error, levels = self._failed or (None, [])
        if error is None or str(error) != event.data.error or error in self._known_failures:
            return
        self._known_failures.append(error)
        self._stop_at_failure("failed", error, levels)

    def _stop_at_failure(self, kind: str, error: BaseException, levels: list[Level]) -> None:
        """Stop because of an error, where the person wants that."""
        if not kind or not levels:
            return
        mark = self._mark("failure", levels[0].node, levels[0].line)
        is_wanted = kind in self.filters
        if is_wanted and self.service.trail is not None:
            self.service.trail.note_hit()
        if self._is_goal(mark) or (is_wanted and self.plan.goal is None):
            self.service.stop("exception", levels, description=LABELS[kind], text=message(error))

    # ------------------------------------------------------------ the end of a replay

    def stop_at_end(self) -> None:
        """Stop where a recorded run ends, so that one can go back from there."""
        node = self.service.trail.last_node() if self.service.trail is not None else None
        if node is None:
            return
        mark = self._mark("end", node, node.current_line)
        if self.plan.goal is None or self._is_goal(mark):
            self.service.stop(
                "step", levels_of(node), description="end of the recorded run", text="end of the recorded run"
            )


def copy_of(value: Any) -> Any:
    """A value whose objects and arrays can be changed without changing those of the playbook."""
    if isinstance(value, dict):
        return {name: copy_of(each) for name, each in value.items()}
    return [copy_of(each) for each in value] if isinstance(value, list) else value


def changed_fields(node: ActionNode, fields: Mapping[str, Any]) -> Intervention | None:
    """The changes of a person to the fields of an action; None for none."""
    return None if node.fields == fields else Intervention("fields", node.fields)


def filter_of(intent: str, error: Exception) -> str:
    """The filter that an error of an action belongs to; empty where it is a failure like others."""
    if isinstance(error, PermissionDeniedError):
        return "refused"
    return "misfit" if intent == "return" else ""
