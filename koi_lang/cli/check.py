"""`koi check`: the problems of programs, the explanation of a message, and what is understood of a playbook."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from koi_lang.cli.completing.values import complete_code, complete_handler, complete_program
from koi_lang.cli.ui.messages import show_diagnostics
from koi_lang.cli.ui.text import count_text
from koi_lang.compiler.rules import explanations
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.abilities import abilities_of
from koi_lang.compiler.rules.prose.playbooks import PlaybookText
from koi_lang.diagnostics import Diagnostic, LabeledSpan, suggestion
from koi_lang.errors import EXIT_SOURCE, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.program import build
from koi_lang.program.files import programs
from koi_lang.settings import read_settings
from koi_lang.setup.name_warnings import mistyped_models
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.compiler.rules.prose import readings as prose_readings
    from koi_lang.runtime.actions import lookup
else:
    lookup = lazy_module("koi_lang.runtime.actions.lookup")
    prose_readings = lazy_module("koi_lang.compiler.rules.prose.readings")

SAMPLES = "What only the running program knows stands as ⟨its name⟩, numbers as 1."
WIDE = 100


def _complete(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """Codes, or programs and the handlers of one, by what the options before have asked for."""
    if context.params.get("is_explained"):
        return complete_code(context, parameter, word)
    files = context.params.get("files") or ()
    if files and context.params.get("is_playbook"):
        context.params["file"] = files[0]
        return complete_handler(context, parameter, word)
    return complete_program(context, parameter, word)


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...", shell_complete=_complete)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list: of problems, or of sentences.")
@click.option("--explain", "is_explained", is_flag=True, help="Explain a CODE, such as E0203; without one, list all.")
@click.option("--playbook", "is_playbook", is_flag=True, help="Show what is understood of a playbook of FILE.")
def command(files: Sequence[str], strict: bool, as_json: bool, is_explained: bool, is_playbook: bool) -> None:
    """Report the problems of each FILE and of all it imports; of a folder those of every `*.koi` in it.

    `koi check --explain [CODE]` explains the code of a message. `koi check --playbook FILE [AGENT.HANDLER]` shows for
    each sentence of a playbook what the rehearsal would do or that it needs a model, names with their declarations,
    permissions with whether the role has them, and warnings. Nothing is run, and no model is asked.
    """
    if is_explained:
        _explain(*files)
    elif not files:
        raise UsageError("no program is named", help="Write `koi check FILE`.")
    elif is_playbook:
        _show_playbook(*files, as_json=as_json)
    else:
        sys.exit(_check(files, strict=strict, as_json=as_json))


def _check(files: Sequence[str], *, strict: bool, as_json: bool) -> int:
    """Report the problems of programs; returns the exit code."""
    reported: dict[Diagnostic, None] = {}
    is_broken = False
    for file in programs(files):
        checked = build.check(file, strict=strict)
        problems = (*checked.diagnostics, *mistyped_models(checked, read_settings()))
        is_broken |= bool(checked.errors)
        if not as_json:
            show_diagnostics(problem for problem in problems if problem not in reported)
            counts = Counter(problem.severity for problem in problems)
            parts = [count_text(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
            click.echo(f"{file}: {', '.join(parts) or 'no problems'}", err=True)
        reported |= dict.fromkeys(problems)
    if as_json:
        click.echo(json.dumps([problem.as_data() for problem in reported], indent=2))
    return EXIT_SOURCE if is_broken else 0


def _explain(code: str = "", *others: str) -> None:
    """Print the explanation of a code, or the first line of each. Raises UsageError."""
    pages = explanations()
    if others:
        raise UsageError("`--explain` takes one code", help="Write `koi check --explain E0203`.")
    if not code:
        click.echo("\n".join(f"{each}  {page.splitlines()[0]}" for each, page in sorted(pages.items())))
    elif code.upper() in pages:
        click.echo(pages[code.upper()])
    else:
        near = suggestion(code.upper(), sorted(pages), "code")
        raise UsageError(f"no message has the code `{code}`", help=near)


# ---------------------------------------------------------------- playbooks


def _show_playbook(file: str, handler: str = "", *others: str, as_json: bool) -> None:
    """Print what is understood of each sentence of a playbook. Raises UsageError."""
    if others:
        raise UsageError("`--playbook` takes one program", help="Write `koi check --playbook FILE AGENT.HANDLER`.")
    checked = build.check(file)
    program = AnalysedProgram(checked.analysed)
    readings = [
        reading
        for text in _texts(handler, program)
        for reading in prose_readings.read_playbook(text, program, _actions(text, program), checked.diagnostics)
    ]
    if as_json:
        click.echo(json.dumps([reading.as_data() for reading in readings], indent=2, ensure_ascii=False, default=str))
        return
    for reading in readings:
        click.echo(clean("\n".join(_lines(reading))))
    needing = sum(reading.needs_model for reading in readings)
    count = count_text(len(readings), "sentence")
    click.echo(f"{count}, {needing or 'none'} of which a model is needed for. {SAMPLES}", err=True)


def _texts(name: str, program: AnalysedProgram) -> list[PlaybookText]:
    """The texts of the playbook that is meant, the only one without a name. Raises UsageError."""
    known = prose_readings.playbooks_in(program)
    if not name and len(known) == 1:
        name = known[0]
    if not name:
        listed = ", ".join(f"`{each}`" for each in known) or "it has no playbook"
        raise UsageError("no handler is named", help=f"Name one with a playbook: {listed}.")
    agent, _, event = name.partition(".")
    texts = prose_readings.playbook_of(agent, event, program)
    if not texts:
        raise UsageError(f"there is no playbook `{name}`", help=suggestion(name, known, "playbook"))
    return texts


def _actions(text: PlaybookText, program: AnalysedProgram) -> list[str]:
    """The built-in actions that the role of the agent permits."""
    abilities = program.for_file(abilities_of, text.file)[text.agent]
    return [kind.name for kind in lookup.all_actions() if kind.needs is None or abilities.may([kind.needs])]


def _lines(reading: prose_readings.SentenceReading) -> Iterator[str]:
    """What a person reads of a sentence."""
    yield f"{reading.line:>4}  {reading.text}"
    rows = [("does", _describe_action(dict(step.action))) for step in reading.steps if step.action is not None]
    rows = [(title, f"{text} ({count} times)" if count > 1 else text) for (title, text), count in _count_rows(rows)]
    rows += [("may not", step.refused) for step in reading.steps if step.refused]
    if reading.needs_model:
        rows.append(("needs", "a model"))
    rows += [("names", f"{each.name}, {each.kind}, {_place(each.declared)}") for each in reading.names]
    for name, has in reading.permissions.items():
        rows.append(("takes", f"`{name}`, which its role {'has' if has else 'lacks'}"))
    rows += [("warning", f"{warning.message} [{warning.code}]") for warning in reading.warnings]
    yield from (f"      {title:<8} {text}" for title, text in rows)


def _count_rows(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], int]]:
    for row in dict.fromkeys(rows):
        yield row, rows.count(row)


def _describe_action(action: dict[str, object]) -> str:
    """An action by its name and fields, on one line."""
    intent = str(action.pop("intent", ""))
    action.pop("actionType", None)
    fields = json.dumps(action, ensure_ascii=False, default=str) if action else ""
    text = f"{intent} {fields}".strip()
    return text if len(text) <= WIDE else f"{text[: WIDE - 1]}…"


def _place(place: LabeledSpan) -> str:
    path = os.path.relpath(place.source.path, Path.cwd())
    return f"{path}:{place.source.position(place.span.start).line}"
