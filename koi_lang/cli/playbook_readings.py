"""What is understood of a playbook, as `koi check --playbook` shows it sentence by sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from koi_lang.cli.ui.text import count_text
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.abilities import abilities_of
from koi_lang.compiler.rules.prose.playbooks import PlaybookText
from koi_lang.compiler.rules.prose.readings import SentenceReading, playbook_of, playbooks_in, read_playbook
from koi_lang.diagnostics import LabeledSpan, suggestion
from koi_lang.errors import UsageError
from koi_lang.program import build
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.system.text_width import clean

SAMPLES = "What only the running program knows stands as ⟨its name⟩, numbers as 1."
WIDE = 100


def show_playbook(file: str, handler: str = "", *others: str, as_json: bool) -> None:
    """Print what is understood of each sentence of a playbook. Raises UsageError."""
    if others:
        raise UsageError("`--playbook` takes one program", help="Write `koi check --playbook FILE AGENT.HANDLER`.")
    checked = build.check(file)
    program = AnalysedProgram(checked.analysed)
    readings = [
        reading
        for text in _texts(handler, program)
        for reading in read_playbook(text, program, _actions(text, program), checked.diagnostics)
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
