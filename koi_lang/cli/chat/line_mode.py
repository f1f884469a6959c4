"""Lines to a conversation: one message a line, answers on standard output, everything else on standard error."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from koi_lang.cli.chat.commands import command_in
from koi_lang.cli.chat.conversation import ChatConversation
from koi_lang.cli.chat.images import pasted_files
from koi_lang.cli.chat.view import GrowingText, Request, request_text
from koi_lang.cli.ui.approval_question import Paper, asked_text
from koi_lang.cli.ui.text import Theme, harmless, size_of, writable
from koi_lang.rpc.framing import MAX_MESSAGE_BYTES
from koi_lang.rpc.stdio import lines_from
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.sessions.client_host import APPROVAL, approval_in

HELP = (
    "A line is a message; while the agent works it is heard before its next answer.",
    "@PATH puts a file beside the message; !COMMAND runs a command of yours, and the agent gets its output",
    "A backslash at the end of a line goes on with the next one.",
)
EMPTY_HELP = "Pipe a line for each message, as in `echo hello | koi chat …`, or talk at a terminal."
OPEN_HELP = "Pipe a line for each question behind the message that it is asked for, or talk at a terminal."


class Piped:
    """Reads lines and writes lines; nothing that was written is changed.

    Args:
        person: whether somebody types the lines, who may say something while the agent works. Else a line waits until
            the agent has ended, or asks something, and what needs permission is not allowed.

    Attributes:
        chat: the conversation; set before it runs.
    """

    keys: Sequence[str] = HELP

    def __init__(self, look: Theme, *, person: bool) -> None:
        self.chat: ChatConversation
        self.look, self.person = look, person
        self._begun, self._has_read = "", False
        self._has_ended = False
        self._marks: list[str] = []
        self.group: asyncio.TaskGroup

    def columns(self) -> int:
        """How wide a line may be."""
        return shutil.get_terminal_size((160, 24)).columns

    def paper(self) -> Paper:
        """What the terminal has room for."""
        return Paper(self.look, *size_of(sys.stderr))

    def say(self, text: str) -> None:
        """Write what a program prints."""
        _write(sys.stdout, text)

    def answer(self, text: str) -> None:
        """Write what an agent says, as it said it."""
        self.say(text)

    def show_writing(self, text: GrowingText | None) -> None:
        """Lines are written when they are whole."""

    def note(self, text: str) -> None:
        """Write an aside, where somebody reads it."""
        if self.person:
            _write(sys.stderr, harmless(text))

    def fail(self, text: str) -> None:
        """Write what went wrong."""
        _write(sys.stderr, text)

    def ask(self, request: Request) -> None:
        """Write a request, where somebody can see it; nothing is allowed where nobody can."""
        if self.person:
            _write(sys.stderr, request_text(request, self.paper()))
        elif request["type"] == APPROVAL:
            asked = asked_text(approval_in(request), self.look).splitlines()[0]
            self.fail(f"{asked}: nobody can be asked; see `--allow`")
            self.chat.leave_open(request)

    def put_back(self, text: str) -> None:
        """Say what nobody has heard."""
        self.note(f"nobody has heard: {text}")

    def attach(self, mark: str) -> None:
        """Keep the mark of an image for the next message."""
        self._marks.append(mark)
        self.note(f"{mark} goes with the next message")

    def order(self, text: str) -> None:
        """Hand a text over before the next line."""
        if self._has_ended:
            self.put_back(text.strip())
        else:
            self.group.create_task(self.chat.hear(text))

    def change(self) -> None:
        """Nothing is drawn."""

    # ------------------------------------------------------------ running

    async def run(self) -> None:
        """Hand over all lines; at their end wait for what is under way. Questions have no answer then."""
        async with together() as self.group:
            await self._read()
            self.chat.own.end()
        self._has_ended = True
        if not (self.person or self._has_read):
            self._fail_conversation("nobody has said anything, since standard input is empty", EMPTY_HELP)
        open_questions, failed = [], self.chat.telling.failed
        while self.chat.is_busy and not self.chat.over:
            for request in list(self.chat.requests):
                if request["type"] != APPROVAL:
                    open_questions.append(harmless(str(request.get("question", ""))))
                self.chat.leave_open(request)
            await self.chat.wait()
        if open_questions and not self.person and failed == self.chat.telling.failed:
            self._fail_conversation(f"nobody answers `{open_questions[0]}`: standard input has ended", OPEN_HELP)
        self.chat.tell_end()

    def _fail_conversation(self, text: str, help: str) -> None:
        self.fail(f"error: {text}\n  = help: {help}")
        self.chat.telling.failed += 1

    async def _read(self) -> None:
        async for line in lines_from(0):
            self._has_read = True
            if line is None:
                self.fail(f"error: the line is longer than {MAX_MESSAGE_BYTES:,} bytes and was not read")
                continue
            text = self._begun + line.decode("utf-8", "replace")
            self._begun = f"{text[:-1]}\n" if text.endswith("\\") else ""
            if not self._begun:
                await self._hand_over(text)
            if self.chat.over:
                return

    async def _hand_over(self, text: str) -> None:
        if not self.person:
            await self.chat.wait()
        if self._marks and self._is_message(text):
            text, self._marks = " ".join([*self._marks, text]), []
        await self.chat.hear(text)
        if not self.person:
            await self.chat.wait()

    def _is_message(self, text: str) -> bool:
        is_file = self.person and pasted_files(text)
        return bool(text.strip()) and command_in(text) is None and not self.chat.requests and not is_file


def _write(stream: TextIO, text: str) -> None:
    stream.write(writable(text, stream) + "\n")
    stream.flush()
