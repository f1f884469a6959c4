"""`koi rpc`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

import click

from koi_lang.cli.completing.values import complete_program, complete_run
from koi_lang.cli.options import options_from, running_options, seconds
from koi_lang.cli.ui.interrupts import carried_out, leave
from koi_lang.cli.ui.messages import exit_code_of, show_warnings
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.program import cache, declarations, loader
from koi_lang.rpc.stdio import serve_stdio
from koi_lang.service.live.run_socket import RunSocket
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.earlier_session import read_recorded
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program

ASKED = "How long questions to the client are open, such as 30s or 5m."


@click.command()
@click.argument("file", shell_complete=complete_program)
@running_options("the session", "of a call")
@click.option("--ask-time", metavar="TIME", default="5m", show_default=True, help=ASKED)
@click.option("--record/--no-record", default=None, help="Write a journal of the session, which is the default.")
@click.option(
    "--resume",
    metavar="ID",
    shell_complete=complete_run,
    help="Go on with a recorded session, by its id, the beginning of one, or `last`.",
)
@click.option("--trust", is_flag=True, help="Go on with a session that this machine has not signed.")
def command(file: str, ask_time: str, resume: str | None, trust: bool, **given: Any) -> None:
    """Let another program run FILE: commands on stdin, responses and events on stdout, one JSON object a line.

    Nothing that FILE runs is carried out before the command `run`.
    """
    options, answer_s = options_from(given), seconds("--ask-time", ask_time)
    entry = loader.load_compiled(file, strict=given["strict"], fresh=given["no_cache"])
    if not options.quiet:
        show_warnings(entry.warnings)
    leave(
        _serve(
            file,
            entry,
            options,
            answer_s,
            lambda ready: read_recorded(ready, resume, trusted=trust) if resume else NEW_RUN,
        )
    )


def _serve(
    file: str,
    entry: cache.CachedModule,
    options: RunOptions,
    answer_s: float,
    reopen: Callable[[Prepared], Continuation],
) -> int:
    """Serve to the end and give the exit code; whatever goes wrong is told once.

    Args:
        reopen: gives the record of the session that goes on, empty for a new one.
    """
    redact = options.redact

    def work() -> None:
        # What modules of Python print when they are imported, or later, is no part of the protocol.
        with redirect_stdout(sys.stderr):
            note = Terminal(quiet=options.quiet, silent=True).note
            ready = replace(prepare_program(file, entry, options), make_live=RunSocket.of_session, note=note)
            declarations.require_servers(ready.module, ready.options.settings)
            serving = serve_stdio(ready, redact, reopen(ready), answer_s=answer_s)
            carried_out(serving, lambda text: click.echo(text, err=True))

    return exit_code_of(work, debug=options.debug, redact=redact)
