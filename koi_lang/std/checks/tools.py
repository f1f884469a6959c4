"""A tool of a project: its command, and the parser of its report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koi_lang.std.checks.findings import CheckReport

# Stands in the words of a command, and in its variables, for the file of the report.
REPORT = "{report}"


@dataclass(frozen=True, slots=True)
class CheckTool:
    """A tool that checks a project.

    Attributes:
        name: what people call it.
        command: its words as the person is asked for them; the first one says where its program is.
        program: the file that is started; None where there is none.
        advice: how to install it.
        read: makes a report of what it has written and of the folder of the project, and raises UnreadableReportError;
            None where only the exit code is known.
        options: further words, which have it write a report.
        variables: of its environment, for the same.
        is_report_printed: whether it writes the report to stdout.
        counts_tests: whether its report is one of tests.
        suffixes: of the files that it is for.
        takes_files: whether it can be given some of them, and does not check the project as a whole in any case.
        whole: what stands in place of files for the whole of the project.
        missing: what it prints where a part of it is not installed.
        nothing: what it prints where there is nothing to check.
        usual: the words of the command in rules of people; empty for the command itself. Only for a tool that runs code
            of the project in any case, since the program is the project's, too.
    """

    name: str
    command: Sequence[str]
    program: str | None
    advice: str
    read: Callable[[bytes, Path], CheckReport] | None
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    is_report_printed: bool = False
    counts_tests: bool = False
    suffixes: tuple[str, ...] = ()
    takes_files: bool = True
    whole: Sequence[str] = ()
    missing: str = ""
    nothing: str = ""
    usual: Sequence[str] = ()

    def files_of(self, folder: Path, files: Sequence[str]) -> list[str]:
        """Those of some files that it is for; folders are for every tool."""
        return [file for file in files if file.endswith(self.suffixes) or (folder / file).is_dir()]


def find_program(folder: Path, word: str) -> str | None:
    """The file that the first word of a command stands for."""
    return str(folder / word) if "/" in word else shutil.which(word)


def find_own(folder: Path, places: Sequence[str], name: str) -> str:
    """How people write a program: where the project has it, else its name."""
    return next((f"{place}/{name}" for place in _present(folder, places, name)), name)


def _present(folder: Path, places: Sequence[str], name: str) -> Iterator[str]:
    yield from (place for place in places if (folder / place / name).is_file())
