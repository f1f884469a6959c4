"""The options of a command line to a session in which declarations and statements are typed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import click

from koi_lang import settings
from koi_lang.cli.repl.interpreter import Interpreter, ReplOutput
from koi_lang.cli.ui.interrupts import carried_out
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.cli.ui.reporters import DenialNotice
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.text import RED, WEAK, Theme, look_of
from koi_lang.errors import EXIT_FAILED, EXIT_OK
from koi_lang.extensions import find_extensions
from koi_lang.lazy import lazy_module
from koi_lang.program import cache
from koi_lang.program.error_report import explain
from koi_lang.program.interactive import InteractiveProgram
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.run import Run
from koi_lang.sessions.audit import audit_run
from koi_lang.sessions.browser import sign_in_with
from koi_lang.sessions.held_run import HeldRun
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared
from koi_lang.setup.preferences import preferences
from koi_lang.system.text_width import clean
from koi_lang.version import __version__

if TYPE_CHECKING:
    from koi_lang.cli.repl import line_editor
else:
    line_editor = lazy_module("koi_lang.cli.repl.line_editor")

GREETING = f"Koi {__version__}; :help lists the commands, Ctrl-D ends"
GRACE_S = 5.0


class EntryReader(Protocol):
    """Gives what a person types."""

    async def read(self) -> str | None:
        """The next entry, which may have several lines; None at the end."""


def converse(file: str | None, options: RunOptions) -> int:
    """Carry out what is typed to its end, and give the exit code; whatever goes wrong is told."""
    failed: list[bool] = []
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()

    def work() -> None:
        host = Terminal(quiet=options.quiet)
        carried_out(_run(file, options, host, failed, is_typed=is_typed), host.log)

    code = exit_code_of(work, debug=options.debug, redact=options.redact)
    return EXIT_FAILED if code == EXIT_OK and any(failed) and not is_typed else code


async def _run(file: str | None, options: RunOptions, host: Terminal, failed: list[bool], *, is_typed: bool) -> None:
    program = InteractiveProgram(options.folder)
    wanted = preferences(options.model, options.lookup, options.effort or "")
    nothing = cache.CachedModule(compile("", str(program.module.__file__), "exec"), {})
    extensions = find_extensions(program.module, use_installed=not options.no_extensions)
    sign_in = sign_in_with(wanted.keys)
    ready = Prepared(program.module, nothing, options, wanted, extensions=extensions, sign_in=sign_in)
    redact, folder = ready.redactor(), options.folder.as_posix()

    @contextmanager
    def open_run(consumers: Sequence[Consumer]) -> Iterator[tuple[Run, Writer | None]]:
        denials = DenialNotice(lambda text: host.note(redact(text)))
        yield ready.run(host, [denials, *consumers], host.note, limits=options.session_limits), None

    held = HeldRun(open_run, lambda error: redact(explain(error, folder)))
    async with together() as group:
        await held.open_in(group)
        output = StreamOutput(look_of(sys.stderr), redact)
        interpreter = Interpreter(
            program,
            held,
            output,
            lambda error: redact(explain(error, folder)),
            lambda: _audit_text(held, program),
            Budget(time_s=options.call_time_s),
        )
        await _converse(interpreter, file, _reader(options, interpreter, host, redact, is_typed=is_typed))
        failed.append(interpreter.has_failed)
        await held.close(GRACE_S)


async def _converse(interpreter: Interpreter, file: str | None, reader: EntryReader) -> None:
    if file is not None:
        await interpreter.hear(f":load {file}")
    while not interpreter.is_over and (text := await reader.read()) is not None:
        await interpreter.hear(text)


def _reader(
    options: RunOptions, interpreter: Interpreter, host: Terminal, redact: Callable[[str], str], *, is_typed: bool
) -> EntryReader:
    """What entries come from: a terminal with keys of its own, or lines."""
    wants_plain = options.plain or settings.variable("KOI_PLAIN") is not None
    if is_typed and not wants_plain and settings.variable("TERM") not in (None, "dumb"):
        if not options.quiet:
            click.echo(GREETING, err=True)
        return line_editor.EntryEditor(interpreter, redact)
    return LineReader(host, interpreter.wants_more)


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reads lines until an entry is complete; answers to questions are read from the same lines."""

    host: Terminal
    wants_more: Callable[[str], bool]

    async def read(self) -> str | None:
        """The next entry; what is left at the end counts as one."""
        lines: list[str] = []
        while (line := await self.host.read_line()) is not None:
            lines.append(line)
            if not self.wants_more("\n".join(lines)):
                return "\n".join(lines)
        return "\n".join(lines) or None


@dataclass(frozen=True, slots=True)
class StreamOutput(ReplOutput):
    """Results on standard output, all else on standard error."""

    look: Theme
    redact: Callable[[str], str]

    def result(self, text: str) -> None:
        """Show what an entry gives."""
        click.echo(self.redact(text))

    def note(self, text: str) -> None:
        """Show an aside."""
        click.echo(self.look.paint(clean(self.redact(text)), WEAK), err=True, color=self.look.colour)

    def fail(self, text: str) -> None:
        """Show what went wrong, its first line in red."""
        first, mark, rest = clean(self.redact(text)).partition("\n")
        click.echo(self.look.paint(first, RED) + mark + rest, err=True, color=self.look.colour)


def _audit_text(held: HeldRun, program: InteractiveProgram) -> str:
    """For each agent its role, its actions and whom it can delegate to."""
    lines = []
    for agent in audit_run(held.run, program.module):
        lines.append(f"{agent['agent']} : {agent['role']} {{ {', '.join(agent['capabilities'])} }}")
        lines += [f"  {title:<9}  {', '.join(agent[title]) or 'none'}" for title in ("actions", "delegates")]
    return "\n".join(lines)
