"""The files of a recorded run put back, which its journal is told."""

from __future__ import annotations

from collections.abc import Callable

from koi_lang.errors import JournalError
from koi_lang.events import FileRestored
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.file_changes.undo_plan import UndoPlan
from koi_lang.runtime.file_changes.undoing import UndoneFile
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer


def undo_in_journal(undo: RunUndo, journal: Journal, plan: UndoPlan, redact: Callable[[str], str]) -> list[UndoneFile]:
    """Put back what a plan says, and write that to the journal of its run; gives what came of it.

    Args:
        journal: of the run, read with its signatures, and written by nobody.

    Raises:
        KoiError: nothing can be put back, or the journal cannot be written.
    """
    run = journal.header.run
    writer = Writer(path_of(undo.project, run), journal.end, redact, _refuse)
    try:
        note = lambda event: writer.note(FileRestored.type, **event.as_data())  # noqa: E731 - one line of glue
        return undo.carry_out(plan, note)
    finally:
        writer.close()


def _refuse(error: JournalError) -> None:
    raise error
