"""`koi dashboard`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang.cli.attaching.tokens import token_file_option, token_for, warning_of
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.cli.ui.text import look_of, size_of
from koi_lang.lazy import lazy_module
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.cli.dashboard import app, folder_source, screen, service_source
    from koi_lang.cli.dashboard.snapshot import DashboardSource
else:
    app = lazy_module("koi_lang.cli.dashboard.app")
    folder_source = lazy_module("koi_lang.cli.dashboard.folder_source")
    screen = lazy_module("koi_lang.cli.dashboard.screen")
    service_source = lazy_module("koi_lang.cli.dashboard.service_source")


@click.command()
@click.option("--url", metavar="URL", help="Look at a service instead of this folder.")
@token_file_option
@click.option("--once", is_flag=True, help="Print it once and end, as where there is no terminal.")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.option("--debug", is_flag=True, help="Show Python tracebacks.")
def command(url: str | None, token_file: Path | None, once: bool, as_json: bool, debug: bool) -> None:
    """Show what is at work, what is open and what it costs, in this folder or in a service, and answer what is asked.

    The token for a service is that of KOI_SERVE_TOKEN, unless a file is named.
    """
    is_screen = not (once or as_json) and sys.stdin.isatty() and sys.stdout.isatty()

    def work() -> None:
        token = token_for(token_file) if url is not None else None
        warning = None if url is None else warning_of(url, token)
        if warning is not None:
            click.echo(clean(f"warning: {warning}"), err=True)
        asyncio.run(_show(url, token, is_screen=is_screen, as_json=as_json))

    leave(exit_code_of(work, debug=debug))


async def _show(url: str | None, token: str | None, *, is_screen: bool, as_json: bool) -> None:
    source = folder_source.FolderSource(Path.cwd()) if url is None else service_source.ServiceSource(url, token)
    try:
        if is_screen:
            await app.Dashboard(source, look_of(sys.stdout), await source.look()).run()
        else:
            await _print_once(source, as_json=as_json)
    finally:
        await source.close()


async def _print_once(source: DashboardSource, *, as_json: bool) -> None:
    snapshot = await source.look()
    if as_json:
        click.echo(json.dumps(snapshot.as_data(), indent=2))
        return
    look = look_of(sys.stdout)
    for line in screen.list_lines(snapshot, None, screen.Sheet(look, size_of(sys.stdout)[0], None, time.time())):
        click.echo(line.rstrip(), color=look.colour)
