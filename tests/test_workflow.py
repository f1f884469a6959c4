"""What runs on GitHub and before commits: the commands that contributors are told, on the Pythons that are promised."""

from __future__ import annotations

import re
import shutil
import tomllib
from typing import Any

import pytest
import yaml

from tests.projects import Project
from tests.wheel import CHECKOUT

JOBS: dict[str, Any] = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
STEPS: list[dict[str, Any]] = [step for job in JOBS.values() for step in job["steps"]]
HOOKS: list[dict[str, Any]] = yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
PROJECT: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
# Commands of jobs that check a change, and those of the machine that they run on.
CHECKING = re.compile(r"ruff|mypy|koi fmt|python -m pytest|pip install -e")
SMOKE = [step["run"] for step in JOBS["smoke"]["steps"] if step.get("run", "").startswith("koi ")]


def test_jobs_run_what_contributors_run() -> None:
    """Each command that checks a change is one of the page for contributors."""
    page = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8")
    commands = [step["run"] for step in STEPS if CHECKING.match(step.get("run", ""))]

    assert len(commands) > 8
    assert [] == [command for command in commands if command not in page]


def test_actions_are_pinned() -> None:
    """An action of others is named with the tag of a version."""
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert [] == [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)]


def test_all_promised_pythons_are_tested() -> None:
    """The suite runs on each Python of the classifiers, of which the first is the oldest that is required."""
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))

    assert promised == JOBS["test"]["strategy"]["matrix"]["python"]
    assert f">={promised[0]}" == PROJECT["requires-python"]


@pytest.mark.parametrize("command", SMOKE)
def test_smoke_needs_nobody(command: str, project: Project) -> None:
    """What runs on other systems needs no key, no answer and no file beside the examples."""
    shutil.copytree(CHECKOUT / "examples", project.folder / "examples")
    done = project.koi(*command.split()[1:])

    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_run_what_contributors_run() -> None:
    """A hook before commits is a command of the page for contributors, but that it lays files out anew."""
    page = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8")
    entries = [hook["entry"].removesuffix(" --force-exclude") for repo in HOOKS for hook in repo["hooks"]]

    assert ["ruff check", "ruff format", "mypy --strict koi_lang", "koi fmt --check"] == entries
    assert [] == [entry for entry in entries if entry not in page]
