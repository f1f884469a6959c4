"""A project, a home folder, and bubblewrap or a stand-in for it, as commands find them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.playbook.conftest import play as play
from tests.search_path import original_path

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
    monkeypatch.setenv("PATH", f"{found.bin}{os.pathsep}{os.environ['PATH']}")
    return found


@pytest.fixture(params=["the stand-in", "bubblewrap"])
def confined(request: pytest.FixtureRequest, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The same with something installed that confines: the stand-in, and bubblewrap where the machine has it."""
    path = original_path(os.environ)
    if request.param == "bubblewrap":
        (machine.bin / "bwrap").symlink_to(installed_bubblewrap(path))
    else:
        require_namespaces()
        machine.install(f'exec "{sys.executable}" -IS "{STAND_IN}" "$@"')
    monkeypatch.setenv("PATH", f"{machine.bin}{os.pathsep}{path}")
    return machine


@pytest.fixture
def outside() -> Iterator[tuple[Path, Path]]:
    """Files in `/etc` and `/tmp` that no other test names; whatever made them after all, they are removed."""
    paths = Path(f"/etc/koi-test-{os.getpid()}"), Path(f"/tmp/koi-test-{os.getpid()}")
    yield paths
    for path in paths:
        path.unlink(missing_ok=True)


@cache
def installed_bubblewrap(path: str) -> str:
    """Where it is; tests are skipped where it is not, or does not work."""
    program = shutil.which("bwrap", path=path)
    if program is None:
        pytest.skip("BUBBLEWRAP IS MISSING: what it confines is tested with a stand-in only")
    tried = subprocess.run([program, "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"BUBBLEWRAP DOES NOT WORK HERE: {tried.stderr}")
    return program


@cache
def require_namespaces() -> None:
    """Skip tests where namespaces of users are missing, without which the stand-in cannot confine anything."""
    program = shutil.which("unshare")
    if program is None or subprocess.run([program, "-Ur", "true"], capture_output=True).returncode != 0:
        pytest.skip("NAMESPACES ARE MISSING: what the sandbox confines is not tested here")
