"""Events of a run to who is at work in it, and with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from koi_lang.cli.ui.text import brief, one_line
from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    ActionStarted,
    EffectEnded,
    EffectFailed,
    EffectStarted,
    Event,
    HandlerEnded,
    HandlerFailed,
    HandlerStarted,
    McpProgress,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    RetryStarted,
    unless_omitted,
)
from koi_lang.runtime.actions.registered import says_failure
from koi_lang.runtime.playbook.partial_reply import PartialReply, ReplyPreview
from koi_lang.runtime.replay.location import Path

MAX_OBJECT_CHARS = 60
MAX_RESULT_CHARS = 200
# The person sees what these do.
# What these ask stands nowhere before it can be answered: what is typed until then is for whoever is at work.
QUESTIONS = frozenset({"prompt_user", "prompt_form"})
PLAIN_TO_SEE = frozenset({"print", "prompt_user", "return", "if", "while", "repeat", "for_each", "expect"})


@dataclass(slots=True)
class ActiveStep:
    """An action that has begun.

    Attributes:
        what: the action and what it is done to, such as `shell git status`.
        since: when it began, in seconds.
        note: how far it is, if it says so.
    """

    intent: str
    what: str
    since: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """An action that has ended: whose it was, what came of it, and after how many seconds."""

    worker: str
    step: ActiveStep
    ok: bool
    result: str
    seconds: float

    @property
    def is_told(self) -> bool:
        """Whether it is worth a line: it failed, or nothing else on the screen shows what it did."""
        return not self.ok or self.step.intent not in PLAIN_TO_SEE


@dataclass(slots=True)
class ActiveAgent:
    """A handler that is being carried out.

    Attributes:
        number: tells it from others of the same agent, from 1.
        depth: how many handlers there are around it.
        is_live: whether something has happened in it that is not known from an earlier part of the run.
        steps: the actions that have begun and not ended, by path.
        begun, ended: counts the actions that are carried out at the same time.
        asked: the path of the request to a model that is open; None without one.
        draft: what the model is writing.
    """

    agent: str
    path: Path
    number: int
    depth: int
    since: float
    is_live: bool = False
    steps: dict[Path, ActiveStep] = field(default_factory=dict)
    begun: int = 0
    ended: int = 0
    asked: Path | None = None
    draft: PartialReply = field(default_factory=PartialReply)
    note: str = ""

    def expect_answer(self, asked: Path | None) -> None:
        """Note which request is open; nothing is written yet."""
        self.asked = asked
        self.draft = PartialReply()
        self.note = ""

    def begin(self, path: Path, step: ActiveStep) -> None:
        """Take up an action."""
        if not self.steps:
            self.begun = self.ended = 0
        self.begun += self._is_outermost(path)
        self.steps[path] = step
        self.note = ""

    def end(self, path: Path) -> ActiveStep | None:
        """Put an action away; gives it, None when nobody has seen it begin."""
        step = self.steps.pop(path, None)
        self.ended += step is not None and self._is_outermost(path)
        return step

    def _is_outermost(self, path: Path) -> bool:
        return not any(path[: len(other)] == other for other in self.steps if other != path)

    def innermost(self) -> list[ActiveStep]:
        """The actions under way that have no other one inside."""
        around = {path[:length] for path in self.steps for length in range(len(path))}
        return [step for path, step in self.steps.items() if path not in around]


class Activity:
    """Who is at work in a run.

    Args:
        clock: seconds that only grow.
        redact: takes secrets out of a text.
    """

    def __init__(self, clock: Callable[[], float], redact: Callable[[str], str] = str) -> None:
        self.clock, self._redact = clock, redact
        self._workers: dict[Path, ActiveAgent] = {}

    def follow(self, event: Event) -> ActionOutcome | None:
        """Take in what has happened; gives what came of an action that has ended now."""
        if isinstance(event.data, HandlerStarted):
            self._come(event)
        worker = self.at(event.path)
        if worker is None:
            return None
        if not event.recalled:
            self._mark(worker)
        return self._change(worker, event)

    def _change(self, worker: ActiveAgent, event: Event) -> ActionOutcome | None:
        match event.data:
            case HandlerEnded() | HandlerFailed():
                self._workers.pop(event.path, None)
            case ModelAsked() if not event.recalled:
                worker.expect_answer(event.path)
            case ModelAnswered() | ModelFailed():
                worker.expect_answer(None)
            case RetryStarted() as retry:
                worker.note = f"{trying_again(retry)}: {self._excerpt(retry.error, MAX_RESULT_CHARS)}"
            case McpProgress() as progress:
                _note_progress(worker.steps.get(event.path), progress)
            case ActionStarted(intent=intent, fields=fields) | EffectStarted(intent=intent, fields=fields):
                worker.begin(event.path, ActiveStep(intent, self._what(intent, fields), self.clock()))
            case EffectEnded() | EffectFailed():
                worker.end(event.path)
            case ActionEnded(result=result):
                given = unless_omitted(result, "")
                return self._outcome(worker, event, not says_failure(given), given)
            case ActionFailed(failure=failure):
                return self._outcome(worker, event, False, failure.get("error"))
        return None

    def _outcome(self, worker: ActiveAgent, event: Event, ok: bool, result: Any) -> ActionOutcome | None:
        step = worker.end(event.path)
        if step is None or event.recalled:
            return None
        shown = self._excerpt(result, MAX_RESULT_CHARS)
        return ActionOutcome(self.label(worker), step, ok, shown, self.clock() - step.since)

    def wrote(self, path: Path, text: str) -> bool:
        """Take in what a model writes; says whether somebody is at work there."""
        worker = self._asking(path)
        if worker is not None:
            worker.draft.follow(text)
        return worker is not None

    def _asking(self, path: Path) -> ActiveAgent | None:
        """Who waits for the answer to a request, of which a piece has come."""
        worker = self.at(path)
        if worker is None or worker.asked != path:
            return None
        worker.note = ""
        return worker

    def think(self, path: Path, text: str) -> bool:
        """Take in what a model thinks before it writes; says whether somebody is at work there."""
        worker = self._asking(path)
        if worker is not None:
            worker.draft.think(text)
        return worker is not None

    def workers(self) -> list[ActiveAgent]:
        """Those at work, each behind the one it works for."""
        places = {path: number for number, path in enumerate(self._workers)}

        def order(worker: ActiveAgent) -> list[int]:
            lengths = range(1, len(worker.path) + 1)
            return [places[worker.path[:length]] for length in lengths if worker.path[:length] in places]

        return sorted((worker for worker in self._workers.values() if worker.is_live), key=order)

    def label(self, worker: ActiveAgent) -> str:
        """The name of an agent, numbered where it is at work more than once."""
        numbers = {other.number for other in self._workers.values() if other.agent == worker.agent}
        return one_line(worker.agent) + (f" {worker.number}" if numbers - {1} else "")

    def end(self) -> None:
        """Forget everybody."""
        self._workers.clear()

    def preview(self, worker: ActiveAgent) -> ReplyPreview | None:
        """What a model is writing, without secrets; None as long as nothing can be said about it."""
        written = worker.draft.preview()
        if written is None:
            return None
        name = self._redact(one_line(written.name))[:MAX_OBJECT_CHARS]
        return replace(written, name=name, text=self._redact(one_line(written.text))[-MAX_RESULT_CHARS:])

    def _what(self, intent: str, fields: Any) -> str:
        """An action and the first of what it is given, where that is a text."""
        first = next(iter(fields.values()), None) if isinstance(fields, dict) else None
        shown = self._excerpt(first, MAX_OBJECT_CHARS) if isinstance(first, str) else ""
        return f"{one_line(intent)} {shown}".rstrip()

    def _excerpt(self, value: Any, longest: int) -> str:
        """The beginning of a value; secrets go first, since half of one is not known as such."""
        return self._redact(brief(value))[:longest]

    def _come(self, event: Event) -> None:
        around = [other for path, other in self._workers.items() if event.path[: len(path)] == path]
        alike = [other for other in self._workers.values() if other.agent == event.agent]
        # Of an agent that calls itself, both handlers are that agent.
        first = next((other.number for other in around if other.agent == event.agent), 1)
        taken = {other.number for other in alike if other not in around}
        number = next(n for n in range(first, first + len(taken) + 1) if n not in taken)
        depth = len(around)
        self._workers[event.path] = ActiveAgent(event.agent, event.path, number, depth, self.clock())

    def at(self, path: Path) -> ActiveAgent | None:
        """Who is at work at a place."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._workers:
                return self._workers[path[:length]]
        return None

    def _mark(self, worker: ActiveAgent) -> None:
        """Note that something happens here, and so in everything around it."""
        if worker.is_live:
            return
        for path, other in self._workers.items():
            other.is_live |= worker.path[: len(path)] == path


def trying_again(retry: RetryStarted) -> str:
    """What a failure of a request, or of a handler, is followed by; the reason belongs behind it."""
    if retry.model:
        return f"asks again in {retry.delay_s:.0f} s"
    return f"attempt {retry.attempt + 1} of {retry.tries} after"


def _note_progress(step: ActiveStep | None, told: McpProgress) -> None:
    if step is None:
        return
    share = f"{100 * told.progress / told.total:.0f} %" if told.total else f"{told.progress:g}"
    step.note = one_line(f"{share} {told.message or ''}")
