"""`koi list skills`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from koi_lang.diagnostics import suggestion
from koi_lang.errors import EXIT_FAILED, EXIT_OK, UsageError
from koi_lang.runtime.guidance.skill_folders import SkillEntry, find_skills
from koi_lang.runtime.host import visible

# Whose a skill is, as a person is told.
OWNERS = {"project": "the project", "person": "your settings", "bundled": "Koi"}
ORDER = (
    "Of one name the nearest that can be used counts: .agents/skills, .koi/skills, your settings, then what Koi brings."
)


@click.command()
@click.option("--why", "name", metavar="NAME", help="Say where a skill comes from, and why others do not count.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def command(name: str | None, as_json: bool) -> None:
    """List the skills that agents with `uses skills` are offered in this folder, and those that cannot be used.

    With `--why` the exit code is 1 where no skill of the name can be used.
    """
    found = find_skills(Path.cwd())
    if name is not None:
        found = _require_known(name, found)
    if as_json:
        click.echo(json.dumps([_as_data(entry) for entry in found], indent=2, ensure_ascii=False))
    elif name is not None:
        click.echo("\n".join(_explain(name, found)))
    else:
        click.echo("\n".join(_list_entries(found)))
    is_missing = name is not None and not any(entry.counts for entry in found)
    sys.exit(EXIT_FAILED if is_missing else EXIT_OK)


def _require_known(name: str, found: Sequence[SkillEntry]) -> list[SkillEntry]:
    """The skills of a name. Raises UsageError where there are none."""
    known = [entry for entry in found if entry.place.name == name]
    if not known:
        help = suggestion(name, sorted({entry.place.name for entry in found}), "skill")
        raise UsageError(f"there is no skill `{visible(name)}`", help=help)
    return known


def _as_data(entry: SkillEntry) -> dict[str, Any]:
    place = {"name": entry.place.name, "origin": entry.place.origin, "path": entry.place.path}
    about = {"description": entry.description, "problem": entry.problem, "notes": list(entry.notes)}
    return {**place, **about, "counts": entry.counts}


def _list_entries(found: Sequence[SkillEntry]) -> Iterator[str]:
    """What is offered, by name; then what is not."""
    for entry in sorted((entry for entry in found if entry.counts), key=lambda entry: entry.place.name):
        yield f"{entry.place.name}  ({entry.place.path})\n  {entry.description}"
    if others := [entry for entry in found if entry.problem]:
        yield "\nnot offered:"
        yield from (f"  {visible(entry.place.name)} ({entry.place.path}): {entry.problem}" for entry in others)


def _explain(name: str, found: Sequence[SkillEntry]) -> Iterator[str]:
    """Which skill of a name counts, and why the others do not."""
    winner = next((entry for entry in found if entry.counts), None)
    if winner is None:
        yield f"{visible(name)}: no skill of this name can be used here"
    else:
        yield f"{winner.place.name}: {winner.description}"
        yield f"from {_owner_of(winner)}"
        yield from (f"note: {note}" for note in winner.notes)
    for entry in found:
        if entry.problem:
            yield f"not from {_owner_of(entry)}: {entry.problem}"
        elif not entry.counts:
            yield f"instead of {_owner_of(entry)}"
    yield ORDER


def _owner_of(entry: SkillEntry) -> str:
    return f"{OWNERS[entry.place.origin]}, `{entry.place.path}`"
