"""Values of Python in a journal come back as they were, or are not written at all."""

from __future__ import annotations

import json
import random
import string
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.js.undefined import undefined
from koi_lang.runtime.journal.entries import json_line

LEAVES: list[Callable[[random.Random], Any]] = [
    lambda r: r.choice([None, True, False, undefined, "", "$koi", 0, -0.0]),
    lambda r: r.choice([float("inf"), -float("inf"), 1e308, 5e-324, 10**1300, -(2**4096)]),
    lambda r: "".join(r.choices(string.printable + "ä€𝄞\ud800\0", k=r.randrange(6))),
    lambda r: bytes(r.choices(range(256), k=r.randrange(6))),
    lambda r: bytearray(b"text"),
    lambda r: date(r.randrange(1, 9999), 2, 3),
    lambda r: datetime(2026, 1, 2, r.randrange(24), 4, 5, r.randrange(10**6), r.choice([None, UTC])),
    lambda r: datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=r.randrange(-12, 12)))),
    lambda r: time(r.randrange(24), 5),
    lambda r: timedelta(r.randrange(-5, 5), r.random() * 1e5),
    lambda r: Decimal(r.random()),
    lambda r: Fraction(r.randrange(9), 7),
    lambda r: UUID(int=r.getrandbits(128)),
    lambda r: complex(r.random(), float("inf")),
    lambda r: range(r.randrange(5), 9, 2),
    lambda r: Path("/a") / "b",
]
HOLDERS: list[Callable[[random.Random, list[Any]], Any]] = [
    lambda r, items: items,
    lambda r, items: tuple(items),
    lambda r, items: {str(n): item for n, item in enumerate(items)},
    lambda r, items: dict(enumerate(items)),
    lambda r, items: {"$koi": "builtins.tuple", "of": items},
    lambda r, items: deque(items, maxlen=r.choice([None, 9])),
    lambda r, items: OrderedDict((str(item), item) for item in items),
    lambda r, items: defaultdict(list, {1: items}),
    lambda r, items: {r.randrange(9) for _ in items},
    lambda r, items: frozenset({(r.randrange(9), "a") for _ in items}),
    lambda r, items: Counter("abba"),
]


def a_value(r: random.Random, depth: int = 0) -> Any:
    """A random value of Python that can be encoded."""
    if depth > 3 or r.random() < 0.4:
        return r.choice(LEAVES)(r)
    return r.choice(HOLDERS)(r, [a_value(r, depth + 1) for _ in range(r.randrange(4))])


def through_a_journal(value: Any) -> Any:
    """What comes back of a value that was written down."""
    return from_fields(json.loads(json_line(as_fields(value), str)))


def described(value: Any) -> str:
    """Everything that makes a value up, its types included."""
    if isinstance(value, dict):
        inside = [(described(key), described(item)) for key, item in value.items()]
        return f"{type(value)}{inside}{getattr(value, 'default_factory', '')}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value)}{sorted(map(described, value))}"
    if isinstance(value, (list, tuple, deque)):
        return f"{type(value)}{list(map(described, value))}{getattr(value, 'maxlen', '')}"
    return f"{type(value)}{value!r}"


def test_values_come_back_as_they_were() -> None:
    """A thousand random values, nested, have the types and the content that they had."""
    for seed in range(1000):
        value = a_value(random.Random(seed))

        assert "opaque" not in as_fields(value), value
        assert described(value) == described(through_a_journal(value))
    assert "nan" == str(through_a_journal(float("nan")))


class Number(int):
    """What a plain number is not."""


@pytest.mark.parametrize(
    "value",
    [object(), Number(3), lambda: 1, {"a": (x for x in ())}, datetime.now(ZoneInfo("Europe/Berlin")), [[Number()]]],
)
def test_what_cannot_come_back_is_not_written(value: Any) -> None:
    """Nothing stands in for a value that would come back as something else."""
    assert ["opaque"] == list(as_fields(value))


def test_a_value_that_holds_itself_cannot_come_back() -> None:
    """Neither does one that is nested without end."""
    circle: list[Any] = []
    circle.append(circle)

    assert {"opaque": "list"} == as_fields(circle)


@pytest.mark.parametrize(
    "content",
    ['{"$koi":"os.system","of":"true"}', '{"$koi":"datetime.date","of":"[redacted]"}', '{"$koi":[1]}', '{"$koi":"x"}'],
)
def test_a_journal_makes_only_values(content: str) -> None:
    """A tag that is none of ours, or whose content is spoiled, imports and calls nothing and breaks nothing."""
    assert from_fields({"result": json.loads(content), "tagged": True}) in (json.loads(content), "[redacted]")
