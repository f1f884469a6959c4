"""The tools of a project, recognised by its files: what is started, and where each writes its report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from koi_lang.std.checks.findings import CheckReport
from koi_lang.std.checks.junit import name_python_place, read_junit
from koi_lang.std.checks.project_files import holds_text, project_names

# Stands in the words of a command for the file of the report.
REPORT = "{report}"
PYTHON_CONFIG = {
    **dict.fromkeys(("pytest.ini", "conftest.py"), ""),
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}


@dataclass(frozen=True, slots=True)
class CheckTool:
    """A tool that checks a project.

    Attributes:
        name: what people call it.
        command: its words as the person is asked for them; the first one is where its program is.
        program: the file that is started; None where there is none.
        options: further words, which have it write a report.
        read: makes a report of what it has written and of the folder of the project. Raises UnreadableReportError.
        missing: what it prints where only a part of it is there.
        advice: how to install it.
    """

    name: str
    command: Sequence[str]
    program: str | None
    options: Sequence[str]
    read: Callable[[bytes, Path], CheckReport]
    advice: str
    missing: str = ""


def find_test_tools(folder: Path) -> list[CheckTool]:
    """The tools that run the tests of a project."""
    return [_pytest(folder)] if _has_pytest(folder) else []


def _pytest(folder: Path) -> CheckTool:
    python = _find_python(folder)
    return CheckTool(
        "pytest",
        (python, "-m", "pytest"),
        _find_program(folder, python),
        ("-q", "--color=no", "-o", "junit_family=xunit1", "-o", "junit_logging=no", f"--junit-xml={REPORT}"),
        lambda data, place: read_junit(data, place, name_python_place),
        "Install it for the Python of the project: `python -m pip install pytest`.",
        "No module named pytest",
    )


def _has_pytest(folder: Path) -> bool:
    return any(holds_text(folder / name, part) for name, part in PYTHON_CONFIG.items()) or any(
        name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))
        for name in project_names(folder)
    )


def _find_python(folder: Path) -> str:
    """The Python of a project, as people write it."""
    own = (f"{venv}/{python}" for venv in (".venv", "venv") for python in ("bin/python", "Scripts/python.exe"))
    found = next((path for path in own if (folder / path).is_file()), None)
    return found or ("python" if shutil.which("python") else "python3")


def _find_program(folder: Path, word: str) -> str | None:
    """The file that the first word of a command stands for."""
    return str(folder / word) if "/" in word else shutil.which(word)
