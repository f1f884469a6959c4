"""What tests of the standard library start from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools that this Python has stand first on the path, also where its environment is not activated."""
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
