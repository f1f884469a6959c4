"""Days at the edges of the calendar, and numbers that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.std import dates

CASES: list[Callable[[], Any]] = [
    lambda: dates.shift_day("2025-01-01", float("nan"), 0),  # type: ignore[arg-type]
    lambda: dates.shift_day("2025-01-01", float("inf"), 0),  # type: ignore[arg-type]
    lambda: dates.shift_day("2025-01-01", 10**400, 0),
    lambda: dates.workday("9999-12-30", 5, []),
    lambda: dates.moment(1e17, "UTC"),
    lambda: dates.moment(float("nan"), "UTC"),
]


@pytest.mark.parametrize("work", CASES)
def test_what_is_no_day_is_told_as_such(work: Callable[[], Any]) -> None:
    """Neither a number that is none nor the end of the calendar shows an error of Python."""
    with pytest.raises(AgentError):
        work()
