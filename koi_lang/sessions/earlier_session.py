"""The journal of an earlier session as the start of a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from koi_lang.errors import JournalError
from koi_lang.events import EffortChanged, EventData, ModelChanged
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import SERVE, doubts, is_session, resuming_command, sessions_of
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.history import History, lasting_entries
from koi_lang.runtime.journal.reader import program_of
from koi_lang.runtime.replay.doubts import RETRY, SKIP, Decision, Doubt
from koi_lang.runtime.replay.policies import Mode
from koi_lang.sessions.branch_preview import back_to
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.known_history import (
    going_on,
    has_other_versions,
    is_changed,
    own_journal,
    readable,
    require_entry,
)
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.trust import Confirm, nobody_confirms, require_trust


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """Where a session goes back to.

    Attributes:
        at: the number of an entry; 0 for the beginning.
        answer: what the model, or the person, is to have answered there; None for what it was.
    """

    at: int
    answer: str | None = None


def read_recorded(
    ready: Prepared,
    run: str,
    back: BranchPoint | None = None,
    *,
    trusted: bool = False,
    confirm: Confirm = nobody_confirms,
) -> Continuation:
    """The start of a session: the end of a recorded one, or an entry of it, then with its own journal.

    An action that had begun and may not be done twice is not done again; the model is told so. A session of a service
    goes on with its program as that is by now: what was done stays as it was, and the journal notes the version.

    Args:
        back: None where all of it counts.
        trusted: whether it may be one that this machine has not signed.
        confirm: asks the person about one.

    Raises:
        JournalError: there is no such session, it goes on, it is of another program, or nobody trusts it.
        UsageError: there is no such entry, or no answer that could be another one.
    """
    note = ready.note
    path = _last(ready) if run == store.LAST else store.find(ready.folder, run)
    journal = readable(path, ready.folder, note) if back is None else own_journal(path, ready.folder, note)
    header = journal.header
    _require_session(path, header, ready)
    require_trust(journal, trusted=trusted, confirm=confirm)
    at = None if back is None else back.at
    if at:
        require_entry(at, journal)
    kept = lasting_entries(journal.entries)
    entries = kept if back is None else back_to(back.at, back.answer, kept)
    for doubt in doubts(entries):
        note(f"`{doubt.data.get('intent')}` had begun and its end is not known; it is not done again")
    is_other = is_changed(header, ready.entry)
    mode: Mode = "resume" if at is None and not is_other else "branch"
    if ready.is_service and (is_other or has_other_versions(journal)) and (back is None or back.answer is None):
        mode = "upgrade" if at is None else "upgrade_branch"
    decide = partial(_decide, note)
    history = History(entries, mode, ready.redactor(), decide, kept, is_of_changed_program=is_other)
    model = "" if ready.options.model else _find_option(header, entries, "model", ModelChanged)
    effort = "" if ready.options.effort else _find_option(header, entries, "effort", EffortChanged)
    words = () if ready.options.model else header.words
    # Calls end where they ended; the limits of a service are those of its settings.
    before = {} if ready.is_service else header.limits
    limits = {name: most for name, most in before.items() if name != "time" and name not in ready.options.limits}
    return replace(going_on(history, journal, at, words), model=model, effort=effort, limits=limits)


def _decide(note: Callable[[str], None], doubt: Doubt) -> Decision:
    """The decision about an effect in doubt where nobody is asked."""
    if doubt.why in ("opaque", "lost", "again"):
        note(f"{doubt.reason}; it is done again")
        return RETRY
    if doubt.why != "begun":
        note(f"{doubt.reason}; it is not done again")
    return SKIP


def _find_option(header: Header, entries: Sequence[JournalEntry], name: str, changed: type[EventData]) -> str:
    """The value of a session's option; empty where something else was chosen later."""
    if any(entry.kind == changed.type for entry in entries):
        return ""
    reader = click.Command("words", params=[click.Option([f"-{name[0]}", f"--{name}"])], add_help_option=False)
    how: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True, "resilient_parsing": True}
    given = reader.make_context("koi", list(header.words), **how).params.get(name)
    return "" if given in (None, "?") else str(given)


def _last(ready: Prepared) -> Path:
    """The journal of the latest session of a program. Raises JournalError."""
    if (path := next(sessions_of(ready.folder, ready.path), None)) is not None:
        return path
    raise JournalError(f"there is no earlier session of `{Path(ready.path).name}` in this folder")


def _require_session(path: Path, header: Header, ready: Prepared) -> None:
    if not is_session(header):
        help = f"`koi resume {header.run}` goes on with a run."
        raise JournalError(f"`{header.run}` is a run of `koi {' '.join(header.words[:1])}`, no session", help=help)
    program = program_of(path, header)
    # A service has one program of a name, wherever the folder, or a release of the program, is by now.
    is_same = program.name == Path(ready.path).name if ready.is_service else str(program) == ready.path
    if not is_same:
        where = " in a browser" if header.words[0] == SERVE else ""
        help = f"Go on with it{where}: `{resuming_command(header.words, program, header.run)}`."
        raise JournalError(f"`{header.run}` is a session of another program, `{program.name}`", help=help)
