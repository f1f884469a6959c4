"""`koi serve`."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang import settings
from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import options_from, running_options, settings_here, verbose_option
from koi_lang.cli.ui.interrupts import serve_until_ended
from koi_lang.cli.ui.messages import exit_code_of, show_warnings
from koi_lang.cli.ui.reporters import as_lines
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.errors import UsageError
from koi_lang.http_server.address import Address
from koi_lang.lazy import lazy_module
from koi_lang.program import cache, loader
from koi_lang.sessions.options import COMMAND_HELP, SERVICE_HELP, RunOptions
from koi_lang.sessions.prepared import prepare_program
from koi_lang.settings.service import ADDRESS, DEFAULT_ADDRESS, ServiceSettings, check_public_url
from koi_lang.source import is_program
from koi_lang.system.loopback import is_loopback

if TYPE_CHECKING:
    from koi_lang.mcp_server import service as mcp_service
    from koi_lang.settings import project
    from koi_lang.web import server as web_service
else:
    mcp_service = lazy_module("koi_lang.mcp_server.service")
    project = lazy_module("koi_lang.settings.project")
    web_service = lazy_module("koi_lang.web.server")

MCP_ADDRESS = "127.0.0.1:8420"
TOKEN = "KOI_SERVE_TOKEN"
CODER = "std/coder"


class _Protocols(click.Group):
    """The protocols that programs are served by; a file that stands for one is served by MCP."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the words name."""
        return super().resolve_command(ctx, ["mcp", *args] if args and is_program(args[0]) else args)


@click.group(cls=_Protocols)
def command() -> None:
    """Serve the exposed agents of a program to other programs."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How clients reach a server, as the command line says: over stdio without an address.

    Attributes:
        default: an address of the kind, for advice.
    """

    address: str | None
    token: str | None
    no_token: bool
    names: Sequence[str]
    default: str = MCP_ADDRESS


@command.command("mcp")
@click.argument("file", required=False, shell_complete=complete_program)
@click.option(
    "--http", "address", is_flag=False, flag_value=MCP_ADDRESS, metavar="[HOST:PORT]",
    help=f"Serve over HTTP instead of stdio, by default at {MCP_ADDRESS}.",
)  # fmt: skip
@click.option("--token", help=f"What HTTP clients must show as bearer token; better set {TOKEN}.")
@click.option("--no-token", is_flag=True, help="Let everybody on this machine in.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A further name clients use for this machine.")
@running_options("a session", "of a call")
@verbose_option
def mcp(file: str | None, strict: bool, no_cache: bool, **given: Any) -> None:
    """Serve FILE to MCP clients: the handlers of agents with `expose mcp` are tools, prompts are prompts.

    Nothing that FILE runs is carried out. Each client has a session with a state of its own.
    """
    reach = Reach(*(given.pop(name) for name in ("address", "token", "no_token", "names")))
    if file is None and reach.address is not None and is_program(reach.address):
        # `--http FILE`: what stands behind the option was meant as the file.
        file, reach = reach.address, Reach(MCP_ADDRESS, reach.token, reach.no_token, reach.names)
    if file is None:
        raise UsageError("no program is named", help="Write koi serve mcp FILE.")
    needed = "" if given["rehearse"] else COMMAND_HELP
    options = replace(options_from(given), record=False, missing_model_help=needed)
    address = _address(reach)
    entry = loader.load_compiled(file, strict=strict, fresh=no_cache)
    if not options.quiet:
        show_warnings(entry.warnings)
    sys.exit(_serve(file, entry, options, address))


@command.command("http")
@click.argument("files", nargs=-1, metavar="[FILE...]", shell_complete=complete_program)
@click.option("--http", "address", metavar="HOST:PORT", help=f"Where to listen; by default {DEFAULT_ADDRESS}.")
@click.option("--token", help=f"What clients must show as bearer token; better set {TOKEN}.")
@click.option("--no-token", is_flag=True, help="Let everybody on this machine in.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A further name clients use for this machine.")
@click.option("--public-url", metavar="URL", help="Where clients reach the service through a proxy, with its path.")
@click.option(
    "--record-dir", metavar="DIR", type=click.Path(path_type=Path), help="The folder of journals; by default this one."
)
@running_options("a session", "of a call")
def http(files: Sequence[str], strict: bool, no_cache: bool, **given: Any) -> None:
    """Serve each FILE to people in a browser and to programs: many sessions in one process, which outlive it.

    Jobs of a FILE are started when they are due; nothing else that it runs is carried out before somebody asks for it.
    What is not said here says `[serve]` in `koi.toml`; without any FILE there it is std/coder. Without a model
    playbooks fail, unless --rehearse is said: nobody would see that a job was only rehearsed.
    """
    public_url, record_dir = given.pop("public_url"), given.pop("record_dir")
    options = replace(options_from(given), record=True, missing_model_help="" if given["rehearse"] else SERVICE_HELP)
    about = served_settings(options.settings)
    whole = replace(options.settings, is_trusted=True)
    if not (files or about.programs) and whole.has_project_file and project.service_settings(whole).programs:
        help = "Name the files to serve, or have `koi trust` show what else does not count."
        raise UsageError("the programs of `[serve]` do not count: this folder is not trusted", help=help)
    place, token, no_token, names = (given.pop(name) for name in ("address", "token", "no_token", "names"))
    about = replace(about, public_url=public_url or about.public_url)
    if problem := about.public_url and check_public_url(about.public_url, ""):
        raise UsageError(f"`--public-url` {problem[0]}", help=problem[1])
    if no_token and about.users:
        raise UsageError("with `[serve.users]` everybody shows a token", help="Leave out --no-token.")
    place = place or about.http or DEFAULT_ADDRESS
    address = _address(Reach(place, token, no_token, (*about.names, *names), DEFAULT_ADDRESS))
    assert address is not None, "one is always given"
    address = replace(address, origins=tuple(about.origins), public_url=about.public_url)
    folder = record_dir or about.record_dir
    if folder is not None:
        options = replace(options, settings=settings_here(Path(folder).resolve()))
    sys.exit(_serve_pages(files or about.programs or (CODER,), options, address, about))


def served_settings(project_settings: settings.ProjectSettings) -> ServiceSettings:
    """`[serve]` of the folder in which the service is started. Raises SettingsError."""
    if not project_settings.has_project_file:
        return ServiceSettings()
    about = project.service_settings(project_settings)
    secrets_by_name = {
        name: settings.fill_variables(value, project_settings) for name, value in about.hook_secrets.items()
    }
    return replace(about, hook_secrets=secrets_by_name)


def _serve_pages(files: Sequence[str], options: RunOptions, address: Address, about: ServiceSettings) -> int:
    """Serve to the end and give the exit code; whatever goes wrong is told once."""

    def work() -> None:
        with redirect_stdout(sys.stderr):
            log = Terminal(silent=True).log
            serve_until_ended(web_service.serve(files, options, address, log, about), log)

    return exit_code_of(work, debug=options.debug, redact=options.redact)


def _address(reach: Reach) -> Address | None:
    """Where to listen, and the token; None for stdio. Raises UsageError."""
    if reach.address is None:
        if reach.token is not None or reach.no_token or reach.names:
            raise UsageError("over stdio there is no token and no name", help="Add --http, or leave them out.")
        return None
    found = ADDRESS.fullmatch(reach.address)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(f"`--http {reach.address}` is no address", help=f"Write --http {reach.default}.")
    host = found["host"] or found["six"] or "127.0.0.1"
    if reach.no_token and not is_loopback(host):
        raise UsageError("without a token only this machine may be served", help="Leave out --no-token.")
    given = None if reach.no_token else _given_token(reach)
    token = None if reach.no_token else given or secrets.token_urlsafe(32)
    return Address(host, int(found["port"]), token, tuple(reach.names), is_new=token is not None and not given)


def _given_token(reach: Reach) -> str | None:
    given = reach.token if reach.token is not None else settings.variable(TOKEN)
    if given is not None and (not given or not given.isascii() or not given.isprintable() or " " in given):
        raise UsageError("the token is empty, or holds spaces or special characters", help="Leave it out to get one.")
    return given


def _serve(file: str, entry: cache.CachedModule, options: RunOptions, address: Address | None) -> int:
    """Serve to the end and give the exit code; whatever goes wrong is told once."""

    def work() -> None:
        # What modules of Python print when they are imported, or later, is no part of the protocol.
        with redirect_stdout(sys.stderr):
            ready = prepare_program(file, entry, options)
        terminal = Terminal(silent=True)
        seen = [as_lines(terminal.log, ready.redactor(), "brief")] if options.verbose or options.debug else []
        service = mcp_service.service_of(ready, _ignore if options.quiet else terminal.log, seen)
        serve_until_ended(mcp_service.serve(service, address, debug=options.debug), service.log)

    return exit_code_of(work, debug=options.debug, redact=options.redact)


def _ignore(text: str) -> None:
    """Take a line that nobody wants."""
