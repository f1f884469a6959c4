"""What tests of the standard library start from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.std.checking import CheckedProject


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools that this Python has stand first on the path, also where its environment is not activated."""
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckedProject:
    """An empty project, whose Python is forked."""
    commands = forks.command(tmp_path / "commands", "python").parent
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "project of a person"
    folder.mkdir()
    return CheckedProject(folder)
