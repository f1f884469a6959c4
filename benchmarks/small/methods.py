"""Methods of arrays with functions."""

from functools import reduce


def start(n: int) -> int:
    """The sum of the doubled numbers below n that can be divided by three, ten times."""
    numbers = list(range(n))
    total = 0
    for _ in range(10):
        total += reduce(_add, filter(_is_wanted, map(_double, numbers)), 0)
    return total


def _double(x: int) -> int:
    return x * 2


def _is_wanted(x: int) -> bool:
    return x % 3 == 0


def _add(total: int, x: int) -> int:
    return total + x
