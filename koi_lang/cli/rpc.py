"""`koi rpc`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from koi_lang import cache, inventory, program
from koi_lang.cli.messages import exit_code_of, show_warnings
from koi_lang.cli.options import Options, options_from, running_options, seconds
from koi_lang.cli.prepared import prepared
from koi_lang.cli.sessions import Opener
from koi_lang.rpc.stdio import serve_stdio

ASKED = "How long questions to the client are open, such as 30s or 5m."


@click.command()
@click.argument("file")
@running_options("the session", "of a call")
@click.option("--ask-time", metavar="TIME", default="5m", show_default=True, help=ASKED)
@click.option("--record/--no-record", default=None, help="Write a journal of the session, which is the default.")
@click.option(
    "--resume", metavar="ID", help="Go on with a recorded session, by its id, the beginning of one, or `last`."
)
def command(file: str, strict: bool, no_cache: bool, ask_time: str, resume: str | None, **given: Any) -> None:
    """Let another program run FILE: commands on stdin, responses and events on stdout, one JSON object a line.

    Nothing that FILE runs is carried out before the command `run`.
    """
    options, answer_s = options_from(given), seconds("--ask-time", ask_time)
    entry = program.compiled(file, strict=strict, fresh=no_cache)
    if not options.quiet:
        show_warnings(entry.warnings)
    sys.exit(_serve(file, entry, options, resume, answer_s))


def _serve(file: str, entry: cache.Entry, options: Options, resume: str | None, answer_s: float) -> int:
    """Serve to the end and give the exit code; whatever goes wrong is told once."""
    redact = options.key_lookup().redactor()

    def work() -> None:
        # What modules of Python print when they are imported, or later, is no part of the protocol.
        with redirect_stdout(sys.stderr):
            ready = prepared(file, entry, options)
            inventory.require_servers(ready.module, Path.cwd())
            opener = Opener(ready)
            earlier = opener.reopen(resume, None) if resume else None
            asyncio.run(serve_stdio(opener.served(), redact, earlier, answer_s=answer_s))

    return exit_code_of(work, debug=options.debug, redact=redact)
