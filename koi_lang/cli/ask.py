"""`koi ask`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.attaching.tokens import token_file_option, token_for, warning_of
from koi_lang.cli.options import argument_options, payload_of, plain_option, quiet_option, verbose_option
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang import client
    from koi_lang.cli.attaching import terminal_call
else:
    client = lazy_module("koi_lang.client")
    terminal_call = lazy_module("koi_lang.cli.attaching.terminal_call")


@click.command()
@click.argument("url")
@click.argument("handler", metavar="[AGENT.HANDLER]", required=False)
@click.argument("payload", metavar="[JSON]", required=False)
@argument_options("the payload")
@click.option("--program", metavar="NAME", help="The program, where the service has several.")
@click.option("--run", "id", metavar="ID", help="Go on watching a run that was left, and give its result.")
@token_file_option
@click.option("--json", "as_json", is_flag=True, help="Write only the result to stdout, as JSON on one line.")
@plain_option
@verbose_option
@quiet_option
@click.option("--debug", is_flag=True, help="Show Python tracebacks.")
def command(
    url: str,
    handler: str | None,
    payload: str | None,
    pairs: tuple[str, ...],
    document: str | None,
    program: str | None,
    id: str | None,
    token_file: Path | None,
    as_json: bool,
    plain: bool,
    verbose: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Have the service at URL carry out a handler, and write what it prints and gives.

    The token is that of KOI_SERVE_TOKEN, unless a file is named. Questions and permissions are asked for at the
    terminal, or left to whoever has the pages of the service open. Ctrl-C asks whether the run is to be cancelled or
    left.
    """

    def work() -> None:
        token = token_for(token_file)
        given = _fields_of_start(handler, payload, payload_of(pairs, document), id) | {"program": program}
        warning = warning_of(url, token)
        if warning is not None:
            click.echo(clean(f"warning: {warning}"), err=True)
        view = terminal_call.CallView(as_json=as_json, plain=plain, verbose=verbose, quiet=quiet)
        result = asyncio.run(_call(url, token, id, given, view))
        text = terminal_call.result_text(result, as_json=as_json)
        if text is not None:
            click.echo(text if as_json else clean(text))

    leave(exit_code_of(work, debug=debug))


async def _call(
    url: str, token: str | None, id: str | None, given: dict[str, Any], view: terminal_call.CallView
) -> Any:
    async with client.AsyncClient(url, token) as service:
        run = await service.start(**given) if id is None else service.run(id, call=None)
        return await terminal_call.TerminalCall(run, view, url).carry_out()


def _fields_of_start(
    handler: str | None, payload: str | None, fields: Mapping[str, object], id: str | None
) -> dict[str, Any]:
    """What a run is begun with; empty where one is gone on with. Raises UsageError."""
    if (handler is None) == (id is None):
        message = "there is nothing to ask for" if id is None else "both a handler and a run are given"
        raise UsageError(message, help="Write `koi ask URL Agent.handler`, or `koi ask URL --run ID`.")
    return {} if handler is None else {"handler": handler, "payload": _payload(payload, fields)}


def _payload(text: str | None, fields: Mapping[str, object]) -> Any:
    """The JSON of the command line, with fields of `--arg` and `--args`. Raises UsageError."""
    if text is None:
        return fields
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError("the payload is no JSON", help="""Write it as in '{"name": "Ada"}'.""") from None
    if not fields:
        return given
    if not isinstance(given, dict):
        raise UsageError("`--arg` sets fields, and the payload has none", help="Write a JSON object.")
    return {**given, **fields}
