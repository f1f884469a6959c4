"""Bubblewrap that is installed on the machine, settings of the shell, and the suite, which does not notice them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from koi_lang.runtime.command_sandbox import find_sandbox
from koi_lang.settings import read_settings
from tests.environment import drop_settings
from tests.forks import CHECKOUT
from tests.search_path import HIDDEN, hide_bubblewrap, original_path


def test_no_test_finds_bubblewrap(tmp_path: Path) -> None:
    """In the environment of the suite it is not installed, whatever the machine has."""
    state = asyncio.run(find_sandbox(tmp_path, read_settings(tmp_path)))

    assert (None, True) == (state.sandbox, state.is_missing)


def test_no_test_finds_settings_of_the_shell() -> None:
    """Nor does what it starts."""
    assert {"CI", "TERM", "FORCE_COLOR", "COLUMNS", "MY_API_KEY", "https_proxy", "KOI_MODEL"}.isdisjoint(os.environ)


def test_settings_of_tests_stay() -> None:
    """What tells tests where a suite or a program lies, and how the machine reaches its network, is no setting."""
    kept = dict.fromkeys(
        ("PATH", "HOME", "LANG", "KOI_TEST262", "KOI_TESTS_ORIGINAL_PATH", "SSL_CERT_FILE", "CITY"), ""
    )
    environment = {**kept, "CI": "true", "KOI_MODEL": "m", "XDG_CONFIG_HOME": "/tmp"}
    drop_settings(environment)

    assert kept == environment


@pytest.mark.counterpart
def test_a_suite_that_is_started_with_bubblewrap_on_its_path(tmp_path: Path) -> None:
    """The tests above pass in a worker of it, too, and settings of the shell change nothing."""
    (tmp_path / HIDDEN).touch(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment = {name: text for name, text in environment.items() if not name.startswith("PYTEST_")}
    environment |= {
        "CI": "true",
        "TERM": "dumb",
        "FORCE_COLOR": "3",
        "COLUMNS": "57",
        "MY_API_KEY": "k",
        "KOI_MODEL": "openai/m",
    }
    words = ["-m", "pytest", "-n", "1", __file__, "-k", "test_no_test_finds"]
    suite = subprocess.run([sys.executable, *words], cwd=CHECKOUT, env=environment, capture_output=True, text=True)

    assert suite.returncode == 0, suite.stdout
    assert "2 passed" in re.sub(r"\x1b\[\d*m", "", suite.stdout)


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
