"""Compiled forms of Python files that were cut off, as after a crash."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from koi_lang.system import resources
from tests.projects import Project

PROGRAM = """
    import tool from "./tool.py"
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { console.log(tool.seven()) } }
    run Main.go({})
    """


def cut_off(folder: Path, name: str) -> Path:
    """The compiled form of a module, whose end is missing."""
    (compiled,) = folder.glob(f"**/__pycache__/{name}.*.pyc")
    os.truncate(compiled, compiled.stat().st_size // 2)
    return compiled


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["tool", "side", "inner"])
def test_files_beside_a_program_are_compiled_anew(project: Project, name: str) -> None:
    """Whether a program imports the file itself, or that file another one."""
    project.write("desk/tool.py", "import side\n\ndef seven():\n    return side.inner.N\n")
    project.write("desk/side.py", "from kit import inner\n")
    project.write("desk/kit/inner.py", "N = 7\n")
    project.write("desk/main.koi", PROGRAM)
    script = "import koi_lang\nkoi_lang.run('desk/main.koi')"
    project.run(sys.executable, "-c", script, PYTHONDONTWRITEBYTECODE="")
    cut_off(project.folder, name)

    done = project.run(sys.executable, "-c", script, PYTHONDONTWRITEBYTECODE="")

    assert ("7\n", "") == (done.stdout, done.stderr)


def test_modules_of_koi_are_compiled_anew(project: Project) -> None:
    """A command does its work all the same, and mends what was damaged."""
    shutil.copytree(resources.PACKAGE, project.folder / "koi_lang", ignore=shutil.ignore_patterns("__pycache__"))
    words = (sys.executable, "-m", "koi_lang", "cache")
    here = {"PYTHONPATH": str(project.folder), "PYTHONDONTWRITEBYTECODE": ""}
    before = project.run(*words, **here)
    compiled = cut_off(project.folder / "koi_lang" / "cli", "cache")

    done = project.run(*words, **here)

    assert (0, before.stdout, "") == (done.returncode, done.stdout, done.stderr)
    assert not compiled.exists()


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
