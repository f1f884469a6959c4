"""Consumers of events for a person: lines, JSON, and the cost at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from koi_lang.cli.ui.text import count_text, usage_text
from koi_lang.events import ActionFailed, Detail, EffectFailed, Event, ModelFailed
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.host import NobodyAllowsError, NobodyToAskError
from koi_lang.runtime.journal.entries import plain
from koi_lang.runtime.journal.totals import UsageTotals

if TYPE_CHECKING:
    from koi_lang.runtime.run import Run


class Status:
    """What a run shows beside its output while it goes on: nothing, unless a subclass does.

    Attributes:
        is_live: whether lines at the bottom of the terminal change, so that typed text must be shown among them.
    """

    is_live = False

    def show_run(self, run: Run) -> AbstractContextManager[None]:
        """A context around the run."""
        return nullcontext()

    def on_screen(self) -> AbstractContextManager[None]:
        """A context around events that come from elsewhere."""
        return nullcontext()

    def __call__(self, event: Event) -> None:
        """Follow an event."""

    def clear(self) -> None:
        """Make room: something is about to be printed."""

    def hold(self) -> None:
        """Leave the terminal to a question, until `go_on`."""

    def go_on(self) -> None:
        """Take the terminal back."""

    def draft(self, text: str) -> None:
        """Show what is being typed."""

    def say(self, text: str) -> None:
        """Write a line that stays."""


class CostMeter:
    """Counts what models outside of this process have taken in this part of a run."""

    def __init__(self) -> None:
        self.usage = UsageTotals()
        self._since = self._until = 0.0

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if not event.recalled:  # the others happened before the pause
            self._since, self._until = self._since or event.ts, event.ts
        if getattr(event.data, "model", None) not in UNPAID:
            self.usage.add(event)

    def line(self) -> str | None:
        """What it came to; None when no model was asked."""
        requests = self.usage.requests
        return f"{count_text(requests, 'request')}, {usage_text(self.usage)}" if requests else None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._until - self._since


class DenialNotice:
    """Tells the first time that nobody could be asked for permission, or for an answer, and what to do."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._untold = {NobodyAllowsError.__name__, NobodyToAskError.__name__}

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        match event.data:
            case ActionFailed(failure=failure) | EffectFailed(failure=failure) | ModelFailed(failure=failure):
                kind = failure.get("class")
                # A question of a model fails as its action; any other asker says itself what came of it.
                is_noted = isinstance(event.data, ActionFailed) or kind != NobodyToAskError.__name__
                if is_noted and not event.recalled and kind in self._untold:
                    self._untold.remove(kind)
                    self._note("; ".join([failure["error"], *filter(None, [failure.get("help")])]).removesuffix("."))


def as_lines(
    write: Callable[[str], Any], redact: Callable[[str], str], detail: Detail = "verbose"
) -> Callable[[Event], None]:
    """A consumer that writes every event as one line for people, with as much of it as is wanted."""

    def show(event: Event) -> None:
        if event.recalled:
            return
        data = " ".join(
            f"{key}={json.dumps(value, default=str, ensure_ascii=False)}"
            for key, value in event.data.as_data(detail).items()
        )
        write(redact(f"[{event.seq}] {event.type} {event.agent} {data}".rstrip()))

    return show


def as_json(redact: Callable[[str], str], detail: Detail = "verbose") -> Callable[[Event], None]:
    """A consumer that writes every event as one JSON object a line to standard output, with as much as is wanted."""

    def show(event: Event) -> None:
        sys.stdout.write(json.dumps(plain(event.as_data(detail), redact), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    return show
