"""Whatever goes wrong in a command is told once, in a message."""

from __future__ import annotations

import pytest

from tests.projects import Project

BROKEN = """
    import broken from "./broken.py"
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { return 1 } }
    run Main.go({})
    """


@pytest.mark.parametrize("name", ["list actions", "audit", "list extensions"])
def test_a_python_module_that_fails(project: Project, name: str) -> None:
    """A command that runs code of a program tells what its Python modules raise, and where they are imported."""
    project.write("broken.py", "1 / 0")
    project.write("main.koi", BROKEN)

    done = project.koi(*name.split(), "--run-code", "main.koi")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ZeroDivisionError: division by zero [E0500]\n --> main.koi:1:1\n")
    assert "Traceback" not in done.stderr


def test_a_module_that_cannot_be_written(project: Project) -> None:
    """`koi compile -o` below a file names the file and the reason."""
    project.write("main.koi", "role Worker { can execute }")

    done = project.koi("compile", "main.koi", "-o", "main.koi/main.py")

    told = "error: `main.koi/main.py` cannot be written: file exists\n  = help: Name another file.\n"
    assert (done.returncode, done.stderr) == (2, told)
