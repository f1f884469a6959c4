"""Generated programs print what Node prints. `python -m tests.differential` does the same for longer."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.differential.__main__ import differences, sort_of
from tests.differential.generate import programs
from tests.differential.shrink import shrink

SEED = 20_262
PROGRAMS = 40


@pytest.mark.needs("node", "npm")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_generated_programs_print_what_node_prints(seed: int) -> None:
    """Statements, jumps, expressions, kinds, types and members of built-in objects have the same outcome."""
    assert [] == differences(list(islice(programs(seed), PROGRAMS)))


def test_programs_are_the_same_for_the_same_seed() -> None:
    """What differs somewhere can be looked at anywhere."""
    first, again, other = (list(islice(programs(seed), 3)) for seed in (1, 1, 2))

    assert (first == again, first == other) == (True, False)


@pytest.mark.needs("node", "npm")
def test_a_program_that_differs_is_told_and_made_smaller() -> None:
    """A difference that is meant (Koi counts characters) is found, and what has nothing to do with it goes."""
    program = 'if (true) {\n  const v1 = "😀";\n  let v2 = 1;\n  console.log(v1.length);\n}'

    small = shrink(program, lambda smaller: sort_of(smaller) == sort_of(program))

    assert ("", "") == sort_of(program)
    assert ['const v1 = "😀";', "console.log(v1.length);"] == [line.strip() for line in small.split("\n")]
