"""Problems as the command line shows them: on stderr, with files named from the folder the person is in."""

from __future__ import annotations

import asyncio
import errno
import select
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from koi_lang.cli.ui.interrupts import SignalError
from koi_lang.cli.ui.text import colour_report, has_colours
from koi_lang.diagnostics import CompileError, Diagnostic, render
from koi_lang.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, PlanShownError, error_of, exit_code
from koi_lang.program.error_report import explain
from koi_lang.system.text_width import clean


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Every diagnostic, with an empty line behind it."""
    for diagnostic in diagnostics:
        _report(render(diagnostic, _here()) + "\n")


def show_error(error: BaseException, redact: Callable[[str], str] = str) -> None:
    """What ended a command; `redact` takes out what must not be shown."""
    if isinstance(error, CompileError):
        show_diagnostics(error.diagnostics)
    else:
        _report(redact(explain(error, _here())))


def exit_code_of(
    work: Callable[[], None],
    *,
    debug: bool,
    redact: Callable[[str], str] = str,
    code_of: Callable[[Exception], int] = exit_code,
) -> int:
    """Do the work of a command and give its exit code; whatever goes wrong is told once, or with its traceback."""
    try:
        work()
    except SignalError as error:
        return error.exit_code
    except (KeyboardInterrupt, asyncio.CancelledError):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except PlanShownError as error:
        click.echo(clean(redact(error.message)), err=True)
        return EXIT_OK
    except Exception as error:  # told to the person; the process ends with its code
        if type(error).__name__ == "BdbQuit":
            return EXIT_FAILED
        if is_unread(error):
            raise  # which needs no message
        if debug:
            click.echo(clean(redact("".join(traceback.format_exception(error)))), err=True, nl=False)
        else:
            show_error(error, redact)
        return code_of(error)
    return EXIT_OK


def is_unread(error: BaseException | None) -> bool:
    """Whether the cause of an error is that whoever read the output has left, be it a program or a terminal."""
    while error is not None and getattr(error, "errno", None) not in (errno.EPIPE, errno.EIO):
        error = error.__cause__
    if error is None or isinstance(error_of(sys.stdout.flush), OSError):
        return error is not None
    if not hasattr(select, "poll") or error_of(sys.stdout.fileno) is not None:
        return False
    looking = select.poll()  # a terminal that has hung up takes a flush of what it has refused before
    looking.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in looking.poll(0))


def show_warnings(warnings: Iterable[str]) -> None:
    """Warnings that were rendered when the program was compiled."""
    for warning in warnings:
        _report(warning.replace(f"--> {_here()}/", "--> ") + "\n")


def _report(text: str) -> None:
    """Show a problem; names and texts of others in it do not steer the terminal."""
    has, shown = has_colours(sys.stderr), clean(text)
    click.echo(colour_report(shown) if has else shown, err=True, color=has)


def _here() -> str:
    return Path.cwd().as_posix()
