"""The wheel: what a user installs runs a program with nothing of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
EXAMPLE = CHECKOUT / "examples" / "hello-world.koi"
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


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has the wheel and the dependencies; `folder` holds the example and nothing else of ours."""

    wheel: Path
    python: Path
    folder: Path

    def run(self, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the folder, with something to read on standard input and no keys."""
        environment = {"PATH": os.defpath, "HOME": str(self.folder)}
        return subprocess.run(
            [str(self.python), *arguments],
            input=said, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout, installed into an environment of its own."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(CHECKOUT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = place.glob("*.whl")
    folder = place / "elsewhere"
    folder.mkdir()
    shutil.copy(EXAMPLE, folder)
    return Installed(wheel, environment_with(wheel, place / "environment"), folder)


def environment_with(wheel: Path, place: Path) -> Path:
    """The Python of a new environment with the wheel in it; it borrows the dependencies from the one that runs this.

    Python does not follow `.pth` files in a folder that another `.pth` file names, so that an editable installation of
    the checkout is not borrowed with them.
    """
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True, capture_output=True)
    (own,) = place.glob("lib/python*/site-packages")
    (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python


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
