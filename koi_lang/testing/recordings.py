"""Recorded runs to cases: the program does what it did when the run was recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from koi_lang.errors import JournalError
from koi_lang.program import loader
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.journal.reader import read_header
from koi_lang.runtime.journal.writer import Writer
from koi_lang.settings import environment
from koi_lang.testing.cases import Broken, Case, CaseOutcome, Stopwatch, failed_outcome
from koi_lang.testing.recorded import Replayed, replay

DIFFERENT = "error: the program does something else than when this run was recorded"
UPDATE = "`koi test --update` takes what it does now as what is expected."
ANEW = "record the run anew with `koi run --record`: this recording does not lead to its end."


def collect(path: Path, update: bool) -> Sequence[Case]:
    """The run in a journal; none in files that hold something else."""
    try:
        read_header(path)
    except JournalError as error:
        is_journal = b'"journal":' in path.read_bytes()[:100]
        return [Broken(path, failed_outcome(error).message)] if is_journal else []
    return [Recording(path, update)]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run; with `update` what the program does now is recorded instead."""

    path: Path
    update: bool = False
    name: str = ""
    line: int = 1

    def run(self) -> CaseOutcome:
        """Run the program against the recorded answers."""
        watch = Stopwatch.start()
        printed: list[str] = []
        loader.unload()
        try:
            found = self._update(printed) if self.update else replay(self.path, printed.append)
        except (Exception, SystemExit) as error:  # becomes part of the outcome
            return failed_outcome(error, CaseOutcome(False, watch.seconds, "", tuple(printed)))
        finally:
            loader.unload()
        if found.is_same or (self.update and _is_complete(found)):
            return CaseOutcome(True, watch.seconds, "", tuple(printed))
        message = f"{DIFFERENT}\n{found.text()}\n  = help: {UPDATE if _is_complete(found) else ANEW}"
        return CaseOutcome(False, watch.seconds, message, tuple(printed))

    def _update(self, printed: list[str]) -> Replayed:
        """Replay into a new journal, which takes the place of this one when the program came to its end."""
        new = self.path.with_name(f".{self.path.name}.new")
        new.unlink(missing_ok=True)
        failures: list[JournalError] = []
        writer = Writer(new, read_header(self.path), redactor(environment()), failures.append)
        try:
            with closing(writer):
                found = replay(self.path, printed.append, [writer])
            if failures:
                raise failures[0]
            if _is_complete(found) and not found.is_same:
                os.replace(new, self.path)
        finally:
            new.unlink(missing_ok=True)
        return found


def _is_complete(found: Replayed) -> bool:
    """Whether the recording holds all that the program asks for now, so that it can be written anew."""
    new = [difference.now for difference in found.differences if difference.before is None and difference.now]
    return not found.error and not any("error" in now for now in new)
