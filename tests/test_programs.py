"""Programs in `tests/koi` that state in comments what they print."""

from __future__ import annotations

import gc
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.running import Outcome, Script, read_script, run_file

FOLDER = Path(__file__).parent / "koi"
# What programs import stands in folders of this name.
PARTS = "parts"
PROGRAMS = sorted(path for path in FOLDER.rglob("*.koi") if PARTS not in path.parts)


def name_of(path: Path) -> str:
    """A program's path without its ending."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled modules are kept away from those of the person who runs the tests."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


# Where the stack ends in the middle of a call, Python tells of the coroutine that it could not begin.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_program(path: Path, tmp_path: Path) -> None:
    """A program does what its comments state, and nothing else."""
    script = read_script(path)
    outcome = run_file(path, tmp_path, stdin=script.stdin, answers=script.answers)
    if "too deeply" in outcome.error:
        gc.collect()  # the coroutines are told of here, and not in whichever test comes next

    assert script.states_something
    assert expected(script) == observed(script, outcome)


def expected(script: Script) -> dict[str, object]:
    """What a program states."""
    return {
        "printed": script.printed,
        "logged": script.logged,
        "told": script.told,
        "fails": script.error is not None,
        "error": script.error or "",
        "warnings": script.warnings,
    }


def observed(script: Script, outcome: Outcome) -> dict[str, object]:
    """What it did, in the same form; a message that holds the stated text counts as that text."""
    warnings = zip_longest(script.warnings, outcome.warnings, fillvalue="")
    return {
        "printed": outcome.printed,
        "logged": outcome.logged,
        "told": outcome.told if script.told else (),
        "fails": outcome.code != 0,
        "error": shortened(script.error or "", outcome.error),
        "warnings": tuple(shortened(stated, told) for stated, told in warnings),
    }


def shortened(stated: str, told: str) -> str:
    """The stated part of a message; the whole message where its first line does not hold that part.

    The lines after the first show the source, and with it the comment that states something.
    """
    return stated if stated and stated in told.partition("\n")[0] else told


def written(tmp_path: Path, text: str) -> Path:
    """A program with these statements."""
    path = tmp_path / "program.koi"
    path.write_text(f"role R {{ can execute }}\nagent A : R {{ on go() {{\n{text}\n}} }}\nrun A.go({{}})\n")
    return path


@pytest.mark.parametrize(
    "text",
    [
        'console.log("a") // expect: b',
        'console.log("a")\nconsole.log("b") // expect: a',
        'console.log("a") // expect: a\n// expect: b',
        'console.error("a")\n// expect-log: b',
        'console.log("a") // expect: a\n// expect-error: oh',
        'console.log("a") // expect: a\nthrow new Error("oh")',
        'throw new Error("oh") // expect-error: ah',
        'console.log("a") // expect: a\n// expect-warning: unused',
        'return 1\nconsole.log("a") // expect: a',
    ],
)
def test_a_false_statement_is_found(tmp_path: Path, text: str) -> None:
    """A program that does something else than it states, more, or less, is reported."""
    path = written(tmp_path, text)

    script = read_script(path)

    assert expected(script) != observed(script, run_file(path, tmp_path))


def test_a_program_without_statements_is_found(tmp_path: Path) -> None:
    """A program that states nothing cannot pass."""
    assert not read_script(written(tmp_path, "console.log(1)")).states_something
