"""Explanations of numbers: terms that are numbers, and `+ - * /` of two or three of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Any

from koi_lang.freezing.candidates import Explanation
from koi_lang.freezing.terms import MissingError, Names, Term, always, same

Column = tuple[Any, ...]
Operate = Callable[[Any, Any], Any]
OPERATORS: tuple[tuple[str, Operate], ...] = (
    ("+", operator.add),
    ("-", operator.sub),
    ("*", operator.mul),
    ("/", operator.truediv),
)
# Of a constant that two recordings have in common: a price has two decimals, a rate perhaps three.
MAX_DIGITS = 6
MAX_NUMBERS = 60
MAX_FOUND = 24


@dataclass(frozen=True, slots=True)
class _Pair:
    text: str
    column: Column
    parts: tuple[Term, ...]
    compute: Callable[[Names], Any]


@dataclass
class NumericSearch:
    """The terms of some samples that are numbers, and what two of them come to.

    Attributes:
        constants: numbers that a playbook names.
    """

    numbers: Sequence[Term]
    constants: Sequence[float] = ()

    def __post_init__(self) -> None:
        self.numbers = self.numbers[:MAX_NUMBERS]

    @cached_property
    def pairs(self) -> dict[Column, list[_Pair]]:
        """What two of the numbers come to, by the values."""
        pairs: dict[Column, list[_Pair]] = {}
        for one, other in permutations(self.numbers, 2):
            if one.varies or other.varies:
                _add_pairs(pairs, one, other)
        return pairs

    def explain(self, targets: Column) -> Iterator[Explanation]:
        """The explanations of some numbers: those of three values only where fewer explain nothing."""
        simple = [*self._same_numbers(targets), *self._with_constants(targets), *self._of_pairs(targets)]
        yield from simple or self._of_three(targets)

    def _same_numbers(self, targets: Column) -> Iterator[Explanation]:
        for term in self.numbers:
            if term.is_sum:
                yield from _candidates_of(term.text, term.compute, (term,), term.column, targets)
            elif all(map(same, term.column, targets)):
                yield Explanation(f"${{{term.text}}}", term.text, term.compute, term.roots, term.size)

    def _with_constants(self, targets: Column) -> Iterator[Explanation]:
        """A term that is a number and a constant that is the same in every sample."""
        if all(same(each, targets[0]) for each in targets):
            return
        for term in self.numbers:
            if not term.varies:
                continue
            for mark, operate in OPERATORS:
                number = _solve(mark, term.column[0], targets[0])
                if number is None:
                    continue
                column = _operate(operate, term.column, (number,) * len(targets))
                if column is not None:
                    compute = _computing(operate, term.compute, always(number))
                    text = f"{term.text} {mark} {number}"
                    yield from _candidates_of(text, compute, (term,), column, targets)

    def _of_pairs(self, targets: Column) -> Iterator[Explanation]:
        if all(same(each, targets[0]) for each in targets):
            return
        rounded = _are_rounded(targets)
        pairs = self.pairs.get(_key(targets), [])
        if rounded:
            pairs = [*pairs, *self._pairs_near(targets)]
        for pair in pairs[:MAX_FOUND]:
            yield from _candidates_of(pair.text, pair.compute, pair.parts, pair.column, targets)

    def _pairs_near(self, targets: Column) -> list[_Pair]:
        """Pairs whose values are the targets once they are rounded to two decimals."""
        exact = _key(targets)
        return [
            pair
            for key, pairs in self.pairs.items()
            if key != exact and all(abs(one - other) < 0.006 for one, other in zip(key, targets, strict=True))
            for pair in pairs
            if all(_round(one) == other for one, other in zip(pair.column, targets, strict=True))
        ]

    def _with_named(self, named: Sequence[Term], targets: Column) -> Iterator[Explanation]:
        """A pair and a number of the playbook, rounded to two decimals."""
        has_decimals = any(isinstance(each, float) for each in targets) and _are_rounded(targets)
        for term, (mark, operate) in product(named if has_decimals else (), OPERATORS[2:]):
            for pairs in self.pairs.values():
                column = _operate(operate, pairs[0].column, term.column)
                if column is None or any(abs(one - two) > 0.006 for one, two in zip(column, targets, strict=True)):
                    continue
                for pair in pairs:
                    compute = _computing(operate, pair.compute, term.compute)
                    text = f"({pair.text}) {mark} {term.text}"
                    yield from _candidates_of(text, compute, (*pair.parts, term), column, targets)

    def _of_three(self, targets: Column) -> Iterator[Explanation]:
        """A pair and a third number."""
        if all(same(each, targets[0]) for each in targets):
            return
        count = 0
        named = [Term(str(each), (each,) * len(targets), always(each), (), 0) for each in self.constants]
        yield from self._with_named(named, targets)
        for term, (mark, operate) in product((*self.numbers, *named), OPERATORS):
            if _is_neutral(mark, term.column, is_left=False):
                continue
            rest = _operate(_inverse(mark), targets, term.column)
            pairs = self.pairs.get(_key(rest), []) if rest is not None else ()
            for pair in (each for each in pairs if term not in each.parts):
                text = f"({pair.text}) {mark} {term.text}"
                compute = _computing(operate, pair.compute, term.compute)
                column = _operate(operate, pair.column, term.column)
                if column is not None:
                    yield from _candidates_of(text, compute, (*pair.parts, term), column, targets)
                    count += 1
            if count > MAX_FOUND:
                return


def _add_pairs(pairs: dict[Column, list[_Pair]], one: Term, other: Term) -> None:
    for mark, operate in OPERATORS:
        if mark in "+*" and one.text > other.text:
            continue
        if _is_neutral(mark, one.column, is_left=True) or _is_neutral(mark, other.column, is_left=False):
            continue
        column = _operate(operate, one.column, other.column)
        if column is not None:
            compute = _computing(operate, one.compute, other.compute)
            text = f"{one.text} {mark} {other.text}"
            pairs.setdefault(_key(column), []).append(_Pair(text, column, (one, other), compute))


def _candidates_of(
    text: str, compute: Callable[[Names], Any], parts: tuple[Term, ...], column: Column, targets: Column
) -> Iterator[Explanation]:
    """An expression, rounded as amounts of money are where its numbers have decimals."""
    roots = tuple(root for part in parts for root in part.roots)
    size = 1 + sum(part.size for part in parts)
    has_decimals = any(isinstance(each, float) and not each.is_integer() for each in (*column, *targets))
    if (
        has_decimals
        and _are_rounded(targets)
        and all(_round(one) == two for one, two in zip(column, targets, strict=True))
    ):
        written = f"Math.round(({text}) * 100) / 100"
        yield Explanation(f"${{{written}}}", written, lambda names: _round(compute(names)), roots, size)
    elif all(map(same, column, targets)):
        yield Explanation(f"${{{text}}}", text, compute, roots, size)


def _computing(operate: Operate, one: Callable[[Names], Any], other: Callable[[Names], Any]) -> Callable[[Names], Any]:
    def compute(names: Names) -> Any:
        try:
            return plain_number(operate(one(names), other(names)))
        except (ArithmeticError, TypeError) as error:
            raise MissingError from error

    return compute


def _operate(operate: Operate, left: Column, right: Column) -> Column | None:
    try:
        return tuple(plain_number(operate(one, other)) for one, other in zip(left, right, strict=True))
    except (ArithmeticError, TypeError):
        return None


def plain_number(value: float) -> float:
    """A number as JSON has it: a whole one without decimals."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _key(column: Column) -> Column:
    return tuple(round(each, 9) for each in column)


def _round(value: float) -> float:
    """As `Math.round(value * 100) / 100` does."""
    return plain_number(math.floor(value * 100 + 0.5) / 100)


def _are_rounded(targets: Column) -> bool:
    return all(isinstance(each, (int, float)) and _round(each) == each for each in targets)


def _is_neutral(mark: str, column: Column, *, is_left: bool) -> bool:
    """Whether a column changes nothing as an operand."""
    if mark in "+-":
        return all(each == 0 for each in column) and not (is_left and mark == "-")
    return all(each == 1 for each in column) and not (is_left and mark == "/")


def _inverse(mark: str) -> Operate:
    return {"+": operator.sub, "-": operator.add, "*": operator.truediv, "/": operator.mul}[mark]


def _solve(mark: str, term: float, target: float) -> float | None:
    """The constant that brings a number to a target; None where it is none that a person would write."""
    try:
        number = {"+": target - term, "-": term - target, "*": target / term, "/": term / target}[mark]
    except (ArithmeticError, KeyError):
        return None
    number = plain_number(round(number, MAX_DIGITS))
    is_neutral = number == (0 if mark in "+-" else 1) or number == 0
    # `- 3` says `+ -3`, and a whole factor says a division by its inverse.
    is_other_form = (
        (mark in "+-" and number < 0)
        or (mark == "/" and abs(number) < 1)
        or (mark == "*" and abs(number) < 1 and number and (1 / number).is_integer())
    )
    return None if is_neutral or is_other_form or not math.isfinite(number) else number
