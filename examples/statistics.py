"""What `skills.koi` imports: numbers to their summary."""

from __future__ import annotations

from collections.abc import Sequence


def summary(values: Sequence[float]) -> dict[str, float]:
    """The mean of some numbers, and how far apart the outermost are."""
    return {"mean": sum(values) / len(values), "spread": max(values) - min(values)}
