"""A run to what somebody at a terminal sees of it: who is at work at the bottom, and a line for what is done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from koi_lang import settings
from koi_lang.cli.ui.activity import PLAIN_TO_SEE, ActionOutcome, ActiveAgent, Activity
from koi_lang.cli.ui.activity_text import describe_command_end, describe_round, describe_step, doing_now
from koi_lang.cli.ui.interrupts import add_signal_handler, remove_signal_handler
from koi_lang.cli.ui.reporters import CostMeter, Status
from koi_lang.cli.ui.status_area import StatusArea
from koi_lang.cli.ui.text import CYAN, GREEN, RED, WEAK, Theme, duration, fit_text, harmless, look_of, width, writable
from koi_lang.cli.ui.written_now import RedactedMarkdown, WrittenNow
from koi_lang.events import (
    ActionStarted,
    AnswerDelta,
    CommandEnded,
    Event,
    LinePrinted,
    ModelAsked,
    OutputDelta,
    PlanStepFinished,
    RetryStarted,
    RoundEnded,
    RunEnded,
    ThoughtDelta,
)
from koi_lang.runtime.run import Run

INDENT = "  "
# An action that takes less is not told how long it took.
WORTH_TELLING_S = 1.0
# Below this many columns nothing is indented.
NARROW = 30


def status_for(stream: TextIO, redact: Callable[[str], str], bill: CostMeter, *, plain: bool) -> Status:
    """What shows a run at a terminal; plain lines where the cursor cannot be moved, or nobody wants that.

    A debugger needs the terminal for itself.
    """
    wants_plain = plain or settings.variable("KOI_PLAIN") is not None
    if wants_plain or settings.variable("TERM") in (None, "dumb") or sys.gettrace() is not None:
        return PlainView(stream, redact)
    return LiveView(stream, look_of(stream), redact, bill)


class LineReporter(Status):
    """Writes lines that stay; what is told while a question is open is told after its answer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = 0
        self._kept: list[str] = []

    def hold(self) -> None:
        """Leave the terminal to a question."""
        self._held += 1

    def go_on(self) -> None:
        """Take the terminal back; what has happened meanwhile is told now."""
        self._held -= 1
        kept, self._kept = self._kept, []
        for text in kept:
            self.say(text)

    def say(self, text: str) -> None:
        """Write a line."""
        if self._held:
            self._kept.append(text)
            return
        self.clear()
        self._stream.write(writable(text, self._stream) + "\n")
        self._stream.flush()

    def catch_up(self, events: Sequence[Event], most: int) -> None:
        """Follow what has happened before, and tell the last lines of it, what was printed among them."""
        self.hold()
        for event in events:
            if isinstance(event.data, LinePrinted):
                self.say(harmless(event.data.message))
            self(event)
        self._kept = self._kept[-most:]
        self.go_on()


class LiveView(LineReporter):
    """Shows at the bottom of a terminal who is at work, and above it a line for every action that has ended."""

    is_live = True

    def __init__(self, stream: TextIO, look: Theme, redact: Callable[[str], str], bill: CostMeter) -> None:
        super().__init__(stream)
        self._look, self._bill = look, bill
        self._work = Activity(_now, redact)
        self._written = WrittenNow(lambda: RedactedMarkdown(look, redact))
        self._block = StatusArea(stream, self._lines, look.more)

    @contextmanager
    def show_run(self, run: Run) -> Iterator[None]:
        """A context in which events of a run are shown, transient ones, too."""
        run.events.subscribe(self, transient=True)
        with self.on_screen():
            yield

    @contextmanager
    def on_screen(self) -> Iterator[None]:
        """A context in which the terminal is followed when its size changes; it is clean afterwards."""
        add_signal_handler("SIGWINCH", self._block.change, 0.0)
        try:
            yield
        finally:
            remove_signal_handler("SIGWINCH")
            self._block.close()

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if isinstance(event.data, AnswerDelta):
            if self._work.wrote(event.path, event.data.text):
                self._block.change()
            return
        if isinstance(event.data, ThoughtDelta):
            if self._work.think(event.path, event.data.text):
                self._block.change()
            return
        if isinstance(event.data, OutputDelta):
            self._written.take(event, event.data)
            self._block.change()
            return
        outcome = self._work.follow(event)
        self._written.forget(event)
        if isinstance(event.data, RunEnded):
            self._work.end()
            self._block.close()
            return
        if outcome is not None and outcome.is_told:
            self.say(self._format_outcome(outcome))
        if isinstance(event.data, PlanStepFinished) and not event.recalled:
            self.say(self._format_step(event.data))
        if isinstance(event.data, RoundEnded) and not event.recalled:
            self._say_of(event, describe_round(event.data))
        if isinstance(event.data, CommandEnded) and not event.recalled and (text := describe_command_end(event.data)):
            self._say_of(event, text)
        self._block.change()

    def clear(self) -> None:
        """Take the block away: something is about to be printed."""
        self._block.clear()

    def hold(self) -> None:
        """Leave the terminal to a question."""
        super().hold()
        self._block.hold()

    def go_on(self) -> None:
        """Take the terminal back; what has happened meanwhile is told now."""
        self._block.go_on()
        super().go_on()

    def draft(self, text: str) -> None:
        """Show what is being typed."""
        self._block.draft = text
        self._block.change(0.0)

    # ------------------------------------------------------------ lines

    def _say_of(self, event: Event, text: str) -> None:
        self.say(fit_text(f"{event.agent}: {text}", self._block.size[0] - 1, self._look.more))

    def _format_outcome(self, outcome: ActionOutcome) -> str:
        """The line of an action that has ended."""
        look, columns = self._look, self._block.size[0] - 1
        mark, code = (look.done, GREEN) if outcome.ok else (look.failed, RED)
        time = f" {duration(outcome.seconds)}" if outcome.seconds >= WORTH_TELLING_S else ""
        result = f" {look.gives} {outcome.result}" if outcome.result else ""
        text = fit_text(
            f"{outcome.worker}: {outcome.step.what}{result}", columns - len(mark) - 1 - len(time), look.more
        )
        return f"{look.paint(mark, code)} {text}{look.paint(time, WEAK)}"

    def _format_step(self, step: PlanStepFinished) -> str:
        """The line of a step of the plan that is done."""
        text = fit_text(describe_step(step), self._block.size[0] - 1 - len(self._look.done) - 1, self._look.more)
        return f"{self._look.paint(self._look.done, GREEN)} {text}"

    def _lines(self, columns: int, most: int) -> list[str]:
        """The block: a text that is being written, a line for everybody at work, and what it has taken.

        The text has at most half of the lines; the workers that do not fit are counted.
        """
        workers = self._work.workers()
        total = self._bill.line() if workers else None
        path, written = self._written.first or ((), None)
        text = [] if written is None else written.last_lines(columns, most // 2)
        room = max(most - (total is not None) - len(text), 1)
        shown = workers if len(workers) <= room else workers[: room - 1]
        lines = [*text, *(self._line(worker, columns, is_seen=bool(text) and worker.asked == path) for worker in shown)]
        if len(shown) < len(workers):
            left = fit_text(f"{self._look.more} and {len(workers) - len(shown)} more", columns, self._look.more)
            lines.append(self._look.paint(left, WEAK))
        if total is not None:
            lines.append(self._look.paint(fit_text(total, columns, self._look.more), WEAK))
        return lines[:most]

    def _line(self, worker: ActiveAgent, columns: int, *, is_seen: bool) -> str:
        """What somebody is at; of a text that is seen above, only the action."""
        look = self._look
        indent = INDENT * worker.depth if columns >= NARROW else ""
        time = f" {duration(_now() - worker.since)}"
        head = f"{self._work.label(worker)}: "
        room = columns - len(indent) - len(look.at_work) - 1 - len(time)
        now = doing_now(self._work, worker, 0 if is_seen else room - width(head), look.more)
        text = fit_text(head + now, room, look.more)
        return f"{indent}{look.paint(look.at_work, CYAN)} {text}{look.paint(time, WEAK)}"


class PlainView(LineReporter):
    """Writes one finished line for whatever is worth telling; nothing is ever changed, for those who listen."""

    def __init__(self, stream: TextIO, redact: Callable[[str], str]) -> None:
        super().__init__(stream)
        self._work = Activity(_now, redact)

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        outcome = self._work.follow(event)
        if outcome is not None and outcome.is_told:
            self.say(_sentence(outcome))
        worker = None if event.recalled else self._work.at(event.path)
        news = "" if worker is None else _news(worker, event)
        if worker is not None and news:
            self.say(f"{self._work.label(worker)}: {news}")
        if isinstance(event.data, CommandEnded) and not event.recalled and (text := describe_command_end(event.data)):
            self.say(f"{event.agent}: {text}")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _news(worker: ActiveAgent, event: Event) -> str:
    """What begins with an event; empty when that is not worth a line."""
    match event.data:
        case ActionStarted(intent=intent) if intent not in PLAIN_TO_SEE:
            return worker.steps[event.path].what
        case ModelAsked():
            return "thinking"
        case RetryStarted():
            return worker.note
        case RoundEnded() as ended:
            return describe_round(ended)
        case PlanStepFinished() as step:
            return describe_step(step)
    return ""


def _sentence(outcome: ActionOutcome) -> str:
    how = "done" if outcome.ok else "failed"
    time = f" after {duration(outcome.seconds)}" if outcome.seconds >= WORTH_TELLING_S else ""
    result = f": {outcome.result}" if outcome.result else ""
    return f"{outcome.worker}: {outcome.step.what} {how}{time}{result}"
