"""What is typed, entry by entry, to what the run does and what the person sees."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from koi_lang.cli.repl.descriptions import describe
from koi_lang.diagnostics import CompileError, nearest, render
from koi_lang.errors import CallCancelledError, UsageError
from koi_lang.js.inspect_value import inspect
from koi_lang.js.undefined import undefined
from koi_lang.program import declarations
from koi_lang.program.files import absolute
from koi_lang.program.interactive import Entry, InteractiveProgram, Step
from koi_lang.program.typed_code import is_unfinished
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.run import Run
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.held_run import HeldRun
from koi_lang.sessions.message_targets import find_target

COMMANDS = {
    ":help": "this list",
    ":type": "what an agent, a handler, a variable or an expression is: `:type Guide.chat`, `:type n + 1`",
    ":audit": "what models may do on behalf of each agent",
    ":names": "what has been declared, and the variables",
    ":load": "take in the declarations of a file: `:load main.koi`",
    ":quit": "end; so does Ctrl-D",
}
QUOTES = "\"'"
MESSAGE = "@Agent text gives an agent a message"


class ReplOutput(Protocol):
    """Where results and messages are shown."""

    def result(self, text: str) -> None:
        """Show what an entry gives, or a command tells."""

    def note(self, text: str) -> None:
        """Show an aside."""

    def fail(self, text: str) -> None:
        """Show what went wrong."""


@dataclass(slots=True)
class Interpreter:
    """Carries out what a person types.

    Attributes:
        held: the run in which it is done.
        audit: tells what models may do, as text.
        is_over: whether the person wants to leave.
        has_failed: whether any entry has failed.
    """

    program: InteractiveProgram
    held: HeldRun
    output: ReplOutput
    explain: Callable[[BaseException], str]
    audit: Callable[[], str]
    budget: Budget
    is_over: bool = False
    has_failed: bool = False

    def wants_more(self, text: str) -> bool:
        """Whether an entry goes on in the next line."""
        return not text.lstrip().startswith((":", "@")) and is_unfinished(text)

    async def hear(self, text: str) -> None:
        """Carry out an entry, a command or a message to an agent; what goes wrong is shown."""
        text = text.strip()
        try:
            if text.startswith(":"):
                await self._command(*text.partition(" ")[::2])
            elif text.startswith("@"):
                await self._message(text)
            elif text:
                await self._carry_out(self.program.enter(text))
        except CompileError as error:
            self._fail("\n\n".join(render(each, self._folder) for each in error.diagnostics))
        except CallCancelledError:
            self._fail("interrupted")
        except Exception as error:  # shown; the next entry may be better
            self._fail(self.explain(error))

    @property
    def _folder(self) -> str:
        return Path.cwd().as_posix()

    def _fail(self, text: str) -> None:
        self.has_failed = True
        self.output.fail(text)

    # ------------------------------------------------------------ entries

    async def _carry_out(self, entry: Entry) -> None:
        for warning in entry.warnings:
            self.output.note(render(warning, self._folder))
        if entry.has_restarted:
            self.output.note("declared again; all agents begin anew")
        value: Any = undefined
        for step in entry.steps:
            value = await self._perform("an entry", step)
        if value is not undefined:
            self.output.result(inspect(value))

    async def _perform(self, name: str, step: Step) -> Any:
        """What a step gives in the run; Ctrl-C ends it and nothing else."""
        call = self.held.start(name, step, self.budget, is_alone=True)
        with _interrupting(call):
            return await self.held.result_of(call)

    async def _message(self, text: str) -> None:
        name, _, said = text[1:].partition(" ")
        if not said.strip():
            raise UsageError("the message is empty", help="Write `@Agent text`.")
        agents = declarations.agents_of(self.program.module)
        target = find_target(agents, name)
        agent = next(agent for agent in agents if agent.about.name == target.agent)

        async def send(run: Run) -> Any:
            return await run.call(agent, target.event, target.payload(said.strip()))

        value = await self._perform(target.name, send)
        if value is not undefined:
            self.output.result(value if isinstance(value, str) else inspect(value))

    # ------------------------------------------------------------ commands

    async def _command(self, name: str, rest: str) -> None:
        match name:
            case ":help":
                width = max(map(len, COMMANDS))
                lines = [f"{command:<{width}}  {what}" for command, what in COMMANDS.items()]
                self.output.result("\n".join([*lines, MESSAGE]))
            case ":quit" | ":q" | ":exit":
                self.is_over = True
            case ":type":
                self.output.result(describe(rest.strip(), self.program))
            case ":audit":
                self.output.result(self.audit() or "no agent has been declared")
            case ":names":
                self.output.result("\n".join(self._names()) or "nothing has been declared")
            case ":load":
                await self._carry_out(self.program.enter(_import_of(rest.strip())))
            case _:
                near = nearest(name, COMMANDS)
                help = f"Did you mean `{near}`?" if near else "`:help` lists the commands."
                raise UsageError(f"there is no command `{name}`", help=help)

    def _names(self) -> Iterator[str]:
        agents = [agent.about.name for agent in declarations.agents_of(self.program.module)]
        teams = [team.name for team in declarations.teams_of(self.program.module)]
        for kind, names in (("agents", agents), ("teams", teams), ("variables", list(self.program.variables))):
            if names:
                yield f"{kind}: {', '.join(names)}"


def _import_of(path: str) -> str:
    """The statement that takes in a file. Raises UsageError where none is named."""
    if not path:
        raise UsageError("`:load` names no file", help="Write `:load FILE`.")
    return f'import "{absolute(os.path.expanduser(path.strip(QUOTES)))}"'


@contextmanager
def _interrupting(call: HeldCall) -> Iterator[None]:
    """A context in which Ctrl-C ends a call, also one that computes; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        call.interrupt(0)

    usual = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
