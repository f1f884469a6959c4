"""Commands that go on while their agents do something else: their numbers, their growing outputs, their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from koi_lang.errors import AgentError, PatternError
from koi_lang.events import CommandEnded, CommandStarted
from koi_lang.js.bounded_regex import BoundedRegex
from koi_lang.runtime.actions.command_output import CONTROL, READ_SIZE, Output
from koi_lang.runtime.host import clip_text
from koi_lang.runtime.shared_sandbox import HeldCommand, SharedSandboxes

if TYPE_CHECKING:
    from koi_lang.runtime.guards.commands import Command
    from koi_lang.runtime.ports import RunPort

MAX_COMMANDS = 20
# Of a command, where one line tells of it; of a line that is searched, in characters.
MAX_SHOWN_CHARS, MAX_LINE_CHARS = 80, 4000
CommandState = Literal["running", "ended", "stopped", "lost"]
ENDS: Sequence[CommandState] = ("ended", "stopped", "lost")


class LineWatch:
    """Waits for a line of an output that fits a pattern. Raises PatternError where that is malformed."""

    def __init__(self, pattern: str) -> None:
        self._pattern = BoundedRegex(pattern)
        self._rest = b""
        self.line: str | None = None
        self.error: PatternError | None = None
        self.is_over = asyncio.Event()

    def add(self, piece: bytes) -> None:
        """Search further output, its last line also before that ends."""
        if self.is_over.is_set():
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        try:
            for line in (*lines, self._rest):
                text = CONTROL.sub("", line[:MAX_LINE_CHARS].decode("utf-8", "replace")).rstrip("\r")
                if self._pattern.is_in(text):
                    self.line = text
                    self.is_over.set()
                    return
        except PatternError as error:
            self.error = error
            self.is_over.set()
        self._rest = self._rest[:MAX_LINE_CHARS]


@dataclass(slots=True, eq=False)
class BackgroundCommand:
    """A command that an agent has begun and that has a number.

    Attributes:
        number: that of its output, too.
        log: both of its streams in the order in which they are read; None where an earlier process has had them.
        tells: whether its agent is told of its end.
    """

    number: int
    agent: str
    text: str
    log: Output | None
    held: HeldCommand | None = None
    tells: bool = True
    state: CommandState = "running"
    code: int | None = None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        code = {} if self.code is None else {"exitCode": self.code}
        return {"command": self.number, "state": self.state, **code, "text": self.text}

    @property
    def end_text(self) -> str:
        """A line that tells its agent of the end."""
        how = {
            "ended": f"has ended with exit code {self.code}",
            "stopped": "was stopped",
            "lost": "has ended, since the process in which it ran has",
        }
        name = clip_text(" ".join(self.text.split()), MAX_SHOWN_CHARS)
        return f"command {self.number} (`{name}`) {how.get(self.state, 'is running')}"


class CommandRun:
    """A command while its output is read, which may become one with a number.

    Args:
        outputs: one for each stream.
    """

    def __init__(self, held: HeldCommand, outputs: list[Output], watch: LineWatch | None = None) -> None:
        self.held = held
        self.outputs, self.watch = outputs, watch
        self._sinks: list[Callable[[bytes], None]] = [output.add for output in outputs]

    def begin(self, background: asyncio.TaskGroup) -> None:
        """Begin to read."""
        self.reading = background.create_task(self._read_to_end())

    async def _read_to_end(self) -> None:
        """Read all streams, and wait until nothing is left of the command."""
        async with asyncio.TaskGroup() as group:
            for number, stream in enumerate(self.held.streams):
                group.create_task(self._read(number, stream))
        await self.held.is_gone.wait()
        await self.held.check_repositories()

    async def _read(self, number: int, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(READ_SIZE):
            self._sinks[number](piece)
            if self.watch is not None:
                self.watch.add(piece)

    def join_outputs(self, log: Output) -> Output:
        """Have both streams go on in one output, which begins with what they have written so far."""
        if len(self.outputs) == 1:
            return self.outputs[0]
        for output in self.outputs:
            log.add(output.beginning_bytes())
        self._sinks = [log.add] * len(self._sinks)
        return log


class BackgroundCommands:
    """The commands of a run that have numbers, and the sandboxes that they share; made when there is a first one."""

    def __init__(self, run: RunPort) -> None:
        self._run = run
        self._sandboxes = SharedSandboxes(run.background)
        self._commands: dict[int, BackgroundCommand] = {}

    def recall(self, number: int, *, tells: bool) -> None:
        """Register a command of an earlier part of the run; one that had not ended has ended with its process.

        Args:
            tells: whether its agent is told of that.
        """
        recorded = self._run.recorded
        begun = [entry for entry in recorded.entries_of(CommandStarted.type) if entry.data.get("command") == number]
        if number in self._commands or not begun:
            return
        command = BackgroundCommand(number, begun[0].agent, str(begun[0].data.get("text", "")), None, tells=tells)
        self._commands[number] = command
        ended = [entry.data for entry in recorded.entries_of(CommandEnded.type) if entry.data.get("command") == number]
        if ended:
            command.code = ended[0].get("exit_code")
            command.state = next((each for each in ENDS if each == ended[0].get("state")), "ended")
        else:
            command.state = "lost"
            if recorded.policy.has_outside:
                self._tell_end(command)

    # ------------------------------------------------------------ beginning

    async def start(self, command: Command, *, is_merged: bool, until: str = "") -> CommandRun:
        """Start a command in a sandbox with others. Raises AgentError, OSError, ValueError or PatternError.

        Args:
            is_merged: whether both of its streams are one.
            until: a regular expression for the line that is waited for; empty for none.
        """
        if sum(each.state == "running" for each in self._commands.values()) >= MAX_COMMANDS:
            help = "`list_commands` lists them, `stop_command` ends one."
            raise AgentError(f"{MAX_COMMANDS} commands of this run go on already", help=help)
        watch = LineWatch(until) if until else None
        held = await self._sandboxes.start(command, is_merged=is_merged)
        started = CommandRun(held, [Output.of_run(self._run) for _ in held.streams], watch)
        started.begin(self._run.background)
        return started

    def are_open(self) -> bool:
        """Whether commands are at work where another one can meet them."""
        return self._sandboxes.are_open()

    def add(self, started: CommandRun, command: Command, *, tells: bool) -> int:
        """Give a command a number and let it go on; returns the number.

        Args:
            tells: whether its agent is told of its end.
        """
        number = self._run.outputs.take_number()
        log = started.join_outputs(Output.of_run(self._run))
        added = BackgroundCommand(number, command.agent, command.text, log, started.held, tells)
        self._commands[number] = added
        started_event = CommandStarted(number, command.text)
        self._run.events.emit(started_event, command.agent, path=(f"{CommandStarted.type}#{number}",))
        started.reading.add_done_callback(lambda task: self._note_end(added))
        return number

    # ------------------------------------------------------------ ending

    def _note_end(self, command: BackgroundCommand) -> None:
        held = command.held
        assert held is not None, "a command of this process"
        if command.state == "running":
            command.state = "lost" if held.is_lost else "ended"
        command.code = held.code
        self._tell_end(command)

    def _tell_end(self, command: BackgroundCommand) -> None:
        code = {} if command.code is None else {"exit_code": command.code}
        ended = CommandEnded(command.number, command.state, **code)
        self._run.events.emit(ended, command.agent, path=(f"{CommandEnded.type}#{command.number}",))
        if command.tells and command.state != "stopped":
            self._run.steering.notify(command.agent, command.end_text, sender=f"command {command.number}")

    async def stop(self, agent: str, number: int) -> Mapping[str, Any]:
        """End a command with all that it has started; gives its last state. Raises AgentError."""
        command = self.require(agent, number)
        if command.state != "running" or command.held is None:
            raise AgentError(f"{command.end_text} already")
        command.state = "stopped"
        await command.held.end(gently=True)
        return command.as_data()

    async def end(self) -> None:
        """End everything with the run; nobody is told any more."""
        for command in self._commands.values():
            command.tells = False
            if command.state == "running":
                command.state = "stopped"
        await self._sandboxes.end()

    # ------------------------------------------------------------ looking

    def of_agent(self, agent: str) -> list[BackgroundCommand]:
        """The commands that an agent has begun, in order."""
        return [command for command in self._commands.values() if command.agent == agent]

    def all(self) -> list[BackgroundCommand]:
        """All commands, in order."""
        return list(self._commands.values())

    def find(self, agent: str, number: int) -> BackgroundCommand | None:
        """The command of a number that an agent has begun."""
        command = self._commands.get(number)
        return command if command is not None and command.agent == agent else None

    def require(self, agent: str, number: int) -> BackgroundCommand:
        """The command of a number that an agent has begun. Raises AgentError."""
        command = self.find(agent, number)
        if command is None:
            listed = ", ".join(str(each.number) for each in self.of_agent(agent))
            help = f"There are the commands {listed}." if listed else "It has begun none in the background."
            raise AgentError(f"`{agent}` has no command {number}", help=help)
        return command

    def text_of(self, command: BackgroundCommand) -> str:
        """The output of a command so far, without secrets. Raises AgentError where it is not there any more."""
        if command.log is None:
            raise AgentError(f"the output of command {command.number} ended with the process in which it ran")
        return self._run.redact(CONTROL.sub("", command.log.whole_text()))
