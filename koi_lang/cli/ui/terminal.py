"""The terminal as the host of a run: output on stdout, everything else on stderr, answers from stdin."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from koi_lang.cli.ui.approval_question import (
    EVERYTHING,
    Paper,
    choices_of,
    decision_in,
    preview_lines,
    question_of,
    rows_taken,
)
from koi_lang.cli.ui.interrupts import add_signal_handler, remove_signal_handler
from koi_lang.cli.ui.reporters import Status
from koi_lang.cli.ui.text import harmless, look_of, one_line, size_of, writable
from koi_lang.lazy import lazy_module
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError, choose_option
from koi_lang.system.readable import read_when_ready
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    import getpass

    from koi_lang.cli.ui import keyboard
    from koi_lang.cli.ui.keyboard import Keyboard, LineEditor
else:
    getpass = lazy_module("getpass")
    keyboard = lazy_module("koi_lang.cli.ui.keyboard")

READ_SIZE = 65536
# How soon a run in the background looks again whether it is in the foreground.
PAUSE_S = 0.5
Heard = Callable[[str], None]


class Terminal:
    """A person at a terminal, or whatever is piped in. Questions are shown only where somebody can see them.

    Attributes:
        status: what is shown beside the output while the run goes on.
    """

    def __init__(self, *, quiet: bool = False, silent: bool = False, aside: bool = False) -> None:
        self.quiet = quiet
        self.silent = silent
        self.aside = aside
        self.status = Status()
        self._pending = b""
        self._ended = False
        self._turn = asyncio.Lock()
        self._noted: set[str] = set()
        self._heard: Heard | None = None
        self._asked: asyncio.Future[str | None] | None = None
        self._question = ""
        self._keyboard: Keyboard | None = None
        self._draft: LineEditor | None = None

    def print(self, text: str) -> None:
        """A line of output, at once; a silent terminal leaves it to events."""
        self._make_room()
        if not self.silent:
            _write(sys.stderr if self.aside else sys.stdout, text + "\n")
            sys.stdout.flush()
        self._ask_again()

    def log(self, text: str) -> None:
        """A line that is not output."""
        self._make_room()
        _write(sys.stderr, text + "\n")
        self._ask_again()

    def note(self, text: str) -> None:
        """A line about the run itself; the same line is told once."""
        if self.quiet or text in self._noted:
            return
        self._noted.add(text)
        self.log(text)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask one question at a time, again while no option is chosen. Raises NobodyToAskError at the end.

        Of a long question, such as a plan, the options stand between its text and its last line.
        """
        async with self._turn:
            *head, last = clean(question).rstrip().split("\n")
            above = [*head, *(f"  {number}. {one_line(option)}" for number, option in enumerate(options, 1))]
            line = ""
            while not (line := (await self._ask_line(last, above)).strip()) and options:
                above = []
        return choose_option(line, options)

    async def read_line(self) -> str | None:
        """The next line that is typed or piped in, without its end; None behind the last one."""
        async with self._turn:
            return await self._line()

    async def _ask_line(self, question: str, above: Sequence[str] = ()) -> str:
        """The line that answers a question, with some lines above it. Raises NobodyToAskError at the end."""
        with self.hold():
            self._show(question, above)
            line = await self._line()
            if line is not None and sys.stdin.isatty():  # the answer has ended the line of the question
                self._question = ""
        if line is None:
            help = "Run the program in a terminal, or pipe one line for each question into it."
            raise NobodyToAskError(f"nobody answers the question `{question.strip()}`", help=help)
        return line

    def _show(self, question: str, above: Sequence[str]) -> None:
        if not sys.stderr.isatty():
            return
        for line in above:
            _write(sys.stderr, f"{line}\n")
        # Nothing in a question may make it look like another one.
        self._question = f"{clean(question).rstrip()} "
        self._ask_again()

    def _make_room(self) -> None:
        """Begin a line; a question that is open stays where it is."""
        self.status.clear()
        if self._question:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _ask_again(self) -> None:
        if self._question:
            _write(sys.stderr, self._question)
            sys.stderr.flush()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Have whole lines typed and shown by the terminal itself, and nothing else changed there."""
        self.status.hold()
        if self._keyboard is not None:
            self._keyboard.give_back()
        try:
            yield
        finally:
            if self._question:
                self._make_room()
                self._question = ""
            self.status.go_on()
            if self._heard is not None:
                self._grab()

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask for permission, again after an answer that is not clear. Raises NobodyToAskError without a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise NobodyToAskError(f"nobody can be asked for permission to {request.what}")
        look, (columns, rows) = look_of(sys.stderr), size_of(sys.stderr)
        question, choices = question_of(request, look), choices_of(request, look)
        above = preview_lines(request.preview, Paper(look, columns, rows), rows_taken(question, columns))
        async with self._turn:
            answer = await self._ask_line(question, above)
            while (decision := decision_in(answer)) is None:
                if request.preview and answer.strip().lower() == EVERYTHING:
                    answer = await self._ask_line(question, preview_lines(request.preview, Paper(look, columns)))
                else:
                    answer = await self._ask_line(f"`{one_line(answer)}` is no answer. {choices}")
        return decision

    async def secret(self, name: str) -> str:
        """A value typed without being shown."""
        if not sys.stdin.isatty():
            raise NobodyToAskError(f"nobody can be asked for `{name}`")
        with self.hold(), self._alone():
            return await asyncio.to_thread(getpass.getpass, f"{name}: ", sys.stderr)

    # ------------------------------------------------------------ lines that nobody has asked for

    @contextmanager
    def listening(self, heard: Heard) -> Iterator[None]:
        """Have a function told every line that is typed at a terminal and is no answer; not on Windows."""
        if not (sys.stdin.isatty() and sys.stderr.isatty() and hasattr(os, "tcgetpgrp")):
            yield
            return
        self._heard = heard
        loop = asyncio.get_running_loop()
        self._grab()
        self._listen()
        try:
            yield
        finally:
            self._heard = None
            loop.remove_reader(0)
            if self._keyboard is not None:
                self._keyboard.give_back()
                remove_signal_handler("SIGTSTP")

    def _grab(self) -> None:
        """Take single keys where lines at the bottom change: what is typed is shown among them."""
        if not self.status.is_live:
            return
        if self._keyboard is None:
            self._keyboard, self._draft = keyboard.Keyboard(), keyboard.LineEditor()
            add_signal_handler("SIGTSTP", self._stop)
        self._keyboard.take()

    def _stop(self) -> None:
        """Leave the terminal as it was and stop; go on when the process is continued."""
        self.status.hold()
        if self._keyboard is not None:
            self._keyboard.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.status.go_on()
        if self._asked is None:
            self._grab()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Leave standard input to somebody else for a while."""
        if self._heard is None:
            yield
            return
        asyncio.get_running_loop().remove_reader(0)
        try:
            yield
        finally:
            self._listen()

    def _listen(self) -> None:
        if self._heard is not None and not self._ended:
            asyncio.get_running_loop().add_reader(0, self._take)

    def _take(self) -> None:
        """Hand on what was typed: to the question that is open, else to whoever listens."""
        loop = asyncio.get_running_loop()
        if keyboard.in_background():
            loop.remove_reader(0)
            loop.call_later(PAUSE_S, self._listen)
            return
        if self._keyboard is not None and self._keyboard.is_captured:
            self._take_keys()
            return
        if self._asked is None:
            self._grab()
        self._read()
        if self._ended:
            loop.remove_reader(0)
        *lines, self._pending = self._pending.split(b"\n")
        for line in [*lines, *([None] if self._ended else [])]:
            self._hand_on(None if line is None else line.decode("utf-8", "replace"))

    def _take_keys(self) -> None:
        """Show what is being typed, and hand on what is finished."""
        assert self._draft is not None
        self._read()
        typed, self._pending = self._pending, b""
        for line in self._draft.take(typed):
            if line is None:
                self._ended = True
            elif line.strip():
                self.status.say(f"> {line}")
                self._hand_on(line)
        self.status.draft(self._draft.text)
        if self._ended:
            asyncio.get_running_loop().remove_reader(0)

    def _hand_on(self, line: str | None) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(line)
        elif self._heard is not None and line is not None:
            self._heard(line)

    def _read(self) -> None:
        try:
            self._keep(os.read(0, READ_SIZE))
        except OSError:  # the terminal is gone
            self._keep(b"")

    async def _read_when_ready(self) -> None:
        try:
            self._keep(await read_when_ready(0, READ_SIZE))
        except OSError:  # the terminal is gone
            self._keep(b"")

    def _keep(self, read: bytes) -> None:
        self._pending += read
        self._ended = not read

    async def _line(self) -> str | None:
        """The next line of standard input; None at its end. Waiting can be cancelled."""
        if self._heard is not None and not self._ended:
            self._asked = asyncio.get_running_loop().create_future()
            try:
                return await self._asked
            finally:
                self._asked = None
        while b"\n" not in self._pending and not self._ended:
            await self._read_when_ready()
        line, _, self._pending = self._pending.partition(b"\n")
        return None if self._ended and not line and not self._pending else line.decode("utf-8", "replace")


def _write(stream: TextIO, text: str) -> None:
    """Write a text as it is; at a terminal without what would steer it, and anywhere what cannot be written as `?`."""
    if stream.isatty():
        text = harmless(text)
    stream.write(writable(text, stream))
