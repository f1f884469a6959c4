"""`koi memory`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path

import click

from koi_lang import settings
from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.options import age_s
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.text import count_text
from koi_lang.diagnostics import suggestion
from koi_lang.errors import EXIT_FAILED, AgentError, UsageError
from koi_lang.runtime.guidance.note_index import NoteFilter, open_notes
from koi_lang.runtime.guidance.notes import FOLDER, KINDS, Note, NoteData, note_folders
from koi_lang.runtime.guidance.recall import as_data, told_notes
from koi_lang.runtime.host import visible
from koi_lang.runtime.journal import reader, store
from koi_lang.sessions.known_history import own_journal
from koi_lang.setup.keys.lookup import Keys
from koi_lang.std.code.access import Workplace
from koi_lang.std.code.changing import remove_file, write_file
from koi_lang.std.memory import find_alike, new_note, refuse_secret, says_the_same
from koi_lang.system.text_width import clean

MAX_LINE_CHARS = 100
OF_KIND = click.option(
    "--kind", "kinds", type=click.Choice(KINDS), metavar="KIND", multiple=True, help="Only notes of a kind."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")


@click.group()
def command() -> None:
    """List, search, add and remove the notes that agents with `uses memory` are told."""


@command.command("list")
@OF_KIND
@AS_JSON
def list_notes(kinds: Sequence[str], as_json: bool) -> None:
    """List the notes of this folder and your own, the newest first, and what is wrong with files.

    The exit code is 1 where a file is left out, or notes supersede each other in a circle.
    """
    with closing(open_notes(Path.cwd(), is_whole=True)) as index:
        found, old = index.newest(wanted=NoteFilter(kinds)), index.list_superseded()
        _print_notes([note.as_data() for note in found], as_json)
        if old and not as_json:
            click.echo(f"\nsuperseded: {', '.join(note.id for note in old)}")
        for problem in index.problems:
            click.echo(clean(problem), err=True)
        leave(EXIT_FAILED if index.problems else 0)


@command.command()
@click.argument("id", metavar="ID")
@AS_JSON
def show(id: str, as_json: bool) -> None:
    """Show the file of a note, and the note as it is read."""
    note, file = _require_note(id)
    click.echo(
        json.dumps(note.as_data(), indent=2, ensure_ascii=False) if as_json else f"{file}\n{note.as_file()}".rstrip()
    )


@command.command()
@click.argument("question", metavar="WORDS…", nargs=-1, required=True)
@click.option("--count", type=click.IntRange(1, 50), metavar="N", default=8, help="How many notes.  [default: 8]")
@OF_KIND
@AS_JSON
def search(question: Sequence[str], count: int, kinds: Sequence[str], as_json: bool) -> None:
    """Find notes by words, the best first, with the words that they share. The exit code is 1 where there are none."""
    with closing(open_notes(Path.cwd(), is_whole=True)) as index:
        found = [as_data(each) for each in index.search(" ".join(question), count, NoteFilter(kinds))]
    _print_notes(found, as_json)
    leave(0 if found else EXIT_FAILED)


@command.command()
@click.argument("text")
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", default="fact", help="What it is.  [default: fact]")
@click.option("--about", multiple=True, metavar="TOPIC", help="A path or topic that it is about.")
@click.option("--supersedes", metavar="ID", help="The note that it replaces.")
@click.option("--own", is_flag=True, help="Keep it among your own notes, which count in every folder.")
def add(text: str, kind: str, about: Sequence[str], supersedes: str | None, own: bool) -> None:
    """Keep a note in `.agents/memory` of this folder."""
    options = {"kind": kind, "about": list(about), "supersedes": supersedes}
    note = new_note(text, options, source="person", date=date.today().isoformat(), owner="person" if own else "project")
    if Keys(settings.read_settings()).redactor()(note.as_file()) != note.as_file():
        refuse_secret()
    other = find_alike(Workplace(Path.cwd(), None), note)
    if other is not None and says_the_same(note.text, other.text):
        click.echo(f"{other.id} says the same")
        return
    place, path = _place_of(note, f"{note.id}.md")
    try:
        place.root.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise AgentError(f"`{place.root}` is no folder that can be written", help="Make one there.") from error
    asyncio.run(write_file(place, path, note.as_file()))
    click.echo(note.id)
    if other is not None:
        click.echo(clean(f"`{other.id}` is similar: {other.text}"), err=True)


@command.command()
@click.argument("id", metavar="ID")
def forget(id: str) -> None:
    """Remove a note."""
    _remove([_require_note(id)[0]])
    with closing(open_notes(Path.cwd(), is_whole=True)) as index:
        other = index.find(id)
    if other is not None:
        click.echo(f"`{_require_note(id)[1]}` has this id, too, and takes its place", err=True)


@command.command()
@click.option("--older", metavar="TIME", default="180d", help="How long nobody was told of it.  [default: 180d]")
@click.option("--yes", is_flag=True, help="Do not ask.")
def gc(older: str, yes: bool) -> None:
    """Propose to remove notes of this folder that are superseded, or that no recorded run was told for long."""
    latest: dict[str, str] = {}
    for path in store.journals(Path.cwd()):
        entries = (line.entry for line in reader.lines(path) if line.entry is not None)
        for entry, notes in told_notes(entries):
            day = date.fromtimestamp(entry.ts).isoformat()
            latest |= {note["id"]: max(day, latest.get(note["id"], "")) for note in notes if note["owner"] == "project"}
    since = date.fromtimestamp(time.time() - age_s("--older", older)).isoformat()
    with closing(open_notes(Path.cwd(), is_whole=True)) as index:
        of_project = [note for note in index.newest() if note.owner == "project"]
        files = {note.id: Path.cwd() / FOLDER / note.name for note in of_project if not note.date}
        changed = {id: date.fromtimestamp(file.stat().st_mtime).isoformat() for id, file in files.items()}
        old = [note for note in of_project if max(changed.get(note.id, note.date), latest.get(note.id, "")) < since]
        proposed = [*old, *(note for note in index.list_superseded() if note.owner == "project")]
    if not proposed:
        click.echo(f"every note was told or written in the last {older}", err=True)
        return
    _print_notes([note.as_data() for note in proposed], as_json=False)
    if not yes:
        click.confirm(f"Remove {count_text(len(proposed), 'note')}?", abort=True, err=True)
    _remove(proposed)


@command.command()
@click.argument("run", metavar="[RUN]", default=store.LAST, shell_complete=complete_run)
@AS_JSON
def why(run: str, as_json: bool) -> None:
    """Show which notes the playbooks of a recorded run were told, and by which words of their payloads."""
    folder = Path.cwd()
    journal = own_journal(store.find(folder, run), folder, lambda line: click.echo(clean(line), err=True))
    rows = [(" / ".join(entry.path[:-1]), entry.agent, notes) for entry, notes in told_notes(journal.entries)]
    if as_json:
        data = [{"path": path, "agent": agent, "notes": notes} for path, agent, notes in rows]
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for path, _, notes in rows:
        click.echo(visible(path))
        _print_notes(notes, as_json=False)
    if not rows:
        click.echo("no playbook of this run was told a note", err=True)


def _print_notes(notes: Iterable[NoteData], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(list(notes), indent=2, ensure_ascii=False))
        return
    for note in notes:
        own = "your own" if note.get("owner") == "person" else ""
        about = ", ".join(filter(None, (note["kind"], note.get("date"), own)))
        line = clean(" ".join(str(note["text"]).split()))
        line = line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"
        words = f"\n    by: {clean(', '.join(note['words']))}" if note.get("words") else ""
        click.echo(f"{note['id']}  ({about})\n  {line}{words}")


def _require_note(id: str) -> tuple[Note, str]:
    """The note of an id, and its path as a person writes it. Raises UsageError."""
    with closing(open_notes(Path.cwd(), is_whole=True)) as index:
        note = index.find(id)
        known = [each.id for each in index.newest()]
    if note is None:
        help = suggestion(id, known, "note", "there is") if known else "`koi memory add` keeps one."
        raise UsageError(f"there is no note `{visible(id)}`", help=help)
    shown = {folder.owner: folder for folder in note_folders(Path.cwd())}
    return note, shown[note.owner].path_of(note.name)


def _place_of(note: Note, name: str) -> tuple[Workplace, str]:
    """Where the file of a note stands: a folder, and the path from there."""
    project, person = note_folders(Path.cwd())
    if note.owner == "person":
        return Workplace(person.path, None), name
    return Workplace(Path.cwd(), None), f"{project.shown}/{name}"


def _remove(notes: Iterable[Note]) -> None:
    for note in notes:
        asyncio.run(remove_file(*_place_of(note, note.name)))
        click.echo(f"removed {note.id}")
