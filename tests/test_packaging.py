"""The wheel: what a user installs runs a program with nothing of the checkout."""

from __future__ import annotations

import ast
import json
import re
import site
import sys
import tomllib
import zipfile

from koi_lang import resources
from tests.wheel import CHECKOUT, EXAMPLE, Installed

# Loaded by coverage.py alone, whose plugin it is; who measures coverage has it.
PLUGIN_OF = {"koi_lang/coverage.py": "coverage"}

# Runs the command line and writes the name of every file that was opened into its first argument.
WATCHED = """
import json, sys
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
from koi_lang.cli import main
target = sys.argv.pop(1)
try:
    main(sys.argv[1:])
finally:
    with open(target, "w") as file:
        json.dump(opened[:-1], file)
"""


def test_the_wheel_holds_what_a_run_needs(installed: Installed) -> None:
    """The grammar and the standard skills are in the wheel, and tests are not."""
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    skills = {f"koi_lang/stdlib_skills/{path.name}" for path in (CHECKOUT / "stdlib_skills").glob("*.koi")}

    assert {"koi_lang/grammar/koi.lark", "koi_lang/cli/run.py"} | skills <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_the_wheel_greets(installed: Installed) -> None:
    """The first program of a newcomer runs from another folder, asks for a name and greets by it."""
    report = installed.folder / "opened.json"
    done = installed.run("-c", WATCHED, str(report), "run", EXAMPLE.name, said="Ada\n")
    opened = json.loads(report.read_text())
    borrowed = tuple(site.getsitepackages())
    ours = [name for name in opened if name.startswith(f"{CHECKOUT}/") and not name.startswith(borrowed)]

    assert (done.returncode, "Ada" in done.stdout) == (0, True), done.stderr
    assert [name for name in opened if name.endswith("grammar/koi.lark")] != []
    assert ours == []


def test_the_wheel_brings_the_command(installed: Installed) -> None:
    """Installing makes the command `koi`."""
    done = installed.run(str(installed.python.parent / "koi"), "--version")

    assert done.stdout.startswith("koi ")


def test_what_is_imported_is_declared() -> None:
    """Every package that a module imports is one that the project asks for, and the other way round."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[<>=~!\[; ]", line)[0].replace("-", "_") for line in project["dependencies"]}
    imported: set[str] = set()
    for path in resources.PACKAGE.rglob("*.py"):
        tree, plugin_of = ast.parse(path.read_bytes()), PLUGIN_OF.get(path.relative_to(CHECKOUT).as_posix())
        imported |= {name for node in ast.walk(tree) for name in packages_of(node)} - {plugin_of}

    assert imported - sys.stdlib_module_names - {"koi_lang"} == declared


def packages_of(node: ast.AST) -> set[str]:
    """The top packages of an import."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {str(node.module).partition(".")[0]} if isinstance(node, ast.ImportFrom) and not node.level else set()
