"""The programs in `examples`, run by the command as a newcomer runs them."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from koi_lang.program import build
from tests import forks

FOLDER = Path(__file__).resolve().parent.parent / "examples"
TESTED = sorted(path.name for kind in ("test", "eval") for path in FOLDER.glob(f"*.{kind}.koi"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.koi") if path.name not in TESTED)
STDIN = {"desk": "yes\n", "hello-world": "Ada\n", "tic-tac-toe": "5\n9\nthe middle\n1\n2\n4\n7\n"}
# What an example may do without asking.
OPTIONS = {
    "improve": ["--allow", "shell:*python -m pytest mended"],
    "memory": ["--allow", "write:.agents/memory/**"],
    "server": ["--allow", "shell"],
}
PRINTED = {
    "batch": ["d.txt cannot be counted.", "6 words", "Counted at the same time: 4"],
    "counter": [
        "+2 makes 2",
        "+5 makes 7",
        "Resetting from 7",
        "+1 makes 1",
        "The count is 1 after 3 steps: [ 2, 5, 1 ]",
    ],
    "debate": [
        "1 for: Who has read an agenda comes prepared. Without one, the loudest topic wins.",
        "1 against: The loudest topic is often the urgent one. An agenda fixes last week's worries.",
        "2 for: An agenda can be changed by those who meet. What is not written is forgotten first.",
        "2 against: Changing it takes the first ten minutes. Three people in a corridor need no paper.",
        "The judge is for the motion. Ten minutes of changes are still minutes well spent.",
    ],
    "desk": ["Tea reached Europe on Dutch ships, and all of it is one plant. (13 words)"],
    "errors": [
        "Ordered: tea after 2 attempts",
        "RangeError: there is no unicorn",
        "Attempts: 5",
        "Gave up: `Customer` got no answer to `deliver` within 0.1 s",
    ],
    "frozen": ["tea is on shelf 20", "oil is on shelf 15"],
    "hello-world": ["Hello, Ada!"],
    "improve": [
        *("Round 1: 0.92, tests red", "Round 2: 0.935, tests green", "accepted in round 2 with 0.935"),
        *("import math", "", "", "def shipping(weight):", "    return 5 + 1.5 * math.ceil(max(0, weight - 2))", ""),
    ],
    "think": [
        "Delete the staging database: block",
        "  economist disagrees: It saves 40 dollars a month.",
        "  There is no backup.",
        "Tidy the notes: approve",
        "The work is held to these conditions:",
        "- cannot: run:git push* (guardian)",
        "- below: notes (guardian)",
        "- usd: 0.1 (economist)",
        "- Say what was moved. (empath; not enforced)",
    ],
    "memory": [
        "The port was taken; it is 7411 now.",
        "Port 7411, as the note says.",
        "fact - The billing service listens at port 7411.",
    ],
    "mcp-client": ["{ item: 'eggs', amount: 6 } [ 'eggs' ]"],
    "mcp-server": ["eggs: 6"],
    "mcp-files": [
        "Kept: garden.txt, tea.txt",
        "`files.read_text_file` failed: Error executing tool read_text_file: ../secret.txt lies outside of notes",
        "The tea is ready at four.",
        "Characters: [ 25, 25 ]",
    ],
    "phases": ["hill: a tower - building", "swamp: null"],
    "pipeline": [
        "3 of 4 lines are about fruit",
        "49 pieces of fruit, most of them cherries",
        "Written: true",
    ],
    "plan": [
        *("2 × tea for 3.5 each", "Fewer than wanted.", "Order 1 of tea", "Order 2 of tea", "Paid 7"),
        *("40 × salt for 3.5 each", "Order 1 of salt", "Order 2 of salt", "Paid 7"),
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
    "review": [
        "!!! line 2: a quote in `name` ends the text, and the rest is run as SQL",
        "!!  line 3: nobody of that name: there is no row 0",
        "!   line 2: the line has 72 characters",
        "Must be changed first.",
    ],
    "sales": [
        *("item       sold  total  last", "─────────  ────  ─────  ─────────"),
        *(
            "green tea     5     16  Thu 6 Mar",
            "coffee       10     25  Tue 4 Mar",
            "緑茶          2      8  Wed 5 Mar",
        ),
        *("green tea  5 █████████", "coffee    10 █████████████████", "緑茶       2 ███"),
        "Mean of 16.33, median of 16",
    ],
    "second-opinion": [
        "Change: 3 findings",
        "1 line 2: boiling water makes green tea bitter",
        "2 line 3: how long is one to wait?",
        "3 line 3: what is usual?",
        "The judge is for it: A number can be changed, a gap cannot.",
    ],
    "server": ["The page begins with: # Examples"],
    "skills": ["In Celsius: [ 10, 20, 15 ]", "By name: 212", "Mean 15.0, spread 10"],
    "tic-tac-toe": [
        *(". . .", ". . .", ". . .", "X takes 5", "O takes 1"),
        *("O . .", ". X .", ". . .", "X takes 9", "O takes 3"),
        *("O . O", ". X .", ". . X", "the middle cannot be taken.", "1 cannot be taken.", "X takes 2", "O takes 8"),
        *("O X O", ". X .", ". O X", "X takes 4", "O takes 6"),
        *("O X O", "X X O", ". O X", "X takes 7"),
        *("O X O", "X X O", "X O X", "Nobody wins."),
    ],
    "team": ["One idea: soup for 4", "All ideas: [ 'soup for 4', '12 tulips' ]", '{"watered": "the fern"}'],
}


def run_example(name: str, folder: Path, *options: str) -> CompletedProcess[str]:
    """The outcome of an example that is run offline, without a key, in a folder."""
    words = ["run", "--rehearse", *options, *OPTIONS.get(name, []), str(FOLDER / f"{name}.koi"), *_answers(name)]
    (folder / "examples").symlink_to(FOLDER)
    path = os.pathsep.join((str(forks.command(folder / "commands").parent), os.environ["PATH"]))
    home = {"HOME": str(folder), "KOI_CACHE_DIR": str(folder), "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return forks.run(words, folder, home, STDIN.get(name, ""))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_this(name: str, tmp_path: Path) -> None:
    """An example runs offline, without a key, and prints exactly what is written here."""
    done = run_example(name, tmp_path)

    assert (PRINTED[name], 0) == (done.stdout.splitlines(), done.returncode), done.stderr


def _answers(name: str) -> list[str]:
    """The options for an example whose playbooks need a model."""
    answers = FOLDER / f"{name}.answers.json"
    return ["--answers", str(answers)] if answers.exists() else []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_clean(name: str) -> None:
    """No check has anything to say about an example."""
    assert build.check(str(FOLDER / f"{name}.koi"), strict=True).diagnostics == ()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_how_to_run_it(name: str) -> None:
    """An example begins with a comment that says what it shows and how it is run."""
    head = (FOLDER / f"{name}.koi").read_text(encoding="utf-8").split("\n\n")[0]

    assert all(line.startswith("//") for line in head.split("\n"))
    assert f"koi run examples/{name}.koi" in head
    assert bool(_answers(name)) == (f"--answers examples/{name}.answers.json" in head)


def test_tests_of_examples_pass(tmp_path: Path) -> None:
    """The tests beside the examples pass when a newcomer runs them all."""
    home = {"HOME": str(tmp_path), "KOI_CACHE_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    done = forks.run(["test", str(FOLDER)], tmp_path, home)

    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert done.stdout.startswith("10 passed in ")


@pytest.mark.parametrize("name", TESTED)
def test_a_tested_example_is_clean_and_says_how_to_test_it(name: str) -> None:
    """No check has anything to say about tests and evals of an example, whose first comment says how to run them."""
    path = FOLDER / name

    assert build.check(str(path), strict=True).diagnostics == ()
    command = name.split(".")[-2]
    assert f"koi {command} examples/{name}" in path.read_text(encoding="utf-8").split("\n\n")[0]


def test_the_page_of_examples_names_all() -> None:
    """What each example shows stands on the page beside them, in a row of its own."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    programs = [*NAMES, *(name.removesuffix(".koi") for name in TESTED)]
    folders = [path.name for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]

    assert [] == [name for name in (*programs, *folders) if f"| [`{name}" not in page]
