"""What the analysis of kinds takes, however variables follow from each other."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from koi_lang.program.build import syntax_trees
from tests.shapes import code

# Below this many seconds no ratio is looked at.
FLOOR_S = 0.5


def chain(count: int) -> str:
    """Each variable follows from the one before it, and one that is written twice from the last."""
    steps = "\n".join(f"const a{number} = a{number - 1} + 1" for number in range(1, count))
    return f"let x = 0\nconst a0 = 1\n{steps}\nx = a{count - 1}\nx += 1\nreturn x"


def backwards(count: int) -> str:
    """Each of many variables that are written twice follows from the next one."""
    first = "\n".join(f"let b{number} = 0" for number in range(count))
    then = "\n".join(f"b{number} = b{number + 1} + 1" for number in range(count - 1))
    return f"{first}\n{then}\nb{count - 1} = 0.5\nreturn b0"


def seconds(path: Path, text: str) -> float:
    """How long it takes to compile a program."""
    path.write_text(code(text), "utf-8")
    begin = process_time()
    syntax_trees(str(path))
    return process_time() - begin


@pytest.mark.parametrize("shape", [chain, backwards])
def test_time_grows_with_the_number_of_variables(tmp_path: Path, shape: object) -> None:
    """Variables that follow from each other are compiled in proportion to their number, without an error."""
    assert callable(shape)
    short, long = (seconds(tmp_path / f"{count}.koi", shape(count)) for count in (500, 2000))

    assert long < FLOOR_S or long < 8 * short
