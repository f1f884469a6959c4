"""`koi acp`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from koi_lang.acp.server import AcpServer, ClientServers
from koi_lang.cli.completing.values import complete_agent, complete_program
from koi_lang.cli.options import options_from, plan_option, running_options, settings_here
from koi_lang.cli.ui.interrupts import carried_out, leave
from koi_lang.cli.ui.messages import exit_code_of, show_warnings
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.trust import AGREED
from koi_lang.program import cache, declarations, loader
from koi_lang.rpc.stdio import serve_client
from koi_lang.service.live.run_socket import RunSocket
from koi_lang.sessions.message_targets import find_target, name_of_target
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.system import resources


@click.command()
@click.argument("file", required=False, default="", shell_complete=complete_program)
@click.argument("agent", required=False, default="", shell_complete=complete_agent)
@click.option("--event", metavar="NAME", default="", help="Give messages to this handler.")
@running_options("a conversation", "of an answer")
@click.option("--record/--no-record", default=None, help="Write journals of conversations, which is the default.")
@plan_option
def command(file: str, agent: str, event: str, **given: Any) -> None:
    """Serve an agent of FILE to an editor that speaks the Agent Client Protocol, such as Zed.

    The editor starts it and speaks JSON-RPC on stdin and stdout. Messages go to the handler that `koi chat` gives them
    to, and what needs permission is asked in the editor. Without FILE it is the agent of `koi do`, which works on the
    project of the folder that the editor names.
    """
    options = options_from(given)
    # `--trust-folder` is about this folder, not about each that the editor names later.
    click.get_current_context().meta.pop(AGREED, None)
    if not file:
        file, agent, event = str(resources.standard_skills() / "coder.koi"), agent or "Coder", event or "chat"
    entry = loader.load_compiled(file, strict=given["strict"], fresh=given["no_cache"])
    if not options.quiet:
        show_warnings(entry.warnings)
    leave(_serve(file, entry, options, name_of_target(agent, event)))


def _serve(file: str, entry: cache.CachedModule, options: RunOptions, target: str) -> int:
    """Serve the editor to its end and give the exit code; whatever goes wrong is told once."""
    terminal, file = Terminal(quiet=options.quiet, silent=True), str(Path(file).absolute())
    redactors: dict[Path, Callable[[str], str]] = {options.folder: options.redact}

    def redact(text: str) -> str:
        for each in tuple(redactors.values()):
            text = each(text)
        return text

    def prepare(folder: Path, servers: ClientServers) -> Prepared:
        there = replace(options, settings=replace(settings_here(folder), servers=servers))
        ready = replace(prepare_program(file, entry, there), make_live=RunSocket.of_session, note=terminal.note)
        declarations.require_servers(ready.module, there.settings)
        redactors[folder] = ready.redactor()
        find_target(ready.agents, target)
        return ready

    def work() -> None:
        # What modules of Python print is no part of the protocol.
        with redirect_stdout(sys.stderr):
            server = AcpServer(file, prepare, target, terminal.log)
            carried_out(serve_client("koi acp", redact, server.serve), lambda text: click.echo(text, err=True))

    return exit_code_of(work, debug=options.debug, redact=redact)
