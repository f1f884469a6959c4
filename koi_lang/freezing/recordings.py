"""Recorded calls of a playbook, read from journals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError
from koi_lang.events import (
    ActionOverridden,
    HandlerEnded,
    HandlerStarted,
    MessageDelivered,
    ModelAnswered,
    ModelAsked,
    StateChanged,
)
from koi_lang.js.tagged_json import from_fields
from koi_lang.llm.rehearsal.model import Rehearsal
from koi_lang.redaction.redactor import HIDDEN
from koi_lang.runtime.actions.control import CONTROL, FOR_EACH
from koi_lang.runtime.agents.declarations import AgentDeclaration
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import beginnings
from koi_lang.runtime.journal.reader import Journal, read
from koi_lang.runtime.model_calls.frozen_plans import EXPECT, PROVIDER
from koi_lang.runtime.playbook.placeholders import PLAYBOOK

# Actions whose results say nothing that their fields do not say.
ECHOES = frozenset({"print", "log", "registry_set", "update_state", "return"})
BLOCKS = frozenset({*CONTROL, FOR_EACH})
# Who answers without having thought about it, and why a call that they answered says nothing.
NO_EVIDENCE = {Rehearsal.provider: "a rehearsal answered it", PROVIDER: "a plan answered it"}


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An action that was carried out; those of loops and branches stand in the place of these.

    Attributes:
        state: of the agent, when it began.
        was_seen: whether its model was told the result, and went on from it.
    """

    intent: str
    fields: Mapping[str, Any]
    result: Any
    state: Mapping[str, Any]
    was_seen: bool = False


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A recorded call.

    Attributes:
        run: the id of its run.
        today: date and place that its model was told.
        playbook: with names in the place of values.
        steps: in the order in which they began.
    """

    run: str
    today: str
    playbook: str
    args: Any
    state: Mapping[str, Any]
    steps: tuple[RecordedStep, ...]


@dataclass(slots=True)
class RecordedCalls:
    """The calls of a handler in some journals.

    Attributes:
        usable: those that can be explained, the latest first.
        left_out: why others cannot, by their runs.
    """

    usable: list[RecordedCall] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, journal: Journal, agent: str, event: str, state: Mapping[str, Any]) -> None:
        """Add the calls of a journal; `state` is the declared one of the agent."""
        for call in calls_in(journal, agent, event, state):
            if isinstance(call, RecordedCall):
                self.usable.append(call)
            else:
                self.left_out[journal.header.run] = call


def playbook_calls(entries: Iterable[JournalEntry]) -> list[list[JournalEntry]]:
    """The entries of each call in a run that asked a model itself, in order; the first one says that it began."""
    calls: dict[tuple[str, ...], list[JournalEntry]] = {}
    asking = set[tuple[str, ...]]()
    for entry in entries:
        if entry.kind == HandlerStarted.type:
            calls[entry.path] = []
        elif entry.kind == ModelAsked.type:
            asking.add(entry.path[:-1])
        for path in filter(calls.__contains__, beginnings(entry.path)):
            calls[path].append(entry)
    return [within for place, within in calls.items() if place in asking]


def calls_in(journal: Journal, agent: str, event: str, state: Mapping[str, Any]) -> Iterator[RecordedCall | str]:
    """The calls of a handler in a journal; for one that cannot be explained the reason."""
    now = dict(deepcopy(state))
    states: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in journal.entries:
        if entry.kind == StateChanged.type and entry.agent == agent:
            now.update(entry.data.get("updates", {}))
        elif entry.kind == HandlerStarted.type and entry.agent == agent and entry.data.get("event") == event:
            states[entry.path] = deepcopy(now)
    for within in playbook_calls(journal.entries):
        if (before := states.get(within[0].path)) is not None:
            yield why_unusable(within) or _recording(journal, within[0], within, before)


def why_unusable(entries: Sequence[JournalEntry]) -> str:
    """Why a recorded call cannot be explained; empty where it can."""
    place = entries[0].path
    if not any(each.kind == HandlerEnded.type and each.path == place for each in entries):
        return "it has not ended well"
    failed = [each.path[-1].partition("#")[0] for each in entries if each.kind == "failed" and _is_step(each, place)]
    if EXPECT in failed:
        return "its plan had handed over; `koi run --no-plans` records such a call"
    if failed:
        return "an action of it failed"
    if any(each.kind == MessageDelivered.type for each in entries):
        return "its model was told something else meanwhile"
    if any(each.kind == ActionOverridden.type for each in entries):
        return "somebody at a debugger has changed it"
    if any(each.lacks_secret or HIDDEN in str(each.data.get("fields", "")) for each in entries):
        return "a secret was taken out of it"
    own = [each for each in entries if each.path[:-1] == place]
    answers = [str(each.data.get("model", "")).partition("/")[0] for each in own if each.kind == ModelAnswered.type]
    if NO_EVIDENCE.keys() & set(answers):
        return next(NO_EVIDENCE[each] for each in answers if each in NO_EVIDENCE)
    asked = next(each for each in own if each.kind == ModelAsked.type)
    if asked.data.get("kept", 0):
        return "its model remembered an earlier conversation"
    if any(each.kind == "done" and each.path[-1].startswith("guidance#") and each.data.get("result") for each in own):
        return "its agent uses files, such as notes, and its model was told of them, which no plan knows"
    return "" if playbook_in(entries) else "its journal does not say what its model was asked"


def playbook_in(entries: Sequence[JournalEntry]) -> str:
    """The text of the playbook in the first request of a call."""
    asked = next(each for each in entries if each.kind == ModelAsked.type and each.path[:-1] == entries[0].path)
    texts = [str(text) for role, text in asked.data.get("messages", ()) if role == "user"]
    playbook = next((text for text in reversed(texts) if text.startswith(PLAYBOOK)), "")
    return playbook.removeprefix(PLAYBOOK) if playbook else texts[-1] if texts else ""


def _recording(
    journal: Journal, begun: JournalEntry, entries: Sequence[JournalEntry], state: dict[str, Any]
) -> RecordedCall:
    results = {each.path: from_fields(each.data) for each in entries if each.kind == "done"}
    steps, now = list[RecordedStep](), dict(state)
    last = max(n for n, each in enumerate(entries) if each.kind == ModelAsked.type and each.path[:-1] == begun.path)
    for number, each in enumerate(entries):
        if each.kind == StateChanged.type and each.agent == begun.agent:
            now = {**now, **each.data.get("updates", {})}
        if each.kind == "begun" and _is_step(each, begun.path) and each.path in results:
            intent = str(each.data["intent"])
            if intent not in BLOCKS:
                fields = _fields(each.data.get("fields", {}))
                steps.append(RecordedStep(intent, fields, results[each.path], dict(now), was_seen=number < last))
    args = begun.data.get("args")
    return RecordedCall(journal.header.run, journal.header.today, playbook_in(entries), args, state, tuple(steps))


def _is_step(entry: JournalEntry, place: tuple[str, ...]) -> bool:
    """Whether an entry is of an action of a call itself, perhaps in a loop or branch of it."""
    between = [part.partition("#")[0] for part in entry.path[len(place) : -1]]
    return len(entry.path) > len(place) and BLOCKS.issuperset(between)


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without those that `data` says, too."""
    data = fields.get("data")
    if isinstance(data, dict) and all(name == "data" or data.get(name) == value for name, value in fields.items()):
        return {"data": data}
    return dict(fields)


def contradiction(recordings: Iterable[RecordedCall]) -> str:
    """The runs of two recordings that were given the same and differ; empty without any."""
    seen: list[RecordedCall] = []
    for one in recordings:
        for other in seen:
            if one.args != other.args or one.state != other.state:
                continue
            results = [
                [(step.intent, step.result) for step in each.steps[:-1] if step.intent not in ECHOES]
                for each in (one, other)
            ]
            actions = [[(step.intent, step.fields) for step in each.steps] for each in (one, other)]
            if results[0] == results[1] and actions[0] != actions[1]:
                return f"`{one.run}` and `{other.run}`"
        seen.append(one)
    return ""


def recordings_beside(program: Path, folder: Path) -> list[Path]:
    """The journals that plans of a program are held against: of a folder, and in `tests` beside the program."""
    return [*store.journals(folder), *sorted((program.parent / "tests").glob(f"**/*{store.SUFFIX}"))]


def recorded_calls(about: AgentDeclaration, event: str, journals: Iterable[Path]) -> RecordedCalls:
    """The calls of a handler in some journals; those that cannot be read are left out."""
    calls = RecordedCalls()
    for path in journals:
        with suppress(JournalError):
            calls.add(read(path), about.name, event, about.state())
    return calls
