"""Functions that a Koi program calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LIMIT = 10


def add(a: Any, b: Any) -> Any:
    """The sum."""
    return a + b


async def later(n: float) -> float:
    """Twice the number, asynchronously."""
    return n * 2


def double(n: float) -> float:
    """Twice the number."""
    return n * 2


def describe(value: object) -> str:
    """How Python sees a value."""
    return repr(value)


def numbers(count: int) -> list[int]:
    """The first numbers."""
    return list(range(count))


def call(f: Callable[[int], int], n: int) -> int:
    """What a function of the program makes of a number."""
    return f(n)


def fail() -> None:
    """Raise an error."""
    raise ValueError("a Python failure")
