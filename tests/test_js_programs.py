"""Programs with values of changing kinds come to the same in Koi and in Node."""

from __future__ import annotations

import pytest

from tests.js_programs import NODE, differences
from tests.typed_programs import add_types

PROGRAMS = 40


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(20_000, 20_000 + 8 * PROGRAMS, PROGRAMS))
def test_generated_programs_do_what_node_does(first: int) -> None:
    """Whatever kinds the variables of a program take, each of its lines is what Node shows."""
    assert [] == differences(list(range(first, first + PROGRAMS)))


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(50_000, 50_000 + 4 * PROGRAMS, PROGRAMS))
def test_types_and_words_of_declarations_change_nothing(first: int) -> None:
    """Programs with types of TypeScript, whose variables are called `role` and `send`, do what Node does without."""
    assert [] == differences(list(range(first, first + PROGRAMS)), add_types)
