"""Explanations of numbers by terms that are numbers."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.freezing.candidates import AmbiguousError, choose
from koi_lang.freezing.numeric import NumericSearch
from koi_lang.freezing.terms import TermBank
from koi_lang.runtime.model_calls.frozen_plans import NUMBER

ROWS = [{"price": 2.5, "count": 3}, {"price": 10.25, "count": 1}, {"price": 4.0, "count": 7}]


def explained(args: list[dict[str, Any]], targets: list[float], playbook: str = "") -> tuple[str, list[AmbiguousError]]:
    """The explanation of some numbers, and what is ambiguous about it."""
    samples = [{"args": each} for each in args]
    known = TermBank(samples, playbook)
    found = list(NumericSearch(known.of_kind(NUMBER)).explain(tuple(targets)))
    ambiguities: list[AmbiguousError] = []
    return choose("the number", found, samples, ambiguities).expression, ambiguities


@pytest.mark.parametrize(
    ("args", "targets", "expression"),
    [
        ([{"a": 3, "b": 40}, {"a": 17, "b": 5}, {"a": 8, "b": 90}], [43, 22, 98], "args.a + args.b"),
        ([{"a": 3, "b": 40}, {"a": 17, "b": 5}, {"a": 8, "b": 90}], [6, 34, 16], "args.a * 2"),
        ([{"a": 3}, {"a": 17}, {"a": 8}], [9, 289, 64], "args.a * args.a"),
        (
            [{"all": 90, "n": 4, "each": 7}, {"all": 31, "n": 3, "each": 5}, {"all": 70, "n": 11, "each": 6}],
            [62, 16, 4],
            "args.all - (args.each * args.n)",
        ),
        ([{"n": [4, 8, 1]}, {"n": [90]}, {"n": [1, 2]}], [3, 1, 2], "args.n.length"),
        ([{"n": [4, 8]}, {"n": [90]}, {"n": [1, 2, 3]}], [12, 90, 6], "args.n.reduce((sum, each) => sum + each, 0)"),
    ],
)
def test_numbers_are_explained(args: list[dict[str, Any]], targets: list[float], expression: str) -> None:
    """By sums and products of two, with constants, by lengths, and by what a list adds up to."""
    assert (expression, []) == explained(args, targets)


def test_amounts_are_rounded() -> None:
    """A sum of products with decimals is rounded as amounts of money are."""
    shown, ambiguities = explained([{"rows": ROWS}, {"rows": ROWS[:2]}, {"rows": ROWS[1:]}], [45.75, 17.75, 38.25])

    assert [] == ambiguities
    assert "Math.round((args.rows.reduce((sum, each) => sum + each.price * each.count, 0)) * 100) / 100" == shown


@pytest.mark.parametrize(
    ("targets", "one", "other"),
    [
        ([9, 49, 144], "args.deep * args.deep", "args.deep * args.wide"),
        ([6, 14, 24], "args.deep * 2", "args.wide * 2"),
        ([90, 343, 1152], "(args.deep * args.tall) * args.deep", "(args.tall * args.wide) * args.deep"),
    ],
)
def test_a_number_with_itself_is_an_explanation(targets: list[float], one: str, other: str) -> None:
    """A product of two that were always equal may be the square of either."""
    args = [{"deep": size, "wide": size, "tall": tall} for size, tall in ((3, 10), (7, 7), (12, 8))]
    _, (ambiguity,) = explained(args, targets)

    assert {one, other} == {ambiguity.one, ambiguity.other}


def test_two_numbers_that_were_always_equal_are_ambiguous() -> None:
    """Both are named, with fields that tell them apart."""
    args = [{"pieces": count, "items": ["x"] * count} for count in (2, 5, 3)]
    _, (ambiguity,) = explained(args, [2, 5, 3])

    assert {"args.pieces", "args.items.length"} == {ambiguity.one, ambiguity.other}
    assert {"pieces", "items"} == set(ambiguity.fields)
