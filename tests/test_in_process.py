"""Commands inside the test process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import in_process


def test_what_a_command_forks_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that a command forks ends, and does not go on with what the test process does next."""
    marks = tmp_path / "marks"

    def command(words: list[str]) -> None:
        if (child := os.fork()) == 0:
            os._exit(3)
        assert 3 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(4)

    monkeypatch.setattr(in_process, "main", command)
    code = in_process.exit_code_of("run")
    with marks.open("a") as file:
        file.write(f"{code}\n")

    assert "4\n" == marks.read_text()
