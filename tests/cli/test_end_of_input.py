"""Errors of the end of input at commands."""

from __future__ import annotations

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
