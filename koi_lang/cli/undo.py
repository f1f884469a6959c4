"""`koi undo`."""

from __future__ import annotations

from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.trust import confirm_trust
from koi_lang.cli.ui.undo_report import nothing_text, outcome_lines, plan_lines
from koi_lang.errors import EXIT_FAILED, JournalError
from koi_lang.events import TreeKept
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import is_evaluation
from koi_lang.sessions.file_undo import undo_in_journal
from koi_lang.sessions.known_history import readable, require_entry
from koi_lang.sessions.trust import require_trust
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.system.text_width import clean

UNSEEN = (
    "commands of the run may have changed more than is stored, which stays: files outside of the project or of more "
    "than 5 MB, and those that `.gitignore` names or that have names of secrets"
)


@click.command()
@click.argument("run", metavar="[ID]", default=store.LAST, shell_complete=complete_run)
@click.option("--to", type=click.IntRange(1), metavar="ENTRY", help="Put back only what was changed behind an entry.")
@click.option("--dry-run", is_flag=True, help="Only show what would be put back.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--trust", is_flag=True, help="Also by a journal that this machine has not signed.")
def command(run: str, to: int | None, dry_run: bool, yes: bool, trust: bool) -> None:
    """Put back the files that the actions of a run have changed; ID may be the beginning of an id.

    Without ID it is the last run of this folder. What somebody else has changed since is left, and shown; the exit code
    is then 1.
    """
    folder = Path.cwd()
    journal = readable(store.find(folder, run), folder, _note)
    if is_evaluation(journal.header):
        help = f"Name one of its cases: `koi undo {journal.header.run}-1`."
        raise JournalError(f"`{journal.header.run}` is an evaluation, whose cases are runs of their own", help=help)
    require_trust(journal, trusted=trust, confirm=confirm_trust)
    if to is not None:
        require_entry(to, journal)
    settings = read_settings(folder)
    redact = Keys(settings).redactor()
    undo = RunUndo(folder, journal.header.run, journal.entries, settings)
    plan = undo.plan(to or 0)
    if any(entry.kind == TreeKept.type and entry.n > (to or 0) for entry in journal.entries):
        click.echo(UNSEEN, err=True)
    if not plan.paths:
        click.echo(nothing_text(journal.header.run, plan.entry), err=True)
        return
    for line in plan_lines(undo, plan, redact):
        click.echo(line)
    if dry_run:
        leave(EXIT_FAILED if plan.refusals else 0)
    if plan.to_change and not yes:
        click.confirm(f"Put back {len(plan.to_change):,} of {len(plan.paths):,} paths?", abort=True, err=True)
    done = undo_in_journal(undo, journal, plan, redact)
    for line in outcome_lines(journal.header.run, plan, done, redact):
        click.echo(line, err=True)
    leave(EXIT_FAILED if plan.refusals or any(each.refusal for each in done) else 0)


def _note(text: str) -> None:
    click.echo(clean(text), err=True)
