"""Functions that keep variables, and records that are taken apart."""

from collections.abc import Callable
from typing import Any


def start(n: int) -> int:
    """Mix points and a counter."""

    def counter(step: int) -> Callable[[], int]:
        value = 0

        def advance() -> int:
            nonlocal value
            value += step
            return value

        return advance

    following = counter(3)
    total = 0
    for i in range(n):
        point: dict[str, Any] = {"x": i, "y": [i + 1, i + 2]}
        x, (first, second) = point["x"], point["y"]
        total += (x + first * second + following()) % 97
    return total
