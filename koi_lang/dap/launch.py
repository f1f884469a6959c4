"""The launch request of a client, resolved to a loaded program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang import settings
from koi_lang.dap.lines import ProgramLines, lines_of
from koi_lang.errors import JournalError, UsageError
from koi_lang.program import cache, loader
from koi_lang.program.files import absolute
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import require_run
from koi_lang.runtime.journal.reader import Journal, program_of
from koi_lang.sessions.known_history import is_changed, own_journal
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.sessions.trust import require_trust

# The words of a command line of `koi run` to what they say.
OptionsOf = Callable[[Sequence[str]], RunOptions]
TORN = "the last line of the journal is not whole, and counts for nothing"
CHANGED = "the program has changed since the run was recorded: what it does otherwise has no recorded result"


@dataclass(frozen=True, slots=True)
class DebuggedProgram:
    """A program that is ready to run, or to be replayed.

    Attributes:
        journal: of the recorded run that is debugged; None for a run that begins.
        notes: what the person is told before it starts, a line each.
        branching: makes ready what a branch of the recorded run runs.
        words: of the command line of such a branch.
        is_trusted: whether the person has said that the journal may be gone on with.
    """

    ready: Prepared
    lines: ProgramLines
    journal: Journal | None = None
    notes: tuple[str, ...] = ()
    branching: Callable[[], Prepared] | None = None
    words: tuple[str, ...] = ()
    is_trusted: bool = False

    def require_trust(self) -> None:
        """Raise UntrustedJournalError where the recorded run may not be gone on with."""
        if self.journal is not None:
            require_trust(self.journal, trusted=self.is_trusted)


def load(given: Mapping[str, Any], options_of: OptionsOf) -> DebuggedProgram:
    """Load the program to debug, in its folder and with its variables.

    Args:
        given: the fields of `launch`: `program` or `run`, and how it is run.
        options_of: what the words of the command line say that a recorded run was begun with.

    Raises:
        KoiError: it cannot be loaded, or a field is not usable.
    """
    _enter(given)
    notes: list[str] = []
    journal = _journal(str(given["run"]), notes.append) if given.get("run") else None
    file = _file(given) if journal is None else str(_recorded_program(journal))
    entry = loader.load_compiled(file)
    ready = prepare_program(file, entry, _options(given, file))
    if (own := ready.options.settings).files and not own.is_trusted:
        notes.append(settings.trust_in_folder(own).note)
    if not hasattr(ready.module, "main") and journal is None:
        raise UsageError(f"`{file}` runs nothing", help="Add a line like `run Agent.handler({})` at its end.")
    if journal is not None:
        notes += [
            *journal.faults,
            *([TORN] if journal.torn else []),
            *([CHANGED] if is_changed(journal.header, entry) else []),
        ]
    words = () if journal is None else (*journal.header.words, *_words(given))
    branching = partial(_prepare_branch, file, entry, words, options_of)
    lines = lines_of(ready.module, entry.files)
    return DebuggedProgram(ready, lines, journal, tuple(notes), branching, words, bool(given.get("trust")))


def _prepare_branch(file: str, entry: cache.CachedModule, words: Sequence[str], options_of: OptionsOf) -> Prepared:
    return prepare_program(file, entry, options_of(words))


def _enter(given: Mapping[str, Any]) -> None:
    """Be in the folder and the environment that are wanted. Raises UsageError."""
    folder, variables = given.get("cwd"), given.get("env") or {}
    if not isinstance(variables, dict):
        raise UsageError("`env` is no object of variables", help='Write `"env": {"NAME": "value"}`.')
    settings.set_variables({str(name): str(value) for name, value in variables.items() if value is not None})
    try:
        os.chdir(str(folder) if folder else ".")
    except OSError:
        raise UsageError(f"`cwd` is no folder that can be entered: `{folder}`") from None


def _file(given: Mapping[str, Any]) -> str:
    if not given.get("program"):
        raise UsageError("nothing is named to debug", help="Give `program`, a file, or `run`, the id of a run.")
    return absolute(str(given["program"]))


def _journal(run: str, note: Any) -> Journal:
    """The journal of a recorded run. Raises JournalError."""
    path = store.find(Path.cwd(), run)
    if store.is_running(path):
        raise JournalError(f"the run `{path.stem}` goes on", help="Wait until it has ended, or end it first.")
    journal = own_journal(path, Path.cwd(), note)
    require_run(journal.header)
    return journal


def _recorded_program(journal: Journal) -> Path:
    path = store.path_of(Path.cwd(), journal.header.run)
    file = program_of(path, journal.header)
    if not file.is_file():
        help = "Give the program its place back."
        raise JournalError(f"the program `{file}` of the recording does not exist", help=help)
    return file


def _options(given: Mapping[str, Any], file: str) -> RunOptions:
    """How it is run, with the words that `koi resume` goes on with. Raises UsageError."""
    payload = given.get("args") or {}
    if not isinstance(payload, dict):
        raise UsageError("`args` is no object", help="""Write `"args": {"name": "Ada"}`, what `run` passes on.""")
    words = ["run", file, *(["--args", json.dumps(payload)] if payload else []), *_words(given)]
    return RunOptions(
        payload=payload,
        model=given.get("model") or None,
        answers=given.get("answers") or None,
        rehearse=bool(given.get("rehearse")),
        allow=list(given.get("allow") or ()),
        words=words,
    )


def _words(given: Mapping[str, Any]) -> list[str]:
    """The words of a command line that say where answers come from, and what is allowed."""
    named = [("-m", given.get("model")), ("--answers", given.get("answers"))]
    named += [("--allow", rule) for rule in given.get("allow") or ()]
    words = [str(word) for option, value in named if value for word in (option, value)]
    return [*words, "--rehearse"] if given.get("rehearse") else words
