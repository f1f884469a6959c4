"""The tools of projects in Python: pytest, ruff and mypy."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from koi_lang.std.checks.json_reports import read_mypy, read_ruff
from koi_lang.std.checks.junit import name_python_place, read_junit
from koi_lang.std.checks.project_files import has_name, read_setting
from koi_lang.std.checks.tools import REPORT, CheckTool, find_own, find_program

VENVS = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")
SUFFIXES = (".py", ".pyi")
# Settings of each tool: files, and what stands in them where they may be for others.
PYTEST = {
    "pytest.ini": "", "conftest.py": "", "pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}  # fmt: skip
RUFF = {"ruff.toml": "", ".ruff.toml": "", "pyproject.toml": "[tool.ruff"}
MYPY = {"mypy.ini": "", ".mypy.ini": "", "pyproject.toml": "[tool.mypy", "setup.cfg": "[mypy"}

# Settings of mypy that say what it checks.
MYPY_FILES = re.compile(r"^\[(?:tool\.)?mypy\][ \t]*$(?:\n(?!\[).*)*?\n(?:files|packages|modules)\s*=", re.M)


def find_pytest(folder: Path) -> CheckTool | None:
    """The one that runs tests; None for a project without any."""
    if not _is_set_up(folder, PYTEST) and not has_name(folder, _is_test):
        return None
    python = find_own(folder, VENVS, "python")
    if python == "python" and shutil.which("python") is None:
        python = "python3"
    return CheckTool(
        "pytest",
        (python, "-m", "pytest"),
        find_program(folder, python),
        "Install it for the Python of the project: `python -m pip install pytest`.",
        lambda data, place: read_junit(data, place, name_python_place),
        ("-q", "--color=no", "-o", "junit_family=xunit1", "-o", "junit_logging=no", f"--junit-xml={REPORT}"),
        counts_tests=True,
        suffixes=SUFFIXES,
        missing="No module named pytest",
        usual=("python", "-m", "pytest"),
    )


def find_ruff(folder: Path) -> CheckTool | None:
    """The linter; without settings only where it is installed, and never without files for it."""
    ruff = find_own(folder, VENVS, "ruff")
    tool = CheckTool(
        "ruff",
        (ruff, "check"),
        find_program(folder, ruff),
        "Install it: `python -m pip install ruff`.",
        read_ruff,
        ("--output-format=json", f"--output-file={REPORT}", "--no-fix"),
        suffixes=SUFFIXES,
        nothing="No Python files found",
    )
    return tool if _is_wanted(folder, tool, RUFF) else None


def find_mypy(folder: Path) -> CheckTool | None:
    """The type checker; as before."""
    mypy = find_own(folder, VENVS, "mypy")
    names_files = any(MYPY_FILES.search(read_setting(folder / name)) for name in MYPY)
    tool = CheckTool(
        "mypy",
        (mypy,),
        find_program(folder, mypy),
        "Install it: `python -m pip install mypy`.",
        read_mypy,
        ("--output=json", "--no-error-summary"),
        is_report_printed=True,
        suffixes=SUFFIXES,
        whole=() if names_files else (".",),
        nothing="There are no .py[i] files",
    )
    return tool if _is_wanted(folder, tool, MYPY) else None


def _is_set_up(folder: Path, settings: dict[str, str]) -> bool:
    return any((folder / name).is_file() and part in read_setting(folder / name) for name, part in settings.items())


def _is_wanted(folder: Path, tool: CheckTool, settings: dict[str, str]) -> bool:
    """Whether there are files for a tool, and it is set up or at least installed."""
    has_files = has_name(folder, lambda name: name.endswith(SUFFIXES))
    return has_files and (tool.program is not None or _is_set_up(folder, settings))


def _is_test(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))
