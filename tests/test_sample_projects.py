"""The small projects that `koi do` is tried with, and what a model answers there: both are what they claim to be."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.limits import LIMIT_S

PROJECTS = Path(__file__).with_name("data") / "projects"
NAMES = sorted(path.parent.name for path in PROJECTS.glob("*/project.json"))
pytestmark = [
    pytest.mark.skipif(not NAMES, reason="what is published for installing has no sample projects"),
    pytest.mark.needs("git", "node"),
]


def about(name: str) -> dict[str, Any]:
    """What a project is for: the task, how it is checked, whether that passes, and which files are to change."""
    found: dict[str, Any] = json.loads((PROJECTS / name / "project.json").read_text("utf-8"))
    return found


def actions(name: str) -> Iterator[dict[str, Any]]:
    """What the model asks for, one after the other."""
    for answer in json.loads((PROJECTS / name / "answers.json").read_text("utf-8")):
        yield from answer.get("batch", [answer])


def carry_out(action: dict[str, Any], folder: Path) -> None:
    """Change files as an action says; a text to be replaced has to be there once."""
    path = folder / action.get("path", "")
    match action:
        case {"intent": "edit_file", "diff": diff}:
            words = ("git", "apply", "--unidiff-zero", "-")
            subprocess.run(words, cwd=folder, input=diff, text=True, check=True)
        case {"intent": "edit_file", "before": before, "after": after}:
            text = path.read_text("utf-8")
            assert 1 == text.count(before), (action["path"], before)
            path.write_text(text.replace(before, after), "utf-8")
        case {"intent": "write_file", "content": content}:
            path.write_text(content, "utf-8")
        case {"intent": "read_file"}:
            assert path.is_file()


def passes(check: str, folder: Path) -> bool:
    """Whether the tests of a project pass."""
    return (
        subprocess.run(check, shell=True, cwd=folder, capture_output=True, check=False, timeout=LIMIT_S).returncode == 0
    )


def texts(folder: Path) -> dict[str, str]:
    """The files of a folder by their names."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in found}


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_do_what_is_asked(name: str, tmp_path: Path) -> None:
    """The check says before and after what it is to say, and no other file is changed."""
    expected, folder = about(name), tmp_path / name
    shutil.copytree(PROJECTS / name / "files", folder, ignore=shutil.ignore_patterns("__pycache__"))
    before, passed = texts(folder), passes(expected["check"], folder)
    for action in actions(name):
        carry_out(action, folder)
    after = texts(folder)

    assert (expected["passes_before"], True) == (passed, passes(expected["check"], folder))
    assert expected["changed"] == sorted(path for path in after if after[path] != before.get(path))


def test_nothing_else_is_renamed() -> None:
    """The word stands in more than 30 files, and beside it there are those that only look like it."""
    files = texts(PROJECTS / "rename" / "files")

    assert 32 == len(about("rename")["changed"])
    for word in ("parse_amount", "argparse", "sparse", "parser.parse_args"):
        assert any(word in text for text in files.values()), word


def test_each_ends_with_an_answer() -> None:
    """The last action of a script returns what the person is told."""
    assert ["return"] * len(NAMES) == [list(actions(name))[-1]["intent"] for name in NAMES]
    assert 5 == len(NAMES)
