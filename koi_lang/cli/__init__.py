"""The command `koi`; a command's module is imported when the command is called."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

import click

from koi_lang import settings
from koi_lang.cli.command_table import (
    COMMANDS,
    FOR_TOOLS,
    FOREIGN_WORDS,
    FORMER_COMMANDS,
    FORMER_OPTIONS,
    SECTIONS,
    SHOWS_ALL,
    CommandModules,
)
from koi_lang.cli.completing import COMPLETE_VARIABLE
from koi_lang.cli.ui.colours import Colours, colour_option
from koi_lang.errors import EXIT_FAILED, EXIT_INTERRUPTED, error_of, exit_code
from koi_lang.lazy import lazy_module
from koi_lang.source import is_program
from koi_lang.version import __version__

if TYPE_CHECKING:
    from koi_lang import diagnostics
    from koi_lang.cli.ui import messages
    from koi_lang.extensions import collecting
else:
    collecting = lazy_module("koi_lang.extensions.collecting")
    diagnostics = lazy_module("koi_lang.diagnostics")
    messages = lazy_module("koi_lang.cli.ui.messages")

# The sections of the help have their texts in one column.
NAME_COLUMNS = 11

# Commands whose name is a word of Python.
MODULES = {"from": "convert"}


class Commands(CommandModules):
    """The built-in commands, and those of extensions."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name: a built-in one, else one that an extension adds. Raises ExtensionError."""
        return super().get_command(ctx, cmd_name) or collecting.commands(COMMANDS).get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, a section for each purpose; those for tools only in `koi help all`."""
        shows_all = SHOWS_ALL in ctx.meta
        for title, rows in SECTIONS.items():
            if shows_all or title != FOR_TOOLS:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(NAME_COLUMNS), about) for name, about in rows.items()])
        if not shows_all:
            formatter.write("\n`koi help all` lists every command, also those for editors and other tools.\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words name; a former name is replaced, an unknown one gets a suggestion."""
        args = _with_current_names(args)
        if not args or args[0] in COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        if is_program(args[0]) or os.path.isfile(args[0]):
            _refuse(ctx, args[0], f"run {args[0]}")
        added = self.get_command(ctx, args[0])
        if added is None:
            _refuse(ctx, args[0], FOREIGN_WORDS.get(args[0]) or diagnostics.nearest(args[0], COMMANDS))
        return args[0], added, args[1:]


def _with_current_names(words: list[str]) -> list[str]:
    """The words with present names of a command and its options in the place of former ones, which are reported."""
    former = next((name for name in (tuple(words[:2]), tuple(words[:1])) if name in FORMER_COMMANDS), ())
    if former:
        words = [*FORMER_COMMANDS[former], *words[len(former) :]]
        _report_former_name(f"koi {' '.join(former)}", f"koi {' '.join(FORMER_COMMANDS[former])}")
    options = FORMER_OPTIONS.get(tuple(words[:1])) or FORMER_OPTIONS.get(tuple(words[:2]), {})
    for number, word in enumerate(words):
        option, sign, value = word.partition("=")
        if option in options:
            words[number] = options[option] + sign + value
            _report_former_name(option, options[option])
    return words


def _report_former_name(former: str, current: str) -> None:
    click.echo(f"`{former}` is now `{current}`; the old name will be removed in the next release", err=True)


def _refuse(ctx: click.Context, word: str, meant: str | None) -> NoReturn:
    hint = f" Did you mean `koi {meant}`?" if meant else ""
    ctx.fail(f"there is no command `{word}`.{hint}")


@click.group(
    cls=Commands,
    find=lambda name: importlib.import_module(f"koi_lang.cli.{MODULES.get(name, name)}"),
    table=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-v", "--version", prog_name="koi", message="%(prog)s %(version)s")
@colour_option
@click.pass_context
def koi(ctx: click.Context) -> None:
    """Koi runs programs made of AI agents."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line; the process ends with the code of the error."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the shell has closed it, so what is opened next gets its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout, TextIOWrapper):  # half of a surrogate pair becomes its escape in JSON
        sys.stdout.reconfigure(errors="backslashreplace")
    colours = Colours()
    if settings.variable(COMPLETE_VARIABLE):
        importlib.import_module("koi_lang.cli.completing.shells")
    try:
        sys.exit(koi.main(args, prog_name="koi", standalone_mode=False, obj=colours))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as error:
        # Click takes any `EOFError` for the end of what a person types, which it has told before without a cause.
        if isinstance(error.__cause__, EOFError):
            _end_with(error.__cause__, colours)
        interrupted = isinstance(error.__cause__, KeyboardInterrupt)
        click.echo("interrupted" if interrupted else "nothing was done", err=True)
        sys.exit(EXIT_INTERRUPTED if interrupted else EXIT_FAILED)
    except Exception as error:  # told to the person; the process ends with its code
        if messages.is_unread(error):
            sys.exit(EXIT_FAILED)
        _end_with(error, colours)
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(error_of(stream.flush), OSError):  # Python would end with 120
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        gc.freeze()  # the process ends: to search what is left for garbage would only take time


def _end_with(error: Exception, colours: Colours) -> NoReturn:
    with click.Context(koi, obj=colours):
        messages.show_error(error)
    sys.exit(exit_code(error))
