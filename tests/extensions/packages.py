"""Packages as an installer leaves them: a module, and a folder that describes it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests import forks
from tests.projects import LIMIT_S, Project


@dataclass(frozen=True, slots=True)
class Site:
    """A folder that Python searches for packages, and a project whose commands see them."""

    project: Project
    folder: Path

    def install(self, name: str, module: str, *, extension: str = "", version: str = "1.0") -> None:
        """A package with one module, whose function `extend_koi` is an extension; named as the package by default."""
        known = name.replace("-", "_")
        about = self.folder / f"{known}-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text(f"[koi.extensions]\n{extension or name} = {known}:extend_koi\n")
        (self.folder / f"{known}.py").write_text(textwrap.dedent(module))

    def koi(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The outcome of a `koi` command, in a process that is forked."""
        environment = {**self.project.environment, "PYTHONPATH": self.path}
        return forks.run(words, self.project.folder, environment, stdin, LIMIT_S)

    def python(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The outcome of a Python that finds the packages."""
        return self.project.run(sys.executable, *words, stdin=stdin, PYTHONPATH=self.path)

    @property
    def path(self) -> str:
        """Where Python searches for packages."""
        return os.pathsep.join([str(self.folder), str(forks.CHECKOUT)])
