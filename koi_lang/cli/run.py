"""`koi run`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from koi_lang import cache, program, settings
from koi_lang.cli.messages import show_error, show_warnings
from koi_lang.cli.progress import DETAILS, Bill, as_json, as_lines
from koi_lang.cli.terminal import Terminal
from koi_lang.errors import EXIT_FAILED, EXIT_OK, UsageError
from koi_lang.failures import exit_code
from koi_lang.redaction import redactor
from koi_lang.runtime.engine import Run, Services
from koi_lang.runtime.events import Consumer

REHEARSAL = "a rehearsal follows the explicit steps of playbooks"
NEEDS_MODEL = "a model would be needed for: "
TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")
UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
OLLAMA = "127.0.0.1:11434"

# Programs may recurse some 2,000 calls deep; 8 MB of stack hold twice these frames even where all calls pass through C.
MOST_FRAMES = 7500


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says about a run."""

    debug: bool
    verbose: bool
    quiet: bool
    as_json: bool
    answers: str | None
    rehearse: bool
    allow: Sequence[str]
    limits: Mapping[str, Any]
    payload: Mapping[str, Any]
    record: bool = False


@click.command()
@click.argument("file")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a field of what `run` passes on.")
@click.option("--args", "document", metavar="JSON", help="The same with one JSON object.")
@click.option("--answers", metavar="FILE", help="Take the model's answers from a file.")
@click.option("--rehearse", is_flag=True, help="Follow playbooks without a model.")
@click.option("--allow", multiple=True, metavar="RULE", help="Allow `shell`, or a command: `shell:git status`.")
@click.option("--max-turns", type=click.IntRange(1), help="Most answers of the model in a playbook.")
@click.option("--max-tokens", type=click.IntRange(1), help="Most tokens of the whole run.")
@click.option("--max-usd", type=click.FloatRange(0, min_open=True), help="Most money of the whole run.")
@click.option("--max-time", metavar="TIME", help="Most time until the last playbook ends, such as 30s, 10m or 1h.")
@click.option("--record", is_flag=True, help="Write a journal of the run; `koi runs` shows it.")
@click.option("--no-cache", is_flag=True, help="Compile anew.")
@click.option("--quiet", is_flag=True, help="Only what the program prints, and errors.")
@click.option("--verbose", is_flag=True, help="Show every event on stderr.")
@click.option("--debug", is_flag=True, help="Show Python tracebacks, every event, and all that models are told.")
@click.option("--json", "as_json", is_flag=True, help="Write every event to stdout as one JSON object a line.")
@click.option("--no-precalculate", is_flag=True, hidden=True)
def command(file: str, strict: bool, no_cache: bool, no_precalculate: bool, **given: Any) -> None:
    """Run FILE. Standard output carries only what the program prints."""
    payload = _payload(given.pop("pairs"), given.pop("document"))
    most = {name: given.pop(f"max_{name}") for name in ("turns", "tokens", "usd", "time")}
    options = Options(payload=payload, limits=_limits(most), allow=_rules(given.pop("allow")), **given)
    entry = program.compiled(file, strict=strict, fresh=no_cache)
    if not options.quiet:
        show_warnings(entry.warnings)
    sys.exit(_run(file, entry, options))


def _payload(pairs: tuple[str, ...], document: str | None) -> dict[str, Any]:
    """Fields from `--args` and `--arg`; a value that is JSON is taken as such, otherwise as text."""
    result: dict[str, Any] = {}
    if document is not None:
        loaded = _json(document, None)
        if not isinstance(loaded, dict):
            raise UsageError("`--args` takes one JSON object", help="""write --args '{"name": "Ada"}'.""")
        result.update(loaded)
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark:
            raise UsageError(f"`--arg {pair}` has no value", help=f"write --arg {pair}=VALUE.")
        result[name] = _json(value, value)
    return result


def _limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that were given; the time as seconds."""
    limits = {name: value for name, value in given.items() if value is not None}
    if "time" in limits:
        limits["time"] = _seconds(limits["time"])
    return limits


def _seconds(text: str) -> float:
    found = TIME.fullmatch(text.strip().lower())
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if not seconds:
        raise UsageError(f"`--max-time {text}` is no time", help="Write a number with a unit: 500ms, 30s, 10m or 1h.")
    return seconds


def _rules(given: tuple[str, ...]) -> tuple[str, ...]:
    for rule in given:
        if rule != "shell" and not (rule.startswith("shell:") and rule.removeprefix("shell:").strip()):
            help = 'Write --allow shell, --allow "shell:git status" or --allow "shell:ls *".'
            raise UsageError(f"`--allow {rule}` allows nothing", help=help)
    return given


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


def _run(file: str, entry: cache.Entry, options: Options) -> int:
    """Run to the end and give the exit code; whatever goes wrong is told once."""
    sys.setrecursionlimit(MOST_FRAMES)
    try:
        module = program.module_of(program.absolute(file), None, entry)
        if not hasattr(module, "main"):
            raise UsageError(f"`{file}` runs nothing", help="Add a line like `run Agent.handler({})` at its end.")
        asyncio.run(_main(module, entry, options))
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return 130
    except Exception as error:  # told to the person; the process ends with its code
        if type(error).__name__ == "BdbQuit":
            return EXIT_FAILED
        if options.debug:
            traceback.print_exception(error)
        else:
            show_error(error)
        return exit_code(error)
    return EXIT_OK


async def _main(module: ModuleType, entry: cache.Entry, options: Options) -> None:
    folder = Path.cwd()
    host = Terminal(quiet=options.quiet, silent=options.as_json)
    bill = Bill()
    services = Services(
        connect=lambda llm: _connect(llm, options, host, run),
        host=host,
        teams=lambda: program.teams_of(module),
        folder=folder,
        config=settings.koi_config(folder),
        consumers=[bill, *_consumers(options, host)],
        payload=options.payload,
        evaluate=_evaluate,
        limits={**settings.limits(folder), **options.limits},
        allow=[*options.allow, *(f"shell:{command}" for command in settings.allowed_commands(folder))],
        verbatim=options.debug,
        detailed=options.record,
    )
    run = Run(services)
    try:
        with _recording(run, module, entry, options) if options.record else nullcontext():
            async with run:
                await module.main()
    finally:
        line = bill.line()
        if line is not None and (options.verbose or sys.stderr.isatty()):
            host.note(line)


def _recording(run: Run, module: ModuleType, entry: cache.Entry, options: Options) -> AbstractContextManager[Path]:
    """A context in which a journal is written; what records is loaded with the first recorded run."""
    from koi_lang.cli.recording import recorded

    return recorded(run, str(module.__file__), entry, options.payload, verbose=options.verbose or options.debug)


def _consumers(options: Options, host: Terminal) -> list[Consumer]:
    """Who is told what happens, as the command line says; secrets are taken out first."""
    redact = redactor(settings.environment(), settings.dotenv(Path.cwd()))
    if options.as_json:
        return [as_json(redact)]
    if options.verbose or options.debug:
        return [as_lines(host.log, redact, () if options.debug else DETAILS)]
    if sys.stderr.isatty() and not options.quiet:
        return [host.status]
    return []


def _evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """An expression that arrived while running; the reader of expressions is loaded with the first one."""
    from koi_lang.expressions import evaluate

    return evaluate(text, names)


def _connect(llm: Mapping[str, Any], options: Options, host: Terminal, run: Run) -> Any:
    """The model for an `llm` block; the command line goes first."""
    from koi_lang.llm.providers import Surroundings, connect

    folder = Path.cwd()
    chosen = dict(llm)
    if options.answers is not None:
        chosen = {"provider": "scripted", "answers": options.answers}
    elif options.rehearse:
        chosen = {"provider": "rehearsal"}
    around = Surroundings(
        on_event=lambda type, data: run.events.emit(type, **data),
        cache_folder=settings.cache_folder() / "answers",
        ollama=settings.variable("OLLAMA_HOST") or OLLAMA,
    )
    model = connect(
        chosen,
        lambda name: settings.key(name, folder),
        on_note=lambda text: host.note(NEEDS_MODEL + text),
        around=around,
    )
    if model.provider == "rehearsal":
        host.note(REHEARSAL if options.rehearse else f"no model is configured; {REHEARSAL}")
    return model
