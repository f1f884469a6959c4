"""The journal of a run: its writer, its header, and the secrets kept out of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from koi_lang.errors import JournalError, SettingsError
from koi_lang.events import CallEnded, EffectFailed, Event, HandlerFailed, HandlerStarted
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.history import RESUMED, History, ProgramFit
from koi_lang.runtime.journal.line_ends import Signer
from koi_lang.runtime.journal.reader import End
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.run import Run
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.trust import service_signer, signer
from koi_lang.version import __version__

# What a note that a session goes on has of the program, where that is another one than before.
VERSION = "version_hash"


@contextmanager
def recording(run: Run, ready: Prepared, going: Continuation) -> Iterator[Writer | None]:
    """A context in which a journal is written; gives its writer, None where it is not wanted, or must be left out.

    Raises:
        JournalError: it must be written and cannot be.
    """
    options = ready.options
    if options.record is False:
        yield None
        return
    try:
        writer = _writer(run, ready, going)
    except JournalError as error:
        if options.record or going.history is not None:
            raise
        run.host.log(f"warning: {error.message}")
        yield None
        return
    if options.verbose or options.debug:
        run.host.log(f"journal: {writer.path}")
    history, begin = going.history, partial(_note_version, writer, ready, going)
    run.events.subscribe(
        writer if history is None or history.fit is None else FittedRecording(writer, run, history, history.fit, begin)
    )
    is_noted = (
        history is not None and history.is_of_changed_program and not (history.policy.shows_again or options.quiet)
    )
    if history is not None and history.fit is None and is_noted:
        run.events.subscribe(ChangeNote(history, run.host.log))
    try:
        with nullcontext() if going.live is None else going.live.serve(run, writer.path):
            yield writer
    finally:
        writer.close()


def _writer(run: Run, ready: Prepared, going: Continuation) -> Writer:
    options = ready.options
    words = tuple(going.words) or tuple(options.words)
    by: Signer | None = None
    try:
        by = options.settings.once(service_signer) if ready.is_service else signer(ready.folder, words)
    except SettingsError as error:  # resuming then needs a person's consent
        if not options.quiet:
            run.host.log(f"warning: the journal is not signed: {error.message}")
    begin: Header | End
    if going.end is not None:
        begin = going.end
    else:
        path, folder = Path(ready.path), ready.folder.absolute()
        # A service names its program from its folder, which may be elsewhere tomorrow.
        is_inside = ready.is_service and path.is_relative_to(folder)
        program = path.relative_to(folder).as_posix() if is_inside else ready.path
        identity = (run.id, time.time(), program, ready.version, __version__)
        limits = {**options.limits_here, **going.limits}
        header = Header(*identity, words, options.payload, limits, run.seed, going.parent, run.today)
        begin = replace(header, case=going.case)
    followers = [*going.followers] if going.live is None else [*going.followers, going.live.follow]
    writer = Writer(path_of(ready.folder, begin.run), begin, ready.redactor(), run.stop, by, followers)
    if going.end is not None and (going.history is None or going.history.fit is None):
        writer.note(RESUMED, **({"words": list(going.more), "limits": options.limits_here} if going.more else {}))
    return writer


def _note_version(writer: Writer, ready: Prepared, going: Continuation) -> None:
    """Have the journal say with which version of the program it goes on."""
    if going.end is not None:
        writer.note(RESUMED, **{VERSION: ready.version})


class ChangeNote:
    """A consumer that says once, in a branch, that the program tells something else than the earlier run had told."""

    def __init__(self, history: History, note: Callable[[str], None]) -> None:
        self._history = history
        self._note = note
        self._is_done = False

    def __call__(self, event: Event) -> None:
        """Compare an event, unless another one was different; what follows from a new answer may be."""
        misfit = "" if self._is_done else self._history.misfit_of(event)
        self._is_done = self._is_done or misfit != ""
        if misfit:
            self._note(f"note: the program has changed since: {misfit}")


class FittedRecording:
    """The recording of a session whose program has changed: nothing is written before it is known to fit.

    Args:
        history: what was recorded, which the program has to tell again.
        begin: is called before the first entry.
    """

    def __init__(self, writer: Writer, run: Run, history: History, fit: ProgramFit, begin: Callable[[], None]) -> None:
        self._writer = writer
        self._run = run
        self._history = history
        self._fit = fit
        self._begin = begin
        self._has_begun = False
        self._failures: list[Event] = []

    def __repr__(self) -> str:
        return "journal"

    def __call__(self, event: Event) -> None:
        """Write an event, unless it is one of calls that had ended, or of a program that does not fit."""
        if self._fit.error is not None or self._stops(self._history.misfit_of(event) or ""):
            return
        if not event.recalled and not self._has_begun:
            if not self._is_new(event):
                return
            self._has_begun = True
            self._begin()
            for failure in self._failures:
                self._writer(failure)
        self._writer(event)

    def _is_new(self, event: Event) -> bool:
        """Whether an event shows that a session goes on; a call that only fails now has never come to where it was."""
        if not self._fit.is_whole and (self._fit.call is None or self._fit.has_ended):
            return False
        if isinstance(event.data, HandlerFailed | EffectFailed):
            self._failures.append(event)
            return False
        data = event.data
        if self._fit.call is None:
            return True
        if isinstance(data, CallEnded) and not (data.ok or data.as_data().get("aborted")):
            return not self._stops(f"`{data.name}` fails before it is where it was")
        # What a client does meanwhile says nothing of how far the call has come.
        is_of_call = self._history.has(HandlerStarted.type, event.path[:1]) and self._fit.is_in_call(event.path)
        return not (is_of_call and self._stops(self._history.untold_before(sys.maxsize)))

    def _stops(self, misfit: str) -> bool:
        """Whether the run ends here, since it does not fit."""
        if misfit:
            self._run.stop(self._fit.fail(misfit))
        return bool(misfit)
