"""Conversations: one in this process whose keys a test presses, and `koi chat` in a terminal with a screen."""

from __future__ import annotations

import asyncio
import io
import json
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.plain_text import PlainTextOutput

from koi_lang.cli.chat import commands
from koi_lang.cli.chat.conversation import ChatConversation
from koi_lang.cli.chat.editor import Editor
from koi_lang.cli.ui.text import ASCII
from koi_lang.program import loader
from koi_lang.redaction.redactor import redactor
from koi_lang.sessions.message_targets import targets
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import prepare_program
from tests.cli.screens import Shown
from tests.limits import LIMIT_S
from tests.playbook.playing import act
from tests.projects import Project

PROGRAM = '''
    role Worker { can execute }
    agent Main : Worker { on chat(args: { message: string }) { playbook """Answer the person.""" } }
    '''
WAIT = act("shell", command="cat go", description="to wait")
ENTER, ALT_ENTER, ESCAPE, NEW_LINE = "\r", "\x1b\r", "\x1b", "\n"
CTRL_C, CTRL_D, CTRL_R, LINE_END = "\x03", "\x04", "\x12", "\x05"
ALT_UP, UP, DOWN, TAB = "\x1b\x1b[A", "\x1b[A", "\x1b[B", "\t"
SECRET = "sk-0123456789abcdef0123"
Test: TypeAlias = Callable[["Typed"], Awaitable[None]]


def say(text: str) -> dict[str, Any]:
    """An answer that prints something."""
    return act("print", message=text)


def prepare(project: Project, *answers: Any) -> None:
    """Write a program, what its model answers, and what the action that waits is waiting for."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(answers))
    os.mkfifo(project.folder / "go")


def let_go(folder: Path) -> None:
    """Have the action that waits end, as soon as its command reads."""
    threading.Thread(target=(folder / "go").write_text, args=("",), daemon=True).start()


class Lines(PlainTextOutput):
    """A terminal that knows what is written above the input, apart from the input itself.

    Attributes:
        above: what was written there.
    """

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.above = ""

    def write_raw(self, data: str) -> None:
        """Take what is written above the input; the input is drawn by `write`."""
        self.above += data


class Typed:
    """A conversation whose keys are pressed here.

    Attributes:
        editor: its input.
        chat: what the input hands over to.
    """

    def __init__(self, folder: Path, keys: PipeInput, output: Lines) -> None:
        self.folder, self._keys, self._output = folder, keys, output
        self.editor = Editor(ASCII, redactor({"MY_KEY": SECRET}))
        answers = str(folder / "answers.json")
        options = RunOptions(quiet=True, answers=answers, words=("chat", "a.koi"))
        file = str(folder / "a.koi")
        ready = replace(prepare_program(file, loader.load_compiled(file), options), note=self.editor.note)
        self.chat = self.editor.chat = ChatConversation(ready, targets(ready.agents)[0], self.editor, str, commands)

    def press(self, *keys: str) -> None:
        """Press some keys."""
        for key in keys:
            self._keys.send_text(key)

    @property
    def shown(self) -> str:
        """Everything that was written above the input so far."""
        return self._output.above

    @property
    def is_searching(self) -> bool:
        """Whether the history is being looked through."""
        return self.editor._session.app.layout.is_searching

    @property
    def choices(self) -> list[str]:
        """What the input offers at the moment."""
        state = self.editor._session.default_buffer.complete_state
        return [] if state is None else [completion.text for completion in state.completions]

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds."""
        while not holds():  # noqa: ASYNC110  (nothing tells when the input has changed)
            await asyncio.sleep(0.002)

    async def until_shown(self, text: str) -> None:
        """Wait until something was written above the input."""
        await self.until(lambda: text in self.shown)

    async def until_waiting(self) -> None:
        """Wait until the action that waits has begun."""
        await self.until(lambda: "shell" in self.chat.status())

    async def run(self, test: Test) -> None:
        """Carry out a test, then end the conversation."""
        async with asyncio.timeout(LIMIT_S), self.chat.dispatcher.session.open(), asyncio.TaskGroup() as group:
            running = group.create_task(self.editor.run())
            await self.until(lambda: self.editor._session.app.is_running)
            await test(self)
            if not running.done():
                self.press(CTRL_C, CTRL_C, CTRL_D, CTRL_D)
                self.chat.over = True
                self.editor.order("/quit")
            await running
            await self.chat.session.finish(0)


def typed(project: Project, test: Test, *answers: Any) -> Typed:
    """What came of pressing keys in a conversation; the current folder must be that of the project."""
    prepare(project, *answers)
    output = Lines()
    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        talk = Typed(project.folder, keys, output)
        asyncio.run(talk.run(test))
    return talk


def chatting(project: Project, *answers: Any, command: str = "", columns: int = 90, **environment: str) -> Shown:
    """A running `koi chat` in a terminal, once its input is there."""
    if not (project.folder / "a.koi").exists():
        prepare(project, *answers)
    words = f"chat a.koi --answers answers.json {command}".split()
    shown = Shown(project.folder, words, columns, 40, **environment)
    # The terminal says where its cursor is when it is asked.
    shown.screen.write_process_input = shown.child.send
    return shown
