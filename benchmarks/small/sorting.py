"""Sorting with a comparison."""

from functools import cmp_to_key
from typing import Any


def start(n: int) -> list[int]:
    """The ages of the oldest and the youngest of n people."""
    people: list[dict[str, Any]] = []
    seed = 7
    for i in range(n):
        seed = (seed * 1103 + 12345) % 65536
        people.append({"name": f"p{i}", "age": seed % 90})
    people.sort(key=cmp_to_key(_by_age_and_name))
    people.sort(key=cmp_to_key(lambda a, b: b["age"] - a["age"]))
    return [people[0]["age"], people[-1]["age"]]


def _by_age_and_name(a: dict[str, Any], b: dict[str, Any]) -> int:
    return a["age"] - b["age"] or (-1 if a["name"] < b["name"] else 1)
