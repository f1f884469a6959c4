"""A project, a home folder, and a stand-in for bubblewrap, as commands find them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.playbook.conftest import play as play

STAND_IN = Path(__file__).with_name("stand_in.py")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where commands run.

    Attributes:
        bin: a folder of PATH, in which `bwrap` is.
    """

    project: Path
    home: Path
    bin: Path

    def set_up(self, text: str) -> None:
        """Write `koi.toml`."""
        (self.project / "koi.toml").write_text(f"[shell]\n{text}\n")

    def install(self, script: str) -> None:
        """Have another program be `bwrap`."""
        (self.bin / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / "bwrap").chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A project and a home folder, and no bubblewrap."""
    found = Machine(tmp_path / "project", tmp_path / "home", tmp_path / "bin")
    for folder in (found.project, found.home, found.bin):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(found.home))
    others = [each for each in os.environ["PATH"].split(os.pathsep) if not (Path(each) / "bwrap").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join([str(found.bin), *others]))
    return found


@pytest.fixture(scope="session")
def _namespaces() -> None:
    """Namespaces of users, without which nothing can be confined."""
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system has no namespaces for everybody")


@pytest.fixture
def confined(machine: Machine, _namespaces: None) -> Machine:
    """The same with the stand-in installed."""
    machine.install(f'exec "{sys.executable}" -IS "{STAND_IN}" "$@"')
    return machine
