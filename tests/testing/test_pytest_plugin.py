"""`pytest` on folders with tests in Koi: items, failures, selections, and what it costs where there are none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import forks
from tests.projects import Project

PROGRAM = """
role R { can execute }
agent Adder : R { on add(args: { a: number, b: number }) { console.log("adding"); return { sum: args.a + args.b } } }
"""
TESTS = """
import "./adder.koi"

test "adds" { expect (await Adder.handle("add", { a: 2, b: 3 })).sum == 5 }

test "adds wrongly" {
  const found = await Adder.handle("add", { a: 2, b: 3 })
  expect found.sum == 6
}

test "adds nothing" { expect (await Adder.handle("add", { a: 2, b: 0 })).sum == 2 }
"""


# What is named on the command line is all that counts.
PLUGINS = ("-p", "no:cacheprovider", "-p", "koi_lang.testing.pytest_plugin")
PYTEST = ("-m", "pytest", *PLUGINS, "--rootdir", ".", "-c", os.devnull)
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}


@pytest.fixture
def folder(project: Project) -> Project:
    """A folder with a program in Koi, its tests, and tests in Python."""
    project.write("adder.koi", PROGRAM)
    project.write("adder.test.koi", TESTS)
    project.write("test_python.py", "def test_python(): pass\n")
    return project


def run(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """The outcome of pytest in a folder, in a process that is forked, with the plugin and what is named."""
    return project.fork(*PYTEST, *words, **ENVIRONMENT)


def test_each_block_is_an_item(folder: Project) -> None:
    """Failures are told in Koi's words, with its lines and what was printed, and no line of Python."""
    done = run(folder, "-v")

    assert (1, True) == (done.returncode, "1 failed, 3 passed" in done.stdout), done.stdout + done.stderr
    for line in (
        "adder.test.koi::adds PASSED",
        "adder.test.koi::adds wrongly FAILED",
        " --> adder.test.koi:7:3",
        "7 |   expect found.sum == 6",
        "FAILED adder.test.koi::adds wrongly",
        "adding",
    ):
        assert line in done.stdout
    assert not {"Traceback", "pytest_plugin.py", ".py:"} & {*done.stdout.partition("FAILURES")[2].split()}


def test_items_are_listed(folder: Project) -> None:
    """What is listed has the names of the tests."""
    listed = run(folder, "--collect-only", "-q")

    names = ["adder.test.koi::adds", "adder.test.koi::adds wrongly", "adder.test.koi::adds nothing"]
    assert names == [line for line in listed.stdout.splitlines() if line.startswith("adder")]


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("-k", "nothing"), "1 passed, 3 deselected"),
        (("-x", "adder.test.koi"), "1 failed, 1 passed"),
        pytest.param(
            ("-p", "xdist.plugin", "-n", "1", "-k", "not wrongly"),
            "3 passed",
            marks=pytest.mark.thorough,
            id="in processes",
        ),
    ],
)
def test_items_are_selected_and_shared_out(folder: Project, words: tuple[str, ...], counts: str) -> None:
    """`-k`, `-x` and several processes do as with tests in Python."""
    assert counts in run(folder, *words).stdout


def test_an_error_in_the_file_is_an_error_of_collection(folder: Project) -> None:
    """It says what `koi check` says; other files are collected."""
    folder.write("adder.test.koi", 'test "broken" { expect (1 }\n')
    done = run(folder)

    assert 2 == done.returncode
    assert "ERROR collecting adder.test.koi" in done.stdout
    assert "--> adder.test.koi:1:" in done.stdout
    assert "Traceback" not in done.stdout


def test_nothing_of_koi_is_imported_without_such_a_file(folder: Project) -> None:
    """A project without tests in Koi pays for the import of one small module."""
    (folder.folder / "adder.test.koi").unlink()
    folder.write("test_python.py", "import sys\ndef test_it(): print(sorted(n for n in sys.modules if 'koi' in n))\n")
    done = folder.run(sys.executable, *PYTEST, "-s", **ENVIRONMENT)

    assert "['koi_lang', 'koi_lang.testing', 'koi_lang.testing.pytest_plugin']" in done.stdout


def test_the_package_brings_the_plugin() -> None:
    """Whoever installs the package has the plugin; this suite leaves it out."""
    told = (forks.CHECKOUT / "pyproject.toml").read_text("utf-8")

    assert '[project.entry-points.pytest11]\nkoi = "koi_lang.testing.pytest_plugin"\n' in told
    assert "-p no:koi" in told
