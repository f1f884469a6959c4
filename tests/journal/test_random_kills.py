"""Programs that are killed at random moments end as if nobody had disturbed them; for long with `random_kills`."""

from __future__ import annotations

import pytest

from tests import forks
from tests.projects import Project


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["races", "values", "fetch", "while", "starts", "background", "messages"])
def test_a_program_is_killed_at_random(project: Project, name: str) -> None:
    """The output is the same in the end, and no effect has taken place twice unless a doubt about it was settled."""
    words = ("-m", "tests.journal.random_kills", "--kills", "2", "--only", name)
    done = forks.run_python(words, forks.CHECKOUT, project.environment)

    assert 0 == done.returncode, done.stdout + done.stderr
