"""Entries typed at a terminal, with history, completion and several lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import PromptSession

from koi_lang.cli.repl.interpreter import COMMANDS, Interpreter
from koi_lang.cli.ui.input_history import InputHistory
from koi_lang.compiler.scope import GLOBALS
from koi_lang.js.properties import names_of
from koi_lang.program import declarations
from koi_lang.program.interactive import InteractiveProgram

HISTORY = "repl-history"
WORDS = (
    "agent await const export for function if import let mcp new on playbook prompt return role run send skill state "
    "team throw try type typeof uses while"
).split()
# A name behind a dot, with what stands before the dot; or the beginning of a word.
MEMBER = re.compile(r"([A-Za-z_$][\w$]*)\.([\w$]*)\Z")
WORD = re.compile(r"[@:]?[\w$]*\Z")


class EntryEditor:
    """Reads entries; Enter ends one that is complete, Ctrl-C drops it, Ctrl-D ends the session."""

    def __init__(self, interpreter: Interpreter, redact: Callable[[str], str]) -> None:
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            history=InputHistory(Path.cwd(), redact, lambda: True, HISTORY),
            key_bindings=_bindings(interpreter),
            completer=NameCompleter(interpreter.program),
            complete_while_typing=False,
            prompt_continuation="  ",
        )
        # Without an answer to where the cursor is, completions stand below; nobody has to be warned of that.
        self._session.app.renderer.cpr_not_supported_callback = None

    async def read(self) -> str | None:
        """The next entry; None at the end."""
        while True:
            try:
                with patch_stdout(raw=True):
                    return await self._session.prompt_async()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None


def _bindings(interpreter: Interpreter) -> KeyBindings:
    """Enter, which begins a line as long as something is open."""
    keys = KeyBindings()

    @keys.add("enter")
    def end_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if interpreter.wants_more(buffer.text):
            buffer.newline()
        else:
            buffer.validate_and_handle()

    return keys


class NameCompleter(Completer):
    """Completes commands, names of the program and of the language, members of agents and of values."""

    def __init__(self, program: InteractiveProgram) -> None:
        self._program = program

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What the text before the cursor may become."""
        before = document.text_before_cursor
        member = MEMBER.search(before)
        if member is not None:
            yield from _matching(self._members(member[1]), member[2])
            return
        word = WORD.search(before)
        assert word is not None, "which may be empty"
        yield from _matching(self._names(word[0]), word[0])

    def _names(self, word: str) -> list[str]:
        agents = [agent.about.name for agent in declarations.agents_of(self._program.module)]
        if word.startswith(":"):
            return list(COMMANDS)
        if word.startswith("@"):
            return [f"@{name}" for name in agents]
        return [*self._program.variables, *agents, *sorted(GLOBALS), *WORDS]

    def _members(self, name: str) -> list[str]:
        for agent in declarations.agents_of(self._program.module):
            if agent.about.name == name:
                return [*agent.about.handlers, "state"]
        values = self._program.variables
        return names_of(values[name]) if name in values else []


def _matching(names: list[str], beginning: str) -> Iterator[Completion]:
    for name in dict.fromkeys(names):
        if name.startswith(beginning) and name != beginning:
            yield Completion(name, -len(beginning))
