"""Explanations of values, and how two that fit every sample are told apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from koi_lang.freezing.terms import Compute, MissingError, Names, ValuePath, same, value_at

# Samples whose values are changed to tell explanations apart.
MAX_PROBED = 6
MISSING = object()


class UnexplainedError(Exception):
    """Nothing explains a value or a step; the text says which."""


class AmbiguousError(Exception):
    """Two explanations fit every sample and differ somewhere.

    Attributes:
        what: is explained.
        one, other: the explanations, as expressions.
        names: an input that tells them apart.
        fields: of the payload that both depend on.
    """

    def __init__(self, what: str, one: str, other: str, names: Names, fields: Sequence[str]) -> None:
        super().__init__(what)
        self.what = what
        self.one = one
        self.other = other
        self.names = names
        self.fields = fields

    def sentence(self) -> str:
        """What is said of it: both explanations, and an input that tells them apart."""
        args = self.names.get("args")
        inputs = [f"{name}: {short(args[name])}" for name in self.fields if isinstance(args, Mapping) and name in args]
        where = f"run it with {', '.join(inputs)}" if inputs else "run it where these differ"
        return f"{self.what} is `{self.one}` or `{self.other}`; {where}"


def short(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, list):
        return f"[{len(value)} {'entry' if len(value) == 1 else 'entries'}]"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of a value.

    Attributes:
        written: what stands in a plan.
        expression: the same in messages: alone, or a constant as JSON.
        compute: its value. Raises MissingError.
        roots: the places that it depends on.
        size: smaller ones go first.
        compared: places whose texts a condition of it compares, so that only texts that were recorded are known.
    """

    written: Any
    expression: str
    compute: Compute
    roots: tuple[ValuePath, ...] = ()
    size: int = 1
    compared: tuple[ValuePath, ...] = ()


def constant(value: Any) -> Explanation:
    """The explanation by a constant."""
    return Explanation(value, json.dumps(value, ensure_ascii=False), lambda names: value, size=1)


def choose(
    what: str, candidates: Sequence[Explanation], samples: Sequence[Names], ambiguities: list[AmbiguousError]
) -> Explanation:
    """The simplest of some explanations. Raises UnexplainedError where there is none.

    Args:
        ambiguities: is given the first other explanation that is not the same.
    """
    if not candidates:
        raise UnexplainedError(f"nothing explains {what}")
    ordered = sorted(candidates, key=lambda each: (each.size, len(each.expression)))
    first = ordered[0]
    for other in ordered[1:]:
        names = tell_apart(first, other, samples)
        if names is not None:
            roots = (*first.roots, *other.roots)
            fields = list(dict.fromkeys(str(path[1]) for path in roots if path[0] == "args" and len(path) > 1))
            ambiguities.append(AmbiguousError(what, first.expression, other.expression, names, fields))
            break
    return first


def tell_apart(one: Explanation, other: Explanation, samples: Sequence[Names]) -> Names | None:
    """Names for which two explanations give different values; None where none were found."""
    constants = _numbers(one.expression) | _numbers(other.expression)
    places = product(samples[:MAX_PROBED], dict.fromkeys((*one.roots, *other.roots)))
    changed = (each for names, path in places for each in changes(names, path, constants))
    return next((each for each in changed if not same_value(value_of(one, each), value_of(other, each))), None)


def _numbers(text: str) -> set[float]:
    numbers = set[float]()
    for word in text.replace("(", " ").replace(")", " ").split():
        try:
            numbers.add(float(word))
        except ValueError:
            continue
    return numbers


def value_of(candidate: Explanation, names: Names) -> Any:
    """The value of an explanation for some names; `MISSING` where it has none."""
    try:
        return candidate.compute(names)
    except (MissingError, ArithmeticError):
        return MISSING


def same_value(one: Any, other: Any) -> bool:
    """Whether two values of explanations are equal, or both missing."""
    return one is other if one is MISSING or other is MISSING else same(one, other)


def changes(names: Names, path: ValuePath, constants: set[float]) -> Iterator[Names]:
    """The names with other values at a place."""
    try:
        value = value_at(names, path)
    except MissingError:
        return
    for other in other_values(value, constants):
        yield with_value(names, path, other)


def other_values(value: Any, constants: set[float]) -> Iterator[Any]:
    """Other values of the kind of a value, and of the values in it."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield from (value + 1, value * 2 + 3, value + 7)
        yield from (int(each) if each.is_integer() else each for each in sorted(constants))
        yield 0
    elif isinstance(value, str):
        yield from (f"{value}x", "other")
    elif isinstance(value, list):
        yield from (value + value[:1], value[:-1], value + value)
        for index, item in enumerate(value[:2]):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in other_values(item, constants))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from ({**value, name: other} for other in other_values(item, constants))
    else:
        yield from ("other", 1)


def with_value(names: Names, path: ValuePath, value: Any) -> Names:
    """The names with a value at a path; what is not on the way is shared."""

    def put(holder: Any, rest: ValuePath) -> Any:
        if not rest:
            return value
        if isinstance(holder, list):
            index = int(rest[0]) % len(holder)
            return [put(item, rest[1:]) if n == index else item for n, item in enumerate(holder)]
        return {**holder, rest[0]: put(holder[rest[0]], rest[1:])}

    changed: Names = put(names, path)
    return changed
