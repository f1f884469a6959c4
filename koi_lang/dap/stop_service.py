"""The service of a stop: inspection, changes and decisions while a run is stopped, and its continuation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal

from koi_lang.dap.branching import SAME, plan_branch
from koi_lang.dap.channel import Channel
from koi_lang.dap.inspection import Inspection
from koi_lang.dap.nodes import ActionNode
from koi_lang.dap.stack import Level
from koi_lang.dap.steps import Step, StepKind
from koi_lang.dap.trail import Mark, Trail
from koi_lang.errors import KoiError, UsageError
from koi_lang.runtime.concurrency.cancellation import postpone_limits
from koi_lang.runtime.intervention import Intervention
from koi_lang.runtime.journal.entries import JournalEntry

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
  .result VALUE  takes a result instead
in a recorded run also
  .result VALUE  goes on as a branch, with another result of the action here, or of what was done last
  .branch        goes on as a branch from here"""
BRANCH_HELP = "`.result VALUE` goes on from here as a branch."
Request = Mapping[str, Any]


@dataclass(slots=True)
class StopService:
    """Serves a person at the stops of one run.

    Attributes:
        trail: what was passed; None for a run that begins.
        recorded: the entries of the run that is repeated; empty for one that does something.
        met: the numbers of the entries that a replay has come to, each with the place it was at then.
        require_trust: raises an error where a branch of the recorded run may not begin.
        requests: of the person, for the thread of the run; None ends the run.
        step: that the run goes on with; None where it goes on to the next stop.
        must_pause: whether the next place is a stop.
        is_ending: whether the run is to end at the next place that it comes to.
        waited_s: how long it has been stopped, in all.
        inspection: of the current stop.
        decided: what the person has decided about the action at the stop.
    """

    channel: Channel
    trail: Trail | None = None
    recorded: Sequence[JournalEntry] = ()
    met: dict[int, Mark] = field(default_factory=dict)
    require_trust: Callable[[], None] = lambda: None
    requests: SimpleQueue[Request | None] = field(default_factory=SimpleQueue)
    step: Step | None = None
    must_pause: bool = False
    waited_s: float = 0.0
    is_stopped: bool = False
    is_ending: bool = False
    inspection: Inspection | None = None
    decided: Intervention | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, request: Request) -> None:
        """Have a request served by the thread of the run, which another thread may ask for while it is stopped."""
        with self._lock:
            if self.is_stopped:
                self.requests.put(request)
                return
        self.channel.refuse(request, UsageError("the program is running", help="Pause it first."))

    def tell(self, text: str, category: str) -> None:
        """Show a text in the person's console."""
        self.channel.tell("output", output=text, category=category)

    def stop(self, reason: str, levels: list[Level], **about: str) -> None:
        """Stop, and serve the person until the run goes on. Raises KeyboardInterrupt where it is to end."""
        began = time.monotonic()
        self.step, self.must_pause = None, False
        self.inspection = Inspection(levels, may_change=not self.is_replay)
        self.is_stopped = True
        self.channel.tell("stopped", reason=reason, **about)
        try:
            while not self._serve(self.requests.get()):
                pass
        finally:
            self.is_stopped, self.inspection = False, None
            waited_s = time.monotonic() - began
            self.waited_s += waited_s
            postpone_limits(waited_s)

    def _serve(self, request: Request | None) -> bool:
        """Serve a request of the person; returns whether the run goes on."""
        if request is None:
            raise KeyboardInterrupt
        try:
            body, goes_on = self._answer(str(request["command"]), request.get("arguments") or {})
        except (KoiError, LookupError, TypeError, ValueError) as error:
            self.channel.refuse(request, error)
            return False
        if goes_on:  # before the person hears of it, and asks for more
            self._leave_stop()
        self.channel.reply(request, body)
        return goes_on

    def _leave_stop(self) -> None:
        """Take no more requests, and refuse the received ones. Raises KeyboardInterrupt where the run is to end."""
        with self._lock:
            self.is_stopped = False
        while not self.requests.empty():
            late = self.requests.get()
            if late is None:
                raise KeyboardInterrupt
            self.submit(late)

    def _answer(self, command: str, given: Mapping[str, Any]) -> tuple[Any, bool]:
        assert self.inspection is not None, "requests are served at a stop"
        if command == "continue":
            return {"allThreadsContinued": True}, True
        if command == "koi/place":
            return {"goal": self._here().as_data()}, False
        if command == "koi/branch":
            return self._branch(given.get("result", SAME)), False
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
        if word not in DECISIONS and word != ".branch":
            return {"result": CONSOLE_HELP, "variablesReference": 0}, False
        value = self.inspection.value(rest, frame) if rest.strip() else None
        if self.is_replay and word in (".result", ".branch"):
            return {"result": "", "variablesReference": 0, **self._branch(value if rest.strip() else SAME)}, False
        if word == ".branch":
            raise UsageError("only a recorded run has branches", help="`koi debug ID` debugs one.")
        self._decide(DECISIONS[word], value)
        self.channel.tell("continued")
        return {"result": "", "variablesReference": 0}, True

    def _decide(self, decision: Literal["fields", "skip", "result"], value: Any) -> Any:
        """Decide about the action at which the run is stopped. Raises UsageError."""
        assert self.inspection is not None, "requests are served at a stop"
        if self.is_replay:
            raise UsageError("what was recorded cannot be changed", help=BRANCH_HELP)
        if not isinstance(self.inspection.levels[0].node, ActionNode):
            raise UsageError("this is no action of a playbook", help="Stop in a playbook to decide about its actions.")
        if decision == "fields" and not isinstance(value, dict):
            raise UsageError("the fields of an action are an object", help='Write `.fields { message: "Hi" }`.')
        self.decided = Intervention(decision, value)
        return {}

    def _branch(self, result: Any) -> dict[str, Any]:
        """How a branch goes on from here. Raises UsageError, or UntrustedJournalError."""
        self.require_trust()
        return {"branch": plan_branch(self.recorded, self.met, self._here(), result).as_data()}

    @property
    def is_replay(self) -> bool:
        """Whether a recorded run is repeated, so that nothing is done and one can go back."""
        return bool(self.recorded)

    def _here(self) -> Mark:
        if not self.is_replay or self.trail is None:
            raise UsageError("only a recorded run can go back", help="`koi debug ID` debugs one.")
        return self.trail.marks[-1]

    def _goal(self, command: str, given: Mapping[str, Any]) -> Mark:
        """Where a way back leads. Raises UsageError for a run that is not a replay."""
        assert self.inspection is not None, "requests are served at a stop"
        if not self.is_replay or self.trail is None:
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
