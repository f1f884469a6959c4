"""Bubblewrap that is installed on the machine, and the suite, which does not notice it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from koi_lang.runtime.command_sandbox import find_sandbox
from koi_lang.settings import read_settings
from tests.forks import CHECKOUT
from tests.search_path import HIDDEN, hide_bubblewrap, original_path


def test_no_test_finds_bubblewrap(tmp_path: Path) -> None:
    """In the environment of the suite it is not installed, whatever the machine has."""
    state = asyncio.run(find_sandbox(tmp_path, read_settings(tmp_path)))

    assert (None, True) == (state.sandbox, state.is_missing)


@pytest.mark.counterpart
def test_a_suite_that_is_started_with_bubblewrap_on_its_path(tmp_path: Path) -> None:
    """The test above passes in a worker of it, too."""
    (tmp_path / HIDDEN).touch(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment = {name: text for name, text in environment.items() if not name.startswith("PYTEST_")}
    words = ["-m", "pytest", "-n", "1", f"{__file__}::{test_no_test_finds_bubblewrap.__name__}"]
    suite = subprocess.run([sys.executable, *words], cwd=CHECKOUT, env=environment, capture_output=True, text=True)

    assert suite.returncode == 0, suite.stdout
    assert "1 passed" in suite.stdout


def test_everything_else_of_a_folder_is_found(tmp_path: Path) -> None:
    """Only bubblewrap is missing from the new PATH, and what it was before is known."""
    for name in ("one/bwrap", "one/ls", "two/git"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(0o755)
    (tmp_path / "link").symlink_to("one")
    path = os.pathsep.join(str(tmp_path / each) for each in ("one", "missing", "link", "two"))
    environment = {"PATH": path}
    links = hide_bubblewrap(environment)
    assert links is not None
    with links:
        one, missing, link, two = map(Path, environment["PATH"].split(os.pathsep))

        assert one == link
        assert ["ls"] == os.listdir(one)
        assert (one / "ls").samefile(tmp_path / "one/ls")
        assert (missing, two) == (tmp_path / "missing", tmp_path / "two")
        assert path == original_path(environment)
        assert hide_bubblewrap(environment) is None
