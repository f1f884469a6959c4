"""What is typed, entry by entry, to what the run does and what the person sees."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from koi_lang.diagnostics import CompileError, nearest, render
from koi_lang.errors import CallCancelledError, UsageError
from koi_lang.js.inspect_value import inspect
from koi_lang.js.own_properties import is_array, is_record
from koi_lang.js.undefined import undefined
from koi_lang.program import declarations
from koi_lang.program.files import absolute
from koi_lang.program.interactive import Entry, InteractiveProgram, Step
from koi_lang.program.typed_code import is_unfinished
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.run import Run
from koi_lang.runtime.schema import signature_text, type_text
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
MAX_FIELDS, MAX_DEPTH = 12, 3


def describe(text: str, program: InteractiveProgram) -> str:
    """What a name or an expression stands for; nothing is carried out. Raises CompileError or UsageError."""
    if not text:
        raise UsageError("`:type` names nothing", help="Write `:type EXPRESSION`, or the name of an agent.")
    agents = {agent.about.name: agent for agent in declarations.agents_of(program.module)}
    name, _, event = text.partition(".")
    agent = None if text in program.variables else agents.get(name)
    if agent is not None and not event:
        return _agent_text(agent)
    if agent is not None and event in agent.about.handlers:
        return f"{text}{_signature(agent.about.handlers[event])}"
    if text in program.variables:
        return shape(program.variables[text])
    return program.declaration_of(text) or program.kind_of(text)


def _agent_text(agent: type[Agent]) -> str:
    about = agent.about
    lines = [f"agent {about.name} : {about.role().name}"]
    lines += [f"  on {handler.event}{_signature(handler)}" for handler in about.handlers.values()]
    return "\n".join(lines)


def _signature(handler: Handler) -> str:
    given = signature_text(handler.schema) or (type_text(handler.schema) if handler.schema else "")
    result = f": {type_text(handler.result.schema)}" if handler.result is not None else ""
    return f"({given}){result}"


def shape(value: Any, depth: int = 0) -> str:
    """The type that a value has, as the language writes types."""
    if value is None or value is undefined:
        return "null" if value is None else "undefined"
    for kind, name in ((bool, "boolean"), (int | float, "number"), (str, "string")):
        if isinstance(value, kind):
            return name
    if is_array(value):
        kinds = list(dict.fromkeys(shape(item, depth + 1) for item in list(value)[:MAX_FIELDS]))
        return f"{kinds[0]}[]" if len(kinds) == 1 else f"({' | '.join(kinds)})[]" if kinds else "any[]"
    if is_record(value) and isinstance(value, Mapping):
        if depth >= MAX_DEPTH:
            return "{ … }"
        fields = [f"{name}: {shape(item, depth + 1)}" for name, item in list(value.items())[:MAX_FIELDS]]
        more = ["…"] if len(value) > MAX_FIELDS else []
        return f"{{ {', '.join([*fields, *more])} }}" if fields else "{}"
    return "function" if callable(value) else type(value).__name__


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
