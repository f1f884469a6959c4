"""The wheel: what a user installs runs a program with nothing of the checkout."""

from __future__ import annotations

import json
import site
import zipfile

from tests.wheel import CHECKOUT, EXAMPLE, Installed

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
