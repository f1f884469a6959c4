"""What tests of extensions start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.packages import Site
from tests.playbook.conftest import play
from tests.projects import Project

__all__ = ["play"]


@pytest.fixture
def site(project: Project, tmp_path: Path) -> Site:
    """A project with an empty folder for packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    return Site(project, folder)
