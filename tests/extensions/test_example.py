"""The example package, built and installed as a user does it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extensions.packages import Site
from tests.forks import CHECKOUT
from tests.limits import LIMIT_S
from tests.projects import Project

EXAMPLE = CHECKOUT / "examples" / "extension"
FILES = ("guarded.koi", "guarded.answers.json", "guard.txt")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("packages")
    words = [sys.executable, *PIP, "--no-build-isolation", "--target", str(folder), str(EXAMPLE)]
    subprocess.run(words, check=True, capture_output=True, timeout=LIMIT_S)
    return folder


@pytest.fixture
def example(project: Project, packages: Path) -> Site:
    """A project with the files of the example."""
    for name in FILES:
        shutil.copy(EXAMPLE / name, project.folder)
    return Site(project, packages)


def test_the_example_is_listed(example: Site) -> None:
    """`koi list extensions` shows what the package adds."""
    assert example.koi("list", "extensions").stdout == (
        "koi-guard  (koi-guard 1.0)\n"
        "  actions    listed_commands\n"
        "  hooks      before_action koi-guard.only_listed\n"
        "  commands   guard\n"
    )


def test_the_example_guards(example: Site) -> None:
    """A run lets the listed command pass, denies the other one, and counts it, in the journal, too."""
    (example.project.folder / "cache").mkdir()
    done = example.koi("run", "--allow", "shell", "--answers", "guarded.answers.json", "guarded.koi")
    (journal,) = (example.project.folder / ".koi" / "runs").glob("*.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()[1:]]

    assert done.stdout == 'Let pass: ["echo *","uptime"]\nthe machine\n\nDenied: 1\n'
    assert (example.project.folder / "cache").is_dir()
    assert [entry["state"] for entry in entries if entry["kind"] == "extension_state"] == [{"denied": 1}]


@pytest.mark.parametrize(
    ("command", "verdict"),
    [("uptime", "let pass"), ("rm -r cache", "denied"), ("echo a; rm -r cache", "denied"), ("echo", "denied")],
)
def test_the_example_has_a_command(example: Site, command: str, verdict: str) -> None:
    """`koi guard` says what is let pass; what joins commands is not."""
    assert example.koi("guard", *command.split(" ")).stdout == f"{command}: {verdict}\n"
