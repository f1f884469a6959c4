"""Errors of the end of input at commands, and closed streams."""

from __future__ import annotations

import sys

import pytest

from tests.projects import Project


def test_an_end_of_something_else_is_no_end_of_input(project: Project) -> None:
    """An `EOFError` from anywhere is told as the error that it is, not as somebody's wish to do nothing."""
    script = """
    import sys
    from unittest import mock
    from koi_lang import cli
    from koi_lang.cli import version
    with mock.patch.object(version.command, "callback", side_effect=EOFError("half a file")):
        cli.main(["version"])
    """
    done = project.python(script)

    assert (1, "") == (done.returncode, done.stdout)
    assert "half a file" in done.stderr


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("run main.koi >&-", (0, "", "")),
        ("run main.koi 2>&-", (0, "ready\n", "")),
        ("run main.koi <&-", (0, "ready\n", "")),
        ("check gone.koi >&- 2>&- <&-", (2, "", "")),
        ("acp main.koi <&-", (0, "", "")),
    ],
)
def test_a_closed_stream_is_an_empty_one(project: Project, command: str, outcome: tuple[int, str, str]) -> None:
    """Where the shell has closed a stream, nothing comes from there, and what goes there is lost."""
    project.write("main.koi", 'role R { can go }\nagent A : R { on go() { console.log("ready") } }\nrun A.go({})')
    done = project.run("sh", "-c", f"exec {sys.executable} -m koi_lang {command}")

    assert outcome == (done.returncode, done.stdout, done.stderr)
