"""`koi debug`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_program_or_run
from koi_lang.cli.options import (
    allow_option,
    allow_rules,
    answers_option,
    argument_options,
    payload_of,
    rehearse_option,
)
from koi_lang.cli.run import options_of
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.source import is_program

if TYPE_CHECKING:
    from koi_lang.dap import debuggee as process
    from koi_lang.dap import server
else:
    process = lazy_module("koi_lang.dap.debuggee")
    server = lazy_module("koi_lang.dap.server")


@click.command()
@click.argument("target", metavar="[FILE|RUN]", required=False, shell_complete=complete_program_or_run)
@click.option("--listen", metavar="HOST:PORT", help="Wait for an editor at a port of this machine, instead of stdio.")
@argument_options("what `run` passes on")
@click.option("-m", "--model", metavar="MODEL", help="Use this model, `provider/model`.")
@answers_option
@rehearse_option
@allow_option
@click.option("--stop-on-entry", is_flag=True, help="Stop at the first line.")
@click.option("--debuggee", hidden=True, metavar="DESCRIPTOR,ADAPTER")
def command(target: str | None, listen: str | None, debuggee: str | None, **given: Any) -> None:
    """Debug FILE, or go forward and back in the recorded RUN. An editor starts this and speaks DAP with it."""
    if debuggee is not None:
        descriptor, _, adapter = debuggee.partition(",")
        process.serve(int(descriptor), int(adapter), options_of)
        return
    named = {} if target is None else {"program" if is_program(target) else "run": target}
    options = {name: given[name] for name in ("model", "answers", "rehearse")}
    options |= {"allow": list(allow_rules(given["allow"])), "stopOnEntry": given["stop_on_entry"]}
    defaults = {name: value for name, value in {**named, **options}.items() if value}
    if payload := payload_of(given["pairs"], given["document"]):
        defaults["args"] = payload
    if listen is not None:
        asyncio.run(server.serve_tcp(listen, defaults, lambda text: click.echo(f"listening at {text}", err=True)))
    elif sys.stdin.isatty():
        help = "Give `--listen 127.0.0.1:4711` and attach an editor there; `koi run` runs a program."
        raise UsageError("an editor speaks with `koi debug`, and this is a terminal", help=help)
    else:
        asyncio.run(server.serve_stdio(defaults))
