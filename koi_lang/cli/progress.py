"""Events of a run to what a person sees on stderr: who is at work, every event, or what it took in the end."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Collection
from typing import Any, TextIO

from koi_lang.runtime.events import Event

CLEAR = "\r\x1b[K"
# What is recorded is too long for a line.
DETAILS = frozenset({"args", "fields", "result", "text"})


class StatusLine:
    """One line at the bottom of a terminal that says who is doing what; it is taken away before anything is printed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False
        self._busy: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        match event.type:
            case "model_asked":
                self._busy[event.agent] = "thinking"
            case "action_started":
                self._busy[event.agent] = str(event.data.get("intent", ""))
            case "handler_ended" | "handler_failed":
                self._busy.pop(event.agent, None)
            case "run_ended":
                self._busy.clear()
            case _:
                return
        self._draw()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write(CLEAR)
            self._stream.flush()
            self._shown = False

    def _draw(self) -> None:
        self.clear()
        if not self._busy:
            return
        line = "  ".join(f"{agent}: {doing}" for agent, doing in self._busy.items())
        self._stream.write(line[: shutil.get_terminal_size().columns - 1])
        self._stream.flush()
        self._shown = True


class Bill:
    """Counts what the models of a run have taken."""

    def __init__(self) -> None:
        self.requests = self.tokens = 0
        self.usd = 0.0
        self.unpriced = False

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if (
            event.type != "model_answered"
            or event.data.get("model") in ("rehearsal", "scripted")
            or event.data.get("replayed")
        ):
            return
        self.requests += 1
        self.tokens += event.data["tokens"]["input"] + event.data["tokens"]["output"]
        self.usd += event.data["usd"] or 0.0
        self.unpriced |= event.data["usd"] is None

    def line(self) -> str | None:
        """What it came to; None when no model was asked."""
        if not self.requests:
            return None
        cost = (
            "cost unknown"
            if self.unpriced and not self.usd
            else f"${self.usd:.4f}{' or more' if self.unpriced else ''}"
        )
        return f"{self.requests} request{'s' if self.requests > 1 else ''}, {self.tokens:,} tokens, {cost}"


def as_lines(
    write: Callable[[str], Any], redact: Callable[[str], str], without: Collection[str] = ()
) -> Callable[[Event], None]:
    """A consumer that writes every event as one line for people, without some of its fields."""

    def show(event: Event) -> None:
        data = " ".join(
            f"{key}={json.dumps(value, default=str, ensure_ascii=False)}"
            for key, value in event.data.items()
            if key not in without
        )
        write(redact(f"[{event.seq}] {event.type} {event.agent} {data}".rstrip()))

    return show


def as_json(redact: Callable[[str], str]) -> Callable[[Event], None]:
    """A consumer that writes every event as one JSON object a line to standard output."""

    def show(event: Event) -> None:
        sys.stdout.write(redact(json.dumps(event.as_data(), default=str, ensure_ascii=False)) + "\n")
        sys.stdout.flush()

    return show
