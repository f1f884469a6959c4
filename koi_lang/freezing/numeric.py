"""Explanations of numbers: terms that are numbers, and `+ - * /` of two or three of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
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
MAX_SIDE_NUMBERS = 24
MAX_FOUND = 60
# How far a number is at most from what it is rounded to.
NEAR = 0.006


@dataclass(frozen=True)
class _Pair:
    one: Term
    mark: str
    operate: Operate
    other: Term

    @cached_property
    def column(self) -> Column | None:
        """Its values, which are computed where the first one fits; None where one of them is none."""
        return _operate(self.operate, self.one.column, self.other.column)

    @cached_property
    def key(self) -> Column:
        """Its values without what their decimals are off; empty without values."""
        return _key(self.column or ())

    @property
    def text(self) -> str:
        return f"{self.one.text} {self.mark} {self.other.text}"

    def compute(self, names: Names) -> Any:
        return _computing(self.operate, self.one.compute, self.other.compute)(names)


@dataclass
class NumericSearch:
    """The terms of some samples that are numbers, and what two of them come to.

    Attributes:
        constants: numbers that a playbook names.
        is_side: whether the samples are those in which a condition holds, or not: these are few, and say little of many
            numbers.
    """

    numbers: Sequence[Term]
    constants: Sequence[float] = ()
    is_side: bool = False

    def __post_init__(self) -> None:
        self.numbers = self.numbers[: MAX_SIDE_NUMBERS if self.is_side else MAX_NUMBERS]

    @cached_property
    def pairs(self) -> dict[Column, list[_Pair]]:
        """Two of the numbers, by what they come to in the first two samples; a number also with itself."""
        pairs: dict[Column, list[_Pair]] = {}
        left = {mark: [_is_neutral(mark, each.column, is_left=True) for each in self.numbers] for mark, _ in OPERATORS}
        right = {mark: [_is_neutral(mark, each.column, is_left=False) for each in self.numbers] for mark in left}
        for (n, one), (m, other) in product(enumerate(self.numbers), repeat=2):
            for mark, operate in OPERATORS if one.varies or other.varies else ():
                # A number twice is what the search with constants finds, and less or by itself it is always the same.
                if (mark in "+*" and one.text > other.text) or (one is other and mark != "*"):
                    continue
                first = _operate(operate, one.column[:2], other.column[:2])
                if first is not None and not left[mark][n] and not right[mark][m]:
                    pairs.setdefault(_key(first), []).append(_Pair(one, mark, operate, other))
        return pairs

    def _pairs_of(self, column: Column) -> Iterator[_Pair]:
        """The pairs that come to some values."""
        key = _key(column)
        yield from (each for each in self.pairs.get(key[:2], ()) if each.key == key)

    def explain(self, targets: Column) -> Iterator[Explanation]:
        """The explanations of some numbers: those of three values only where fewer explain nothing."""
        simple = [*self._same_numbers(targets), *self._with_constants(targets), *self._of_pairs(targets)]
        yield from simple or (() if self.is_side else self._of_three(targets))

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
        pairs = [*self._pairs_of(targets), *(self._pairs_near(targets) if _are_rounded(targets) else ())]
        for pair in pairs[:MAX_FOUND]:
            yield from _candidates_of(pair.text, pair.compute, (pair.one, pair.other), pair.column or (), targets)

    def _pairs_near(self, targets: Column) -> Iterator[_Pair]:
        """Pairs whose values are the targets once they are rounded to two decimals."""
        exact = _key(targets)
        for (first, *_), pairs in self.pairs.items():
            for pair in pairs if abs(first - targets[0]) < NEAR else ():
                column = pair.column
                if column and pair.key != exact and all(map(operator.eq, map(_round, column), targets)):
                    yield pair

    def _with_named(self, named: Sequence[Term], targets: Column) -> Iterator[Explanation]:
        """A pair and a number of the playbook, rounded to two decimals."""
        has_decimals = any(isinstance(each, float) for each in targets) and _are_rounded(targets)
        for term, (mark, operate) in product(named if has_decimals else (), OPERATORS[2:]):
            for (first, *_), pairs in self.pairs.items():
                value = _operate(operate, (first,), term.column[:1])
                for pair in pairs if value and abs(value[0] - targets[0]) < NEAR else ():
                    if (column := pair.column and _operate(operate, pair.column, term.column)) is not None:
                        compute = _computing(operate, pair.compute, term.compute)
                        text = f"({pair.text}) {mark} {term.text}"
                        yield from _candidates_of(text, compute, (pair.one, pair.other, term), column, targets)

    def _of_three(self, targets: Column) -> Iterator[Explanation]:
        """A pair and a third number."""
        if all(same(each, targets[0]) for each in targets):
            return
        count = 0
        named = [Term(str(each), (each,) * len(targets), always(each), (), 0) for each in self.constants]
        yield from self._with_named(named, targets)
        for term, (mark, operate), is_left in product((*self.numbers, *named), OPERATORS, (False, True)):
            if (is_left and mark in "+*") or _is_neutral(mark, term.column, is_left=is_left):
                continue
            # `term - pair` is a target where `term - target` is the pair; so it is with `/`.
            whole, part = (term.column, targets) if is_left else (targets, term.column)
            back = operate if is_left else _inverse(mark)
            first = _operate(back, whole[:2], part[:2])
            has_any = first is not None and _key(first) in self.pairs
            rest = _operate(back, whole, part) if has_any else None
            for pair in self._pairs_of(rest) if rest is not None else ():
                sides = [(pair.compute, pair.column or (), f"({pair.text})"), (term.compute, term.column, term.text)]
                (one, left, before), (other, right, behind) = reversed(sides) if is_left else sides
                column = _operate(operate, left, right)
                if column is not None:
                    text = f"{before} {mark} {behind}"
                    yield from _candidates_of(
                        text, _computing(operate, one, other), (pair.one, pair.other, term), column, targets
                    )
                    count += 1
            if count > MAX_FOUND:
                return


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
        return tuple(map(plain_number, map(operate, left, right)))
    except (ArithmeticError, TypeError):
        return None


def plain_number(value: float) -> float:
    """A number as JSON has it: a whole one without decimals."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _key(column: Column) -> Column:
    return tuple([round(each, 9) for each in column])


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
