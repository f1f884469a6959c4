"""Types and results that are right, about which nothing may be said."""

from __future__ import annotations

import pytest

from tests.support import HERE, diagnostics_of, diagnostics_of_text


@pytest.mark.parametrize("program", ["right_results", "literals", "deep"])
def test_nothing_is_said_of_right_results(program: str) -> None:
    """Forms that only look wrong give neither errors nor warnings."""
    assert [] == diagnostics_of(HERE / "koi" / "types" / f"{program}.koi")


def test_types_that_need_each_other_twice_are_looked_at_once() -> None:
    """Forty types that each mention the next one twice have values."""
    types = [f"type T{i} = {{ a: T{i + 1}, b: T{i + 1} }}" for i in range(40)]

    assert [] == diagnostics_of_text("\n".join([*types, "type T40 = { x: int }"]))
