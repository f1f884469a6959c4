"""Phases of agents: what an agent may do for now, and what happens that begins another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError
from koi_lang.events import PhaseStarted
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.replay.location import leaf_path

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

# What conditions may mention of an event, by its name there.
EventNames = Mapping[str, Any]
# Settings of models that a phase may have, and what they mean.
EFFORT = "effort"
SETTINGS = {EFFORT: EFFORT, "reasoning": EFFORT}
ANY_RESULT, RESULT = "any.result", ".result"


class AgentPhases:
    """The phases of one live agent.

    Attributes:
        current: the name of the phase that it is in; empty before the first one.
    """

    def __init__(self, agent: AgentPort) -> None:
        self._agent = agent
        self.current = ""
        self._settings: dict[str, str] = {}
        self._has_begun = False

    @property
    def role(self) -> Role | None:
        """What the phase allows, as a role that narrows the agent and all that it calls; None where there is none."""
        phase = self._agent.about.phases.get(self.current)
        if phase is None:
            return None
        return Role(self.current, tuple(phase["can"]), denied=tuple(phase["cannot"]), is_open=not phase["can"])

    @property
    def model(self) -> Mapping[str, str]:
        """Settings of its model, which count before those that the agent declares."""
        return self._settings

    def start(self, name: str) -> None:
        """Begin a phase, with its settings."""
        phase = self._agent.about.phases.get(name)
        if phase is None:
            return
        self._settings = {SETTINGS[key]: level for key, level in phase["settings"].items() if key in SETTINGS}
        if name != self.current:
            self.current = name
            self._agent.run.events.emit(PhaseStarted(name), self._agent.name, path=leaf_path(PhaseStarted.type))

    def begin_call(self) -> None:
        """Note that a handler of the agent begins."""
        if not self._has_begun:
            self._has_begun = True
            self.note("session.start")
        self.note("invoked")

    def finish(self) -> bool:
        """Note that the work of the current phase is done; gives whether there is one."""
        if self.current:
            self.note("phase.done", argument=self.current)
        return bool(self.current)

    def note_result(self, names: Sequence[str], result: Any) -> None:
        """Note what a member of a team has given, under each of its names."""
        data = {name: {"result": result} for name in names}
        for name in names:
            if self.note(f"{name}{RESULT}", data):
                return
        self.note(ANY_RESULT, {**data, "any": {"result": result}})

    def note(self, event: str, data: EventNames | None = None, *, argument: str = "") -> bool:
        """Carry out the clauses for something that happens; gives whether there are any."""
        clauses = [
            steps
            for events, steps in self._agent.about.transitions
            if any(name.lower() == event.lower() and wanted in ("", argument) for name, wanted in events)
        ]
        for steps in clauses:
            self._carry_out(steps, data or {})
        return bool(clauses)

    def _carry_out(self, steps: Sequence[Any], data: EventNames) -> None:
        for step in steps:
            if len(step) == 3:
                self._carry_out(step[1] if self._holds(step[0], data) else step[2], data)
            elif step[0] == EFFORT:
                self._settings = {**self._settings, EFFORT: step[1]}
            else:
                self.start(step[1])

    def _holds(self, condition: str, data: EventNames) -> bool:
        run = self._agent.run
        try:
            return bool(run.evaluate(condition, {**data, "state": self._agent.state, "phase": self.current}))
        except KoiError as error:
            run.host.log(f"warning: the condition `{condition}` of `{self._agent.name}` fails: {error.message}")
            return False
