"""`python -m benchmarks.corpus`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.projects import Project

CORPUS = Path(__file__).parents[1] / "data" / "corpus" / "openai-chat"


def test_a_corpus_that_is_read_as_expected(project: Project) -> None:
    """One line says how many streams there are."""
    shutil.copytree(CORPUS / "text", project.folder / "text")

    done = project.fork("-m", "benchmarks.corpus", "check", ".")

    assert (0, "1 stream read as expected\n") == (done.returncode, done.stdout)


def test_a_stream_that_is_read_otherwise_is_one_line(project: Project) -> None:
    """Its name, also a hostile one, and what is different stand in a line, and the command fails."""
    hostile = project.folder / "a\nb\x1b[2J"
    shutil.copytree(CORPUS / "text", hostile)
    (hostile / "expected.json").write_text('{"stop_reason": "length"}')

    done = project.fork("-m", "benchmarks.corpus", "check", ".")
    lines = done.stdout.splitlines()

    assert done.returncode == 1
    assert lines[0].startswith("a b")
    assert '`stop_reason` is "stop" instead of "length"' in lines[0]
    assert "\x1b" not in lines[0]
    assert ["0 streams read as expected", "1 stream read otherwise"] == lines[1:]


@pytest.mark.parametrize("name", ["nothing", "."])
def test_a_folder_without_streams_is_told(project: Project, name: str) -> None:
    """A folder that is not there, or that holds none, is an error."""
    done = project.fork("-m", "benchmarks.corpus", "check", name)

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: there is no stream in `{name}`")
