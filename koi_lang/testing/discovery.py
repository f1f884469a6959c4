"""Paths to the cases in them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from koi_lang.diagnostics import suggestion
from koi_lang.errors import JournalError, UsageError
from koi_lang.program.files import inside
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.journal.reader import program_of, read_header
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.model_calls.frozen_plans import FOLDER
from koi_lang.settings import environment
from koi_lang.testing import blocks
from koi_lang.testing.cases import Broken, Case, CaseAttempt, CaseOutcome, Collect, failed_outcome, relative_path
from koi_lang.testing.recorded import Replayed, replay

DIFFERENT = "error: the program does something else than when this run was recorded"
UPDATE = "`koi test --update` takes what it does now as what is expected."
ANEW = (
    "this recording does not lead to the end of the run. To record it again, remove `{path}` and write "
    "`{run}`, then `koi runs export last -o {path}`."
)


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
    """A recorded run; with `update` it is recorded again."""

    path: Path
    update: bool = False
    name: str = ""
    line: int = 1

    def run(self) -> CaseOutcome:
        """Run the program against the recorded answers."""
        attempt = CaseAttempt()
        printed: list[str] = []
        with attempt.alone():
            found = self._update(printed) if self.update else replay(self.path, printed.append)
        if attempt.error is not None:
            return failed_outcome(attempt.error, CaseOutcome(False, attempt.seconds, "", tuple(printed)))
        if found.is_same or (self.update and _is_complete(found)):
            return CaseOutcome(True, attempt.seconds, "", tuple(printed))
        help = UPDATE
        if not _is_complete(found):
            header = read_header(self.path)
            words = header.words if header.words[:1] == ("run",) else ("run", str(program_of(self.path, header)))
            help = ANEW.format(path=shlex.quote(relative_path(self.path)), run=shlex.join(["koi", *words]))
        message = f"{DIFFERENT}\n{found.text()}\n  = help: {help}"
        return CaseOutcome(False, attempt.seconds, message, tuple(printed))

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


TESTS = ".test.koi"
# Recorded runs are found under folders of this name.
RECORDED, RECORDED_UNDER = ".jsonl", "tests"
PLAN = ".json"
# Between a file and the name of one of its cases.
NAMED = "::"
COLLECTORS: Mapping[str, Collect] = {".koi": blocks.collect, ".jsonl": collect}


def find(paths: Iterable[str], *, update: bool = False, collectors: Mapping[str, Collect] = COLLECTORS) -> list[Case]:
    """The cases in files and folders, each file once, in the order of the paths.

    Args:
        paths: a file is taken whatever it is called; in a folder, `*.test.koi` and recorded runs under `tests`;
            `a.test.koi::adds` is one case of a file.
        update: whether recorded runs write anew what they expect.
        collectors: how cases are found in a file, by the ending of its name.

    Raises:
        UsageError: there is no such path or case, or the file is of no kind that holds tests.
    """
    wanted: dict[Path, set[str]] = {}
    for path in paths:
        whole, _, name = (path, "", "") if Path(path).exists() else path.partition(NAMED)
        for file in _files(Path(whole), collectors):
            wanted.setdefault(file, set()).add(name)
    return [
        case for file, names in wanted.items() for case in _select_names(collectors[file.suffix](file, update), names)
    ]


def _select_names(cases: Sequence[Case], names: Collection[str]) -> Sequence[Case]:
    """The cases of a file that have these names; all where one of them is empty, and a file that cannot be read."""
    known = {case.name for case in cases}
    if "" in names or known == {""}:
        return cases
    for name in names:
        if name not in known:
            help = suggestion(name, sorted(known), "test")
            raise UsageError(f"no test of the file is called `{name}`", help=help)
    return [case for case in cases if case.name in names]


def _files(path: Path, suffixes: Collection[str]) -> Sequence[Path]:
    if path.is_dir():
        return [file for file in sorted(filter(_is_test, inside(path.resolve(), ""))) if file.suffix in suffixes]
    if not path.exists():
        raise UsageError(f"there is no file or folder `{path}`", help="name files or folders that hold tests.")
    if path.suffix not in suffixes:
        known = ", ".join(f"`*{suffix}`" for suffix in suffixes)
        raise UsageError(f"`{path}` holds no tests", help=f"tests are in {known}.")
    return [path.resolve()]


def _is_test(file: Path) -> bool:
    if file.suffix == PLAN:
        return file.parent.name == FOLDER and b'"koi_plan"' in file.read_bytes()[:100]
    return file.name.endswith(TESTS) or (file.suffix == RECORDED and RECORDED_UNDER in file.parts)
