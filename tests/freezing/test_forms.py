"""The form of recorded payloads, and what does not have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.runtime.model_calls.frozen_plans import FrozenPlan, form_of, misfits, read_plan

ORDERS = [
    {"name": "Ada", "vip": False, "items": ["tea"], "pieces": 3, "price": 2.5, "note": None},
    {"name": "Bo", "vip": False, "items": ["jam", "oil"], "pieces": 9, "price": 0.0, "note": None},
]


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({}, ""),
        ({"name": "Cy", "pieces": 400}, ""),
        ({"vip": True}, "`args.vip` was always false"),
        ({"note": "x"}, "`args.note` was always null"),
        ({"items": []}, "`args.items` was never empty"),
        ({"items": ["tea", 5]}, "`args.items[1]` was a text"),
        ({"items": "tea"}, "`args.items` was a list"),
        ({"pieces": 0}, "`args.pieces` was never 0"),
        ({"pieces": -2}, "`args.pieces` was never below 0"),
        ({"pieces": 1.5}, "`args.pieces` was always whole"),
        ({"price": 0}, ""),
        ({"name": ""}, "`args.name` was never empty"),
        ({"name": 5}, "`args.name` was a text"),
        ({"more": 1}, "`args` had no `more`"),
    ],
)
def test_what_was_not_recorded_misfits(change: dict[str, Any], clause: str) -> None:
    """A value of another kind, and one that differs where none ever did, are named with their place."""
    assert clause == next(misfits(form_of(ORDERS), {**ORDERS[0], **change}, "args"), "")


def test_a_field_that_some_recordings_lack_is_optional() -> None:
    """It may be missing, and has its form where it is there."""
    form = form_of([{"a": 1, "b": 2}, {"a": 5}])

    assert [] == [*misfits(form, {"a": 7}, "args"), *misfits(form, {"a": 7, "b": 2}, "args")]
    assert ["`args` always had `a`"] == list(misfits(form, {"b": 2}, "args"))


PLAN = FrozenPlan("Desk.place", "orders.koi", ("r1",), {}, {}, [{"intent": "return"}])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps({**PLAN.as_data(), "actions": []}), "was changed by hand"),
        ("{", "is no plan that this version of Koi reads"),
        ("[1]", "is no plan that this version of Koi reads"),
        (json.dumps({"koi_plan": 1}), "was made by an earlier version of Koi; freeze it again"),
        (json.dumps({"koi_plan": 99}), "is no plan that this version of Koi reads"),
        ("x" * 2_000_000, "is no plan that this version of Koi reads"),
    ],
)
def test_a_file_that_is_no_plan(tmp_path: Path, content: str, problem: str) -> None:
    """It is refused in one sentence."""
    path = tmp_path / "Desk.place.json"
    path.write_text(content)
    with pytest.raises(SettingsError) as refused:
        read_plan(path)

    assert f"`Desk.place.json` {problem}" == refused.value.message


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Its seal is that of its content."""
    path = tmp_path / "Desk.place.json"
    path.write_text(json.dumps(PLAN.as_data()))

    assert PLAN == read_plan(path)
