"""Commands of `koi` inside the test process, in a folder of their own."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from unittest import mock

from koi_lang.program import loader
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import read
from tests.in_process import exit_code_of
from tests.projects import Project


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Commands:
    """A project whose programs are run, resumed and replayed in this process."""

    project: Project

    @property
    def folder(self) -> Path:
        """Where the programs are."""
        return self.project.folder

    def __call__(self, *words: str, stdin: str = "") -> Done:
        """The outcome of `koi` with some words."""
        loader.unload()
        out, err = io.StringIO(), io.StringIO()
        given = mock.patch.object(sys, "argv", ["koi", *words])
        with chdir(self.folder), given, _typed(stdin), redirect_stdout(out), redirect_stderr(err):
            code = exit_code_of(*words)
        return Done(code, out.getvalue(), err.getvalue())

    def record(self, text: str, answers: Any = None, *words: str, stdin: str = "") -> Done:
        """The outcome of a run of a program, written to `main.koi`, with the answers of its model."""
        self.project.write("main.koi", text)
        if answers is not None:
            self.project.write("answers.json", json.dumps(answers))
            words = ("--answers", "answers.json", *words)
        return self("run", *words, "main.koi", stdin=stdin)

    def journals(self) -> list[Path]:
        """The journals, the latest last."""
        return store.journals(self.folder)

    @property
    def journal(self) -> Path:
        """The latest journal."""
        return self.journals()[-1]

    def entries(self, path: Path | None = None) -> tuple[JournalEntry, ...]:
        """What is in a journal, the latest one if none is named."""
        return read(path or self.journal).entries

    def cut(self, n: int, torn: bytes = b"") -> None:
        """Leave the first entries of the latest journal, as if the run had been killed behind them."""
        lines = self.journal.read_bytes().splitlines(keepends=True)
        self.journal.write_bytes(b"".join(lines[: n + 1]) + torn)

    def cut_behind(self, kind: str, label: str = "", nth: int = 1) -> JournalEntry:
        """The same behind the n-th entry of a kind whose path ends in a label, which is given."""
        found = [e for e in self.entries() if e.kind == kind and (not label or (e.path and e.path[-1] == label))]
        self.cut(found[nth - 1].n)
        return found[nth - 1]

    def lines(self, name: str) -> list[str]:
        """The lines of a file; none when there is no file."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@contextmanager
def _typed(text: str) -> Iterator[None]:
    """Standard input that holds a text, also for those who read from its descriptor."""
    kept = os.dup(0)
    with TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)
