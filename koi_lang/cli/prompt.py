"""`koi prompt`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from koi_lang.cli.completing.values import complete_handler, complete_program
from koi_lang.cli.options import (
    argument_options,
    fields_of,
    inspecting_command,
    keys_option,
    no_extensions_option,
    settings_here,
)
from koi_lang.errors import UsageError
from koi_lang.js.undefined import undefined
from koi_lang.program import loader
from koi_lang.runtime.routing.lexical import THRESHOLD
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.sessions.prompt_preview import (
    CallToPreview,
    PromptPreview,
    call_named,
    describe_payload,
    preview_prompt,
    role_named,
)
from koi_lang.system.text_width import clean

ESTIMATED = "tokens, estimated from the texts as budgets do it; what a provider counts differs"
TRANSPORTS = {"tools": "its actions as tools", "schema": "its actions by a schema", "text": "its actions in text"}


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.argument("handler", required=False, metavar="[AGENT.HANDLER]", shell_complete=complete_handler)
@argument_options("the payload")
@click.option("-m", "--model", metavar="MODEL", help="Show what this model would be sent, as `provider/model`.")
@click.option("--as", "role", metavar="ROLE", help="Narrow the call to a role, as `.as(Role)` does.")
@click.option("--delegated", is_flag=True, help="Show it as it is for a member that another model has asked.")
@click.option("--intent", metavar="TEXT", help="Also tell how near each member is to a sentence that names none.")
@click.option("--connect", "connects", is_flag=True, help="Start its MCP servers to ask them for their tools.")
@keys_option
@no_extensions_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with the body that the provider gets.")
@inspecting_command
def command(file: str, handler: str | None, pairs: Sequence[str], document: str | None, **how: Any) -> None:
    """Print the first request that a model would be sent for AGENT.HANDLER of FILE, and send nothing.

    Where a model for embeddings is configured, `--intent` sends it that text and what members say of themselves.

    What it takes is told on stderr, a line for each of its parts. Without `--args`, names stand for what is given.
    """
    payload = _payload(pairs, document)
    fields = payload if isinstance(payload, dict) else {}
    said = {name: how[name] for name in ("model", "keys", "no_extensions")}
    options = RunOptions(**said, payload=fields, settings=settings_here())
    ready = prepare_program(file, loader.load_compiled(file), options)
    call = _call(ready, handler or "", payload, how)
    notes: list[str] = [describe_payload(call)] if payload is undefined else []
    preview = asyncio.run(preview_prompt(ready, call, notes.append))
    redact = ready.redactor()
    if how["as_json"]:
        click.echo(redact(json.dumps({**preview.as_data(), "notes": notes}, indent=2, ensure_ascii=False)))
        return
    click.echo(clean(redact("\n\n".join(_texts(preview)))))
    for line in [*notes, *_counts(preview), *_scores(preview)]:
        click.echo(clean(redact(line)), err=True)


def _call(ready: Prepared, name: str, payload: Any, how: Mapping[str, Any]) -> CallToPreview:
    """The call that is meant; fields that were given as words become what its type says. Raises UsageError."""
    roles = (role_named(ready, how["role"]),) if how["role"] else ()
    call = call_named(ready, name, roles=roles, is_delegated=how["delegated"], connects=how["connects"])
    about = call.agent.about
    given = about.converted_fields(call.handler.event, payload) if isinstance(payload, dict) else payload
    return CallToPreview(call.agent, call.handler, given, roles, how["delegated"], how["connects"], how["intent"] or "")


def _payload(pairs: Sequence[str], document: str | None) -> Any:
    """What `--args` and `--arg` give; `undefined` without them. Raises UsageError."""
    if document is None and not pairs:
        return undefined
    try:
        given = {} if document is None else json.loads(document)
    except ValueError as error:
        raise UsageError("`--args` is no JSON", help="""write --args '{"name": "Ada"}'.""") from error
    if pairs and not isinstance(given, dict):
        raise UsageError("`--arg` sets a field, and `--args` is no object", help="""write --args '{"name": "Ada"}'.""")
    return {**given, **fields_of(pairs)} if pairs else given


def _texts(preview: PromptPreview) -> Iterator[str]:
    """All that is sent, for a person: each part behind a line that says who speaks."""
    yield f"--- system\n{preview.system}"
    yield from (f"--- {message.role}\n{message.text}" for message in preview.sent.request.messages)
    kinds = {section.name: section.text for section in preview.sections}
    yield from (f"--- {name}\n{kinds[name]}" for name in ("tools", "schema") if name in kinds)


def _scores(preview: PromptPreview) -> Iterator[str]:
    """How near each member is, nearest first, and from where on one is meant."""
    meaning = preview.meaning
    if not preview.scores:
        return
    yield f"\nnear in words from {THRESHOLD}" + (f", in meaning from {meaning.min_score:g}" if meaning else "")
    if meaning is not None and meaning.error:
        yield f"  {meaning.error}"
    wide = max(len(each.name) for each in preview.scores)
    for each in sorted(preview.scores, key=lambda each: -max(each.words, each.meaning or 0.0)):
        by_meaning = "" if each.meaning is None else f"  {each.meaning:.2f} in meaning"
        yield f"  {each.name:<{wide}}  {each.words:.2f} in words{by_meaning}"


def _counts(preview: PromptPreview) -> Iterator[str]:
    """About how many tokens each part takes, and what is not there."""
    yield ""
    way = (
        f"with {TRANSPORTS[preview.transport]}, since {preview.obstacle}"
        if preview.obstacle
        else "for its result alone"
    )
    yield f"{preview.handler} to {preview.model}, {way}"
    rows = [(section.name, section.tokens) for section in preview.sections]
    wide = max(len(name) for name, _ in rows)
    yield from (f"  {name:<{wide}} {tokens:>9,}" for name, tokens in rows)
    yield f"  {'in all':<{wide}} {preview.tokens:>9,} {ESTIMATED}"
    for server in preview.missing:
        yield f"the tools of `{server}` are asked for at run time, and are not here; `--connect` starts it"
