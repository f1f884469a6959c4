"""The programs in `examples`, run by the command as a newcomer runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koi_lang import program

FOLDER = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.koi"))
STDIN = {"hello-world": "Ada\n"}
PRINTED = {
    "counter": [
        "+2 makes 2",
        "+5 makes 7",
        "Resetting from 7",
        "+1 makes 1",
        "The count is 1 after 3 steps: [ 2, 5, 1 ]",
    ],
    "errors": [
        "Ordered: tea after 2 attempts",
        "RangeError: there is no unicorn",
        "Attempts: 5",
        "Gave up: `Customer` got no answer to `deliver` within 0.1 s",
    ],
    "hello-world": ["Hello, Ada!"],
    "pipeline": [
        "3 of 4 lines are about fruit",
        "49 pieces of fruit, most of them cherries",
        "Written: true",
    ],
    "prompts": [
        "Welcome, Ada!",
        "1 places are left.",
        "Welcome, Bo!",
        "The house is full.",
        "In code, a prompt is its text: Be friendly.",
    ],
    "registry": [
        "[ 'book:1', 'book:2', 'book:3' ]",
        "Modern: [ 'Ulysses', 'Beloved' ]",
        "Free: book:3 Beloved",
        "Lent: 2",
        "Beloved",
    ],
    "skills": ["In Celsius: [ 10, 20, 15 ]", "By name: 212", "Mean 15.0, spread 10"],
    "team": ["One idea: soup for 4", "All ideas: [ 'soup for 4', '12 tulips' ]", '{"watered": "the fern"}'],
}


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_this(name: str, tmp_path: Path) -> None:
    """An example runs offline, without a key, and prints exactly what is written here."""
    command = [sys.executable, "-m", "koi_lang", "run", str(FOLDER / f"{name}.koi")]
    home = {"HOME": str(tmp_path), "KOI_CACHE_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        command, input=STDIN.get(name, ""), capture_output=True, text=True, cwd=tmp_path, env=home, timeout=60
    )

    assert (PRINTED[name], 0) == (done.stdout.splitlines(), done.returncode), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_clean(name: str) -> None:
    """No check has anything to say about an example."""
    assert program.check(str(FOLDER / f"{name}.koi"), strict=True).diagnostics == ()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_how_to_run_it(name: str) -> None:
    """An example begins with a comment that says what it shows and how it is run."""
    head = (FOLDER / f"{name}.koi").read_text(encoding="utf-8").split("\n\n")[0]

    assert all(line.startswith("//") for line in head.split("\n"))
    assert f"koi run examples/{name}.koi" in head
