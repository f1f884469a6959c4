"""`koi explain-playbook`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_handler, complete_program
from koi_lang.cli.ui.text import count_text
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.abilities import abilities_of
from koi_lang.compiler.rules.prose.playbooks import PlaybookText
from koi_lang.compiler.rules.prose.readings import SentenceReading, playbook_of, playbooks_in, read_playbook
from koi_lang.diagnostics import Diagnostic, LabeledSpan, suggestion
from koi_lang.errors import UsageError
from koi_lang.program import build
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.system.text_width import clean

SAMPLES = "What only the running program knows stands as ⟨its name⟩, numbers as 1."
WIDE = 100


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.argument("handler", required=False, metavar="[AGENT.HANDLER]", shell_complete=complete_handler)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list, an object for each sentence.")
def command(file: str, handler: str | None, as_json: bool) -> None:
    """Show what is understood of the playbook AGENT.HANDLER of FILE, sentence by sentence.

    For each: what the rehearsal would do or that it needs a model, names with their declarations, permissions with
    whether the role has them, and warnings. Nothing is run, and no model is asked.
    """
    checked = build.check(file)
    program = AnalysedProgram(checked.analysed)
    texts = _texts(handler or "", program)
    readings = [
        reading
        for text in texts
        for reading in read_playbook(text, program, _actions(text, program), checked.diagnostics)
    ]
    if as_json:
        click.echo(json.dumps([reading.as_data() for reading in readings], indent=2, ensure_ascii=False, default=str))
        return
    for reading in readings:
        click.echo(clean("\n".join(_lines(reading))))
    click.echo(f"{_summary(readings)} {SAMPLES}", err=True)


def _texts(name: str, program: AnalysedProgram) -> list[PlaybookText]:
    """The texts of the playbook that is meant, the only one without a name. Raises UsageError."""
    known = playbooks_in(program)
    if not name and len(known) == 1:
        name = known[0]
    if not name:
        listed = ", ".join(f"`{each}`" for each in known) or "it has no playbook"
        raise UsageError("no handler is named", help=f"Name one with a playbook: {listed}.")
    agent, _, event = name.partition(".")
    texts = playbook_of(agent, event, program)
    if not texts:
        raise UsageError(f"there is no playbook `{name}`", help=suggestion(name, known, "playbook"))
    return texts


def _actions(text: PlaybookText, program: AnalysedProgram) -> list[str]:
    """The built-in actions that the role of the agent permits."""
    abilities = program.for_file(abilities_of, text.file)[text.agent]
    return [kind.name for kind in all_actions() if kind.needs is None or abilities.may([kind.needs])]


def _lines(reading: SentenceReading) -> Iterator[str]:
    """What a person reads of a sentence."""
    yield f"{reading.line:>4}  {reading.text}"
    rows = [("does", _describe_action(dict(step.action))) for step in reading.steps if step.action is not None]
    rows = [(title, f"{text} ({count} times)" if count > 1 else text) for (title, text), count in _count_rows(rows)]
    rows += [("may not", step.refused) for step in reading.steps if step.refused]
    if reading.needs_model:
        rows.append(("needs", "a model"))
    rows += [("names", f"{each.name}, {each.kind}, {_place(each.declared)}") for each in reading.names]
    rows += [("takes", f"`{name}`, {_tell_permission(has)}") for name, has in reading.permissions.items()]
    rows += [("warning", _describe(warning)) for warning in reading.warnings]
    yield from (f"      {title:<8} {text}" for title, text in rows)


def _count_rows(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], int]]:
    for row in dict.fromkeys(rows):
        yield row, rows.count(row)


def _describe_action(action: dict[str, object]) -> str:
    """An action by its name and fields, on one line."""
    intent = str(action.pop("intent", ""))
    action.pop("actionType", None)
    fields = json.dumps(action, ensure_ascii=False, default=str) if action else ""
    told = f"{intent} {fields}".strip()
    return told if len(told) <= WIDE else f"{told[: WIDE - 1]}…"


def _tell_permission(has: bool) -> str:
    return "which its role has" if has else "which its role lacks"


def _describe(warning: Diagnostic) -> str:
    return f"{warning.message} [{warning.code}]"


def _place(place: LabeledSpan) -> str:
    path = os.path.relpath(place.source.path, Path.cwd())
    return f"{path}:{place.source.position(place.span.start).line}"


def _summary(readings: Sequence[SentenceReading]) -> str:
    needing = sum(reading.needs_model for reading in readings)
    return f"{count_text(len(readings), 'sentence')}, {needing or 'none'} of which a model is needed for."
