"""The parent of a branch: the run it starts from, and its known entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from koi_lang.errors import JournalError, UsageError
from koi_lang.events import Event, ModelAnswered
from koi_lang.program import cache
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import is_of_python, require_run
from koi_lang.runtime.journal.chains import effects_left, known_entries
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.history import History
from koi_lang.runtime.journal.reader import Journal, read_header
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.replay.doubts import Decide
from koi_lang.sessions.known_history import is_changed, readable

# What began a run that the command line can repeat.
RUN = ("run",)


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The run that a program goes on from, and those before it whose answers it had not come to.

    Attributes:
        journals: the run itself first, then the one that it is a branch of, and so on.
    """

    journals: tuple[Journal, ...]

    @property
    def header(self) -> Header:
        """Of the run itself."""
        return self.journals[0].header

    @property
    def entries(self) -> list[JournalEntry]:
        """The valid entries for a further branch."""
        return known_entries(journal.entries for journal in self.journals)

    def history(self, entry: cache.CachedModule, redact: Callable[[str], str], decide: Decide) -> History:
        """The known state of a program that is run again."""
        return History(
            self.entries,
            "rerun",
            redact,
            decide,
            effects_left(journal.entries for journal in self.journals),
            is_of_changed_program=is_changed(self.header, entry),
        )


def find_earlier(folder: Path, run: str, program: str, entry: cache.CachedModule) -> Path:
    """The journal of an earlier run of a program.

    Args:
        run: its id, the beginning of one, or `last`, which is the last run of this program.
        program: absolute path of its file.

    Raises:
        JournalError: there is none, or its run cannot be repeated.
        UsageError: it is of another program.
    """
    if run == store.LAST:
        return _last(folder, program, entry)
    path = store.find(folder, run)
    header = read_header(path)
    require_run(header)
    name = Path(program).name
    if header.words[:1] != RUN:
        by = "a Python program" if is_of_python(header.words) else f"`koi {' '.join(header.words[:1])}`"
        raise JournalError(f"`{header.run}` is a run of {by}", help=f"Begin with `koi run {name}`.")
    if not is_of_program(header, program, entry):
        help = f"`koi run {name} --since last` goes on from the last run of `{name}`."
        raise UsageError(f"`{header.run}` is a run of another program, `{Path(header.program).name}`", help=help)
    return path


def is_of_program(header: Header, program: str, entry: cache.CachedModule) -> bool:
    """Whether a run is of a program: of its file, of one that has its content, or of one of its name that has moved."""
    if header.program == program or header.hash == entry.version():
        return True
    before = Path(header.program)
    return before.name == Path(program).name and not before.exists()


def _last(folder: Path, program: str, entry: cache.CachedModule) -> Path:
    for path in reversed(store.journals(folder)):
        with suppress(JournalError):  # one that cannot be read is none
            header = read_header(path)
            if header.words[:1] == RUN and is_of_program(header, program, entry):
                return path
    name = Path(program).name
    help = f"Begin with `koi run {name}`."
    raise JournalError(f"there is no earlier run of `{name}` in this folder", help=help)


def read_earlier(
    path: Path, folder: Path, note: Callable[[str], None], require_trust: Callable[[Journal], None]
) -> EarlierRuns:
    """A run, and those that it is a branch of, up to the first one that has come to its end.

    Args:
        note: is told what the journals lack, a line each.
        require_trust: raises JournalError where a journal is not to be gone on with.

    Raises:
        JournalError: the run goes on, or cannot be read.
    """
    found = []
    for each in _chain(path, folder):
        journal = readable(each, folder, note)
        require_trust(journal)
        found.append(journal)
    return EarlierRuns(tuple(found))


def _chain(path: Path, folder: Path) -> Iterator[Path]:
    known: set[Path] = set()
    while path not in known:
        yield path
        known.add(path)
        summary = summarise(path)
        parent = store.path_of(folder, summary.header.parent[0]) if summary.header.parent else path
        if summary.state == "ok" or not parent.exists():
            return
        path = parent


class ReuseMeter:
    """Counts the reused answers of models in a branch, and the new ones, with their cost.

    Attributes:
        run: id of the branch; empty before it has begun.
    """

    def __init__(self) -> None:
        self.run = ""
        self.taken_over = self.asked = 0
        self.saved, self.spent = UsageTotals(), UsageTotals()

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        self.run = event.run
        if event.recalled:
            self.saved.add(replace(event, recalled=False))
        else:
            self.spent.add(event)
        if isinstance(event.data, ModelAnswered):
            self.taken_over += event.recalled
            self.asked += not event.recalled
