"""Material beside a message, as data: files that it names as `@PATH`, and output of commands behind `!`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from koi_lang.cli.chat.view import Screen
from koi_lang.cli.ui.text import harmless
from koi_lang.errors import KoiError, UsageError, reason
from koi_lang.runtime.actions.command_output import CONTROL, Output
from koi_lang.runtime.command_process import start_command
from koi_lang.runtime.guards.commands import Command, place_of
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.std.code.text_files import decode_file
from koi_lang.system.open_folders import read_regular_file

MENTION = re.compile(r"(?<!\S)@(\S+)")
# Signs that may stand behind a path in a sentence.
ENDS = ".,;:!?)"
# Stands between a message and its material.
BESIDE = "\n\nBeside the message, as data:\n"
MAX_FILE_BYTES, MAX_FILE_CHARS = 5_000_000, 30_000
MAX_COMPLETIONS = 50
MAX_COMMAND_S = 3600.0


def message_in(text: str) -> str:
    """The message that a person wrote, without its material."""
    return text.partition(BESIDE)[0]


def file_texts(text: str, folder: Path, note: Callable[[str], None]) -> list[str]:
    """The files that a message names, each quoted. A word that names no file stays a word.

    Args:
        note: is told of each word that looks like a path and names no file.

    Raises:
        KoiError: one is closed to agents, outside of the project, or no text.
    """
    paths: dict[str, None] = {}
    for word in MENTION.findall(text):
        for path in (word, word.rstrip(ENDS)):
            with suppress(OSError, ValueError):
                if path and (folder / path).is_file():
                    paths[path] = None
                    break
        else:
            if "/" in word or "." in word.rstrip(ENDS):
                note(f"there is no file `{word.rstrip(ENDS)}` in this folder; the model gets the word alone")
    quoted: list[str] = []
    for path in paths:
        file = working_path(folder, path)
        try:
            content = decode_file(read_regular_file(file, MAX_FILE_BYTES, follows=False), path).text
        except OSError as error:
            raise UsageError(f"`{path}` cannot be read: {reason(error)}") from error
        more = len(content) - MAX_FILE_CHARS
        rest = f"\n({more:,} more characters)" if more > 0 else ""
        quoted.append(quote_block(f"The file `{path}`", content[:MAX_FILE_CHARS]) + rest)
    return quoted


def quote_block(title: str, text: str) -> str:
    """A text under a title, in a fence that nothing in it can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{title}:\n{fence}\n{text.removesuffix(chr(10))}\n{fence}"


def complete_mention(text: str, folder: Path) -> Iterator[str]:
    """The paths of the project that the word `@…` at the end of a text may become, behind its `@`."""
    word = text[text.rfind("@") + 1 :]
    around = word.rpartition("/")[0]
    begin = word.rpartition("/")[2]
    with suppress(OSError, ValueError, KoiError):
        inside = working_path(folder, around or ".")
        entries = sorted(os.scandir(inside), key=lambda entry: entry.name)
        fitting = (each for each in entries if each.name.startswith(begin) and (begin or each.name[0] != "."))
        for _, entry in zip(range(MAX_COMPLETIONS), fitting, strict=False):
            path = f"{around}/{entry.name}" if around else entry.name
            with suppress(KoiError):
                working_path(folder, path)
                yield path + "/" * entry.is_dir()


def is_mention(text: str) -> bool:
    """Whether the last word of a text names a file, or begins to."""
    return bool(text) and re.search(r"(?:^|\s)@\S*\Z", text) is not None


class OwnCommands:
    """Commands that the person runs under their own hand, one at a time; the next message carries their output.

    Args:
        screen: shows the output.
        redact: takes secrets out of the output that models get.
    """

    def __init__(self, screen: Screen, redact: Callable[[str], str]) -> None:
        self._screen, self._redact = screen, redact
        self._task: asyncio.Task[None] | None = None
        self.outputs: list[str] = []

    @property
    def is_running(self) -> bool:
        """Whether one is under way."""
        return self._task is not None and not self._task.done()

    def begin(self, text: str, folder: Path, group: asyncio.TaskGroup) -> None:
        """Run a command in a folder. Raises UsageError where there is none, or one is under way."""
        if self.is_running:
            raise UsageError("a command of yours is under way", help="`/abort` ends it.")
        if not text.strip():
            raise UsageError("there is no command behind `!`", help="Write one, such as `!git status`.")
        self._task = group.create_task(self._run(text.strip(), folder))

    def end(self) -> bool:
        """End the command that is under way; returns whether there was one."""
        return self.is_running and self._task is not None and self._task.cancel()

    async def wait(self) -> None:
        """Wait until none is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, text: str, folder: Path) -> None:
        output = Output()
        try:
            process = await start_command(Command(text, place_of(None, folder), ""), is_merged=True)
            code = await process.read_and_end([output], MAX_COMMAND_S)
        except (OSError, ValueError) as error:
            self._screen.fail(f"error: the command cannot be started: {error}")
            return
        except asyncio.CancelledError:
            self._screen.fail(f"{self._screen.look.failed} `{text}` was ended")
            return
        shown = CONTROL.sub("", output.text()).rstrip()
        if shown:
            self._screen.say(harmless(shown))
        ended = "took too long" if code is None else f"ended with exit code {code}"
        if code != 0:
            self._screen.fail(f"{self._screen.look.failed} `{text}` {ended}")
        self.outputs.append(quote_block(f"The person ran `{text}`, which {ended}", self._redact(shown)))
