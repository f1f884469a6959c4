"""A terminal to a conversation: an input with history and completion at the bottom, what is said above it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.shortcuts import PromptSession
from prompt_toolkit.styles import Style

from koi_lang.cli.chat import keys
from koi_lang.cli.chat.commands import COMMANDS
from koi_lang.cli.chat.conversation import ChatConversation
from koi_lang.cli.chat.images import pasted_files
from koi_lang.cli.chat.material import complete_mention, is_mention
from koi_lang.cli.chat.view import GrowingText, Request, options_of, request_text
from koi_lang.cli.ui.approval_question import Paper
from koi_lang.cli.ui.input_history import InputHistory
from koi_lang.cli.ui.markdown import MIN_COLUMNS, render_markdown, wrap_text
from koi_lang.cli.ui.text import COLOUR, RED, WEAK, Theme, fit_text, one_line
from koi_lang.errors import KoiError
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.playbook.steering import How
from koi_lang.sessions.client_host import APPROVAL

# How long a key that may begin a longer one is waited for.
KEY_S, SEQUENCE_S = 0.25, 0.05
# Between two drawings of what grows.
REDRAW_S = 0.04
# What carries out playbooks, and a text with which all that renders texts is loaded.
LOADED_AHEAD = (
    "koi_lang.runtime.model_calls.gateway",
    "koi_lang.runtime.budget.reservations",
    "koi_lang.runtime.playbook.loop",
    "koi_lang.runtime.playbook.call",
    "concurrent.futures.thread",
)
SAMPLE = "`a` **b**\n\n```\nc\n```"
STYLE = Style.from_dict({"bottom-toolbar": "noreverse"})
AGAIN = "press Ctrl-C again, or Ctrl-D, to end the conversation"
PAUSE_S = 0.05


class Scrollback:
    """What is written above the input of a terminal.

    The terminal stays as the input needs it: keys that are pressed meanwhile would else be shown twice, and Enter
    would be taken for Ctrl-J.
    """

    def __init__(self, app: Application[Any]) -> None:
        self._app = app
        self._waiting: list[str] = []
        self._news = asyncio.Event()

    def add(self, text: str) -> None:
        """Have some lines written soon."""
        self._waiting.append(text + "\n")
        self._news.set()

    async def write(self) -> None:
        """Write what is added, until this is cancelled."""
        while True:
            await self._news.wait()
            if self._app.output.responds_to_cpr:
                # Where the cursor was must not be taken for where it is afterwards.
                await self._app.renderer.wait_for_cpr_responses()
            self.flush()
            await asyncio.sleep(PAUSE_S)

    def flush(self) -> None:
        """Write what is waiting."""
        text, self._waiting = "".join(self._waiting), []
        self._news.clear()
        if not text:
            return
        app, is_drawn = self._app, self._app.is_running and not self._app.is_done
        if is_drawn:
            app.renderer.erase()
        app.output.write_raw(text.replace("\n", "\r\n"))
        app.output.flush()
        if is_drawn:
            app.renderer.reset()
            app.renderer.request_absolute_cursor_position()
            app.invalidate()


class CapturedStream(io.TextIOBase):
    """Stands in for a stream of the process: whole lines that somebody writes to it become asides."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note, self._begun = note, ""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Take a piece of text."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, map(str.rstrip, lines)):
            self._note(line)
        return len(text)


class Editor:
    """Shows a conversation, and hands over what is typed.

    Attributes:
        chat: the conversation; set before it runs.
    """

    keys: Sequence[str] = keys.HELP
    person = True

    def __init__(self, look: Theme, redact: Callable[[str], str]) -> None:
        self.chat: ChatConversation
        self.group: asyncio.TaskGroup
        self.look = look
        self._typed: asyncio.Queue[tuple[str, How]] = asyncio.Queue()
        self._how: How = "steer"
        self._draft, self._kept_draft = "", ""
        self._writing: GrowingText | None = None
        self._warned = False
        history = InputHistory(Path.cwd(), redact, lambda: not self.chat.requests)
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,
            history=history,
            key_bindings=keys.bindings(self),
            completer=InputCompleter(self),
            complete_while_typing=Condition(
                lambda: self.text.startswith("/") or is_mention(self.text) or bool(self._options())
            ),
            bottom_toolbar=self._toolbar,
            is_password=Condition(lambda: bool(self._current_request().get("secret"))),
            prompt_continuation=lambda width, line, wraps: " " * width,
            style=STYLE,
            reserve_space_for_menu=4,
        )
        self._session.app.min_redraw_interval = REDRAW_S
        self._session.app.timeoutlen, self._session.app.ttimeoutlen = KEY_S, SEQUENCE_S
        # Without an answer to where the cursor is there is no line at the bottom; nobody has to be warned of that.
        self._session.app.renderer.cpr_not_supported_callback = None
        self._paper = Scrollback(self._session.app)

    # ------------------------------------------------------------ what keys do

    @property
    def text(self) -> str:
        """What stands in the input."""
        return self._session.default_buffer.text

    def take(self, how: How) -> None:
        """Hand over what stands in the input."""
        self._how, self._warned = how, False
        self._session.default_buffer.validate_and_handle()

    def order(self, text: str) -> None:
        """Hand over a command, or a message, and leave the input as it is."""
        self._typed.put_nowait((text, "steer"))

    def paste(self, text: str) -> None:
        """Attach the images that a pasted text is nothing but; any other text goes into the input."""
        try:
            if not self.chat.requests and self.chat.attach(text):
                return
        except KoiError as error:
            self.fail(f"error: {error.message}" + (f"\n  = help: {error.help}" if error.help else ""))
            if not pasted_files(text):
                return
        self._session.default_buffer.insert_text(text.replace("\r\n", "\n").replace("\r", "\n"))

    @property
    def is_busy(self) -> bool:
        """Whether an agent works."""
        return self.chat.is_busy

    @property
    def mark(self) -> str:
        """The mark of an image that stands before the cursor; empty where there is none."""
        return self.chat.attached.mark_before(self._session.default_buffer.document.text_before_cursor)

    def interrupt(self) -> None:
        """Ctrl-C: empty the input, else end the work, else warn, else end the conversation."""
        if self.text:
            self._session.default_buffer.reset()
        elif self.chat.own.end():
            return
        elif self.is_busy:
            self.order("/abort")
        elif self._warned:
            self.order("/quit")
        else:
            self._warned = True
            self.note(AGAIN)

    # ------------------------------------------------------------ as a screen

    def columns(self) -> int:
        """How wide the terminal is."""
        return self._session.app.output.get_size().columns

    def paper(self) -> Paper:
        """What the terminal has room for."""
        size = self._session.app.output.get_size()
        return Paper(self.look, size.columns, size.rows)

    def say(self, text: str) -> None:
        """Show what a program prints."""
        self._add(wrap_text(text, self.columns(), self.look))

    def answer(self, text: str) -> None:
        """Show what an agent says, rendered."""
        self._add(render_markdown(text, self.columns(), self.look))

    def show_writing(self, text: GrowingText | None) -> None:
        """Show the end of a text above the input while it is written."""
        self._writing = text
        self._session.app.invalidate()

    def note(self, text: str) -> None:
        """Show an aside, in weaker letters."""
        lines = wrap_text(COLOUR.sub("", text), self.columns(), self.look)
        self._add([self.look.paint(line, WEAK) for line in lines])

    def _add(self, lines: Sequence[str]) -> None:
        self._paper.add("\n".join(lines))

    def fail(self, text: str) -> None:
        """Show what went wrong."""
        first, mark, rest = text.partition("\n")
        self._paper.add(self.look.paint(first, RED) + mark + rest)

    def ask(self, request: Request) -> None:
        """Show a request; a message that is being typed waits until it is answered."""
        self.say(request_text(request, self.paper()))
        buffer = self._session.default_buffer
        if self._session.app.is_running and not self._kept_draft:
            self._kept_draft = buffer.text
            buffer.reset()
            if options_of(request):
                buffer.start_completion()

    def put_back(self, text: str) -> None:
        """Put a text before what stands in the input."""
        if not self._session.app.is_running:
            self._draft = "\n".join(filter(None, (text, self._draft)))
            return
        buffer = self._session.default_buffer
        buffer.document = Document("\n".join(filter(None, (text, buffer.text))))

    def attach(self, mark: str) -> None:
        """Put the mark of an image where the cursor is."""
        if self._session.app.is_running:
            self._session.default_buffer.insert_text(f"{mark} ")
        else:
            self._draft += f"{mark} "

    def change(self) -> None:
        """Draw the line at the bottom anew, and take options away that nobody asks for any more."""
        if not self.chat.requests and not self.text.startswith("/") and not is_mention(self.text):
            self._session.default_buffer.cancel_completion()
        self._session.app.invalidate()

    # ------------------------------------------------------------ its parts

    def _current_request(self) -> Request:
        return self.chat.requests[0] if self.chat.requests else {}

    def _options(self) -> list[str]:
        return [one_line(option) for option in options_of(self._current_request())] if self.chat.requests else []

    def _prompt(self) -> StyleAndTextTuples:
        asked = self._current_request().get("type")
        return [*self._preview(), ("bold", "> " if asked is None else "allow? " if asked == APPROVAL else "? ")]

    def _preview(self) -> StyleAndTextTuples:
        """The end of the text that is being written, in the upper half of the terminal."""
        if self._writing is None:
            return []
        size = self._session.app.output.get_size()
        lines = self._writing.last_lines(size.columns, max(size.rows // 2, 1))
        return to_formatted_text(ANSI("".join(f"{line}\n" for line in lines)))

    def _toolbar(self) -> StyleAndTextTuples:
        text = fit_text(self.chat.status(), self.columns() - 1, self.look.more)
        return [("class:bottom-toolbar" if not self.look.colour else "class:bottom-toolbar fg:ansibrightblack", text)]

    # ------------------------------------------------------------ running

    async def run(self) -> None:
        """Hand over what is typed until the conversation is over."""
        Thread(target=_load_ahead, args=(self.look,), daemon=True, name="load ahead").start()
        with self._strays(), self._session.app.input.raw_mode():
            async with together() as group:
                self.group = group
                tasks = [group.create_task(self._paper.write()), group.create_task(self._hand_over())]
                await self._read()
                self.chat.own.end()
                for task in tasks:
                    task.cancel()
            self.chat.tell_end()
            self._paper.flush()

    @contextmanager
    def _strays(self) -> Iterator[None]:
        """What others write to the streams of the process goes above the input, too."""
        stray = CapturedStream(self.note)
        with ExitStack() as stack:
            stack.enter_context(redirect_stdout(stray))
            stack.enter_context(redirect_stderr(stray))
            yield

    async def _read(self) -> None:
        while not self.chat.over:
            draft, self._draft = self._draft, ""
            try:
                text = await self._session.prompt_async(default=draft)
            except (EOFError, KeyboardInterrupt):
                return
            self._typed.put_nowait((text, self._how))
            await self._wait_until_taken()

    async def _wait_until_taken(self) -> None:
        """Wait until what was typed is taken up, unless that takes long; the input is then there all the same."""
        done = self._typed.join()
        try:
            async with asyncio.timeout(SEQUENCE_S):
                await done
        except TimeoutError:
            return

    async def _hand_over(self) -> None:
        while not self.chat.over:
            text, how = await self._typed.get()
            was_asked = bool(self.chat.requests)
            await self.chat.hear(text, how)
            self._typed.task_done()
            if was_asked and not self.chat.requests and self._kept_draft:
                draft, self._kept_draft = self._kept_draft, ""
                self.put_back(draft)
        if self._session.app.is_running:
            self._session.app.exit(result="")


def _load_ahead(look: Theme) -> None:
    """Load what the first answer needs, while the person types."""
    for name in LOADED_AHEAD:
        import_module(name)
    render_markdown(SAMPLE, MIN_COLUMNS, look)


class InputCompleter(Completer):
    """Completes commands with what they take, and answers to questions with options."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What the text before the cursor may become."""
        text = document.text_before_cursor
        options = self._editor._options()
        if options and not text.startswith("/"):
            yield from (Completion(option, -len(text)) for option in options if option.startswith(text))
            return
        if is_mention(text) and not text.startswith("/"):
            begin = len(text) - text.rfind("@") - 1
            paths = complete_mention(text, self._editor.chat.session.run.folder)
            yield from (Completion(path, -begin) for path in paths)
            return
        name, blank, rest = text.partition(" ")
        if not text.startswith("/") or "\n" in text:
            return
        if not blank:
            for command in COMMANDS.values():
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), display_meta=command.description)
        else:
            yield from (Completion(word, -len(rest)) for word in self._words(name) if word.startswith(rest))

    def _words(self, name: str) -> list[str]:
        """What may stand behind a command."""
        chat = self._editor.chat
        if name == "/agents":
            return [agent.about.name for agent in chat.session.ready.agents]
        return ["yes", "always", "no"] if name == "/approve" else []
