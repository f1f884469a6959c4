"""Options of the test-suite, and what many tests start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang import program
from tests.projects import Project


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--accept` writes what golden tests see as what they expect."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files; read the difference afterwards")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--accept"))


@pytest.fixture
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """An empty folder for programs; what is loaded from it is forgotten afterwards."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    yield Project(folder)
    program.unload()
