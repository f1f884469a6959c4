"""Scripts that are killed go on without asking any agent again that had answered."""

from __future__ import annotations

import pytest

from tests import forks
from tests.projects import Project

NAMES = ("audit", "review", "research", "tournament", "migrate", "retries")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("step", [43, 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_script_goes_on(project: Project, name: str, step: int) -> None:
    """Killed behind an entry of its journal and resumed, it has the value of Node, and one answer for each task."""
    words = ("-m", "tests.workflows.killing", name, str(step))
    done = forks.run_python(
        words, project.folder, {**project.environment, "PYTHONPATH": str(forks.CHECKOUT)}, limit_s=600
    )

    assert ("", 0) == (done.stdout, done.returncode), done.stderr
