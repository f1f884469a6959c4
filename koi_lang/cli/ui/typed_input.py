"""Lines that a person types while a program runs to what they mean for its agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.text import heard_when
from koi_lang.events import Event, MessageDelivered
from koi_lang.runtime.playbook.steering import PERSON, How
from koi_lang.runtime.run import Run
from koi_lang.sessions.errors import RunAbortedError

COMMANDS = "/queue TEXT says something at the end, /back takes it back, /pause, /continue, /abort"


@contextmanager
def typing(terminal: Terminal, run: Run) -> Iterator[None]:
    """Have what is typed at a terminal, and is no answer to a question, steer a run."""
    typed = Typing(terminal, run)
    run.events.subscribe(typed.follow)
    try:
        with terminal.listening(typed.hear):
            yield
    finally:
        for note in run.steering.pending_messages():
            typed.tell(f"nobody has heard: {note.text}")


class Typing:
    """What is typed at a terminal while a run goes on."""

    def __init__(self, terminal: Terminal, run: Run) -> None:
        self._terminal, self._run = terminal, run
        self._commands: dict[str, Callable[[str], None]] = {
            "/queue": lambda text: self._say(text, "follow_up"),
            "/back": self._take_back,
            "/pause": self._pause,
            "/continue": self._continue,
            "/abort": self._abort,
        }

    def hear(self, line: str) -> None:
        """Do what a line asks for; what does not begin with a slash is said to whoever is at work."""
        text = line.strip()
        word, _, rest = text.partition(" ")
        if not text.startswith("/"):
            self._say(text, "steer")
        elif word in self._commands:
            self._commands[word](rest.strip())
        else:
            self.tell(f"there is no command `{word}`: {COMMANDS}")

    def follow(self, event: Event) -> None:
        """Tell the person when something they have said is heard."""
        match event.data:
            case MessageDelivered(sender=sender, text=text) if sender == PERSON and not event.recalled:
                self.tell(f"`{event.agent}` hears: {text}")

    def tell(self, text: str) -> None:
        """Show a line about what was typed."""
        if not self._terminal.quiet:
            self._terminal.log(f"» {text}")

    def _say(self, text: str, how: How) -> None:
        if not text:
            return
        self._run.steering.say(text, how)
        self.tell(heard_when(at_end=how == "follow_up", at_work=bool(self._run.steering.at_work)))

    def _take_back(self, text: str) -> None:
        taken = self._run.steering.take_back()
        self.tell("; ".join(["taken back", *(note.text for note in taken)]) if taken else "nothing is queued")

    def _pause(self, text: str) -> None:
        self._run.steering.pause()
        self.tell("paused before the next request to a model; /continue goes on")

    def _continue(self, text: str) -> None:
        self.tell("going on" if self._run.steering.go_on() else "nothing is paused")

    def _abort(self, text: str) -> None:
        with suppress(asyncio.CancelledError):  # for the code of the run, not for whoever ends it
            self._run.halt(RunAbortedError())
