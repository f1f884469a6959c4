"""A project to be looked at."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project beside the settings and the cache of a person."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "person"))
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"
