"""A temporary folder with programs, and commands run in it as a person would run them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import koi_lang
from tests import forks, in_process
from tests.limits import LIMIT_S


@dataclass(frozen=True, slots=True)
class Project:
    """A folder whose programs are compiled into a cache of its own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process: those of the test, and what makes it find this checkout."""
        return {**os.environ, "PYTHONPATH": str(forks.CHECKOUT), "PYTHONUTF8": "1"}

    def write(self, name: str, text: str) -> Path:
        """A file with a text; the indentation of the test is taken away."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8", newline="")
        return path

    def load(self, name: str, text: str) -> ModuleType:
        """The module of a file that is written first."""
        return self.load_file(self.write(name, text))

    def load_file(self, path: Path) -> ModuleType:
        """The module of a file."""
        return koi_lang.load(str(path))

    def koi(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a `koi` command: in this process if it runs no program, else in one that is forked."""
        variables = {**self.environment, **environment}
        if in_process.is_possible(words, stdin):
            return in_process.run(words, self.folder, variables, stdin)
        return forks.run(words, self.folder, variables, stdin, LIMIT_S)

    def fork(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a Python with some words (`-m MODULE …`, `-c TEXT`, a script), in a process that is forked."""
        return forks.run_python(words, self.folder, {**self.environment, **environment}, stdin)

    def python(self, script: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a Python script."""
        return self.run(sys.executable, "-c", textwrap.dedent(script), stdin=stdin, **environment)

    def fork_python(self, script: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a Python script, in a process that is forked and has imported `koi_lang`."""
        return self.fork("-c", textwrap.dedent(script), stdin=stdin, **environment)

    def run(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a command; texts are UTF-8."""
        return subprocess.run(
            words,
            cwd=self.folder,
            input=stdin,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=False,
        )
