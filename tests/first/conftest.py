"""A machine of somebody who has just installed koi."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first.machine import Machine
from tests.projects import Project


@pytest.fixture
def machine(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Nothing is set up: no key, no keyring, no Ollama, empty folders for cache and configuration."""
    return Machine(project, tmp_path, monkeypatch)
