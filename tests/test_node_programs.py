"""Generated functions do in Koi what they do in Node. `python -m tests.node_programs` does the same for longer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.node_programs import IN_ONE, differences, functions


@pytest.mark.needs("node", "npm")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_generated_functions_do_what_they_do_in_node(seed: int, tmp_path: Path) -> None:
    """Loops, `switch`, labels, jumps and `try` nested at random: the same steps in the same order, the same end."""
    assert [] == differences(functions(Random(seed), IN_ONE), tmp_path)
