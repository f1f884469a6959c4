"""Terms: expressions over the payload, the state and earlier results, with their values in every sample."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement, permutations, product
from typing import Any

from koi_lang.llm.rehearsal.languages import compile_needs, merge
from koi_lang.runtime.model_calls.frozen_plans import NUMBER, TEXT, TRUTH, kind_of_value

Names = Mapping[str, Any]
ValuePath = tuple[str | int, ...]
Compute = Callable[[Names], Any]
Predicate = Callable[[Any], bool]
ORDERS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
    ("<", operator.lt),
    ("<=", operator.le),
    (">", operator.gt),
    (">=", operator.ge),
)
MAX_DEPTH = 5
# More values than these explain too much.
MAX_VALUES = 1500
MAX_INDEXED = 4
# Texts that a field of a list is compared with.
MAX_TEXTS = 8
PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$]*")
SEPARATORS = (", ", ",", "; ", " ", "\n", " and ")
NUMBERS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)")
# Numbers that count steps at the beginning of a line are none of what a playbook says.
STEP_NUMBER = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
# Numbers of steps rather than of values.
TIMES = frozenset({"twice", "thrice"})
EACH = "each"


class MissingError(Exception):
    """A value is not there in a sample."""


@dataclass(frozen=True)
class Term:
    """An expression whose value is known in every sample.

    Attributes:
        column: its values.
        compute: its value for other names. Raises MissingError where it has none.
        roots: the places that it depends on.
        size: how many values it is made of.
        whole: the same term in more samples, of which its own are a part.
    """

    text: str
    column: tuple[Any, ...]
    compute: Compute
    roots: tuple[ValuePath, ...]
    size: int = 1
    whole: Term | None = None

    @property
    def is_sum(self) -> bool:
        """Whether it was added up, so that decimals may be off."""
        return ".reduce(" in self.text

    @cached_property
    def varies(self) -> bool:
        """Whether its values differ."""
        can_vary = self.whole is None or self.whole.varies
        return can_vary and any(not same(each, self.column[0]) for each in self.column[1:])

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of its values."""
        if self.whole is not None and len(self.whole.kinds) == 1:
            return self.whole.kinds
        one_of_each = dict(zip(map(type, self.column), self.column, strict=True))
        return frozenset(map(kind_of_value, one_of_each.values()))

    def pick(self, places: Sequence[int]) -> Term:
        """The same term for the samples at some places."""
        column = tuple([self.column[place] for place in places])
        return Term(self.text, column, self.compute, self.roots, self.size, self)


class Repeated(list[Any]):
    """The results of a loop: there are as many as its list has items."""


def same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are equal; a truth value is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def value_at(names: Names, path: ValuePath) -> Any:
    """The value at a path. Raises MissingError."""
    value: Any = names
    for part in path:
        is_there = part in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(part, int)
        if not is_there or (isinstance(value, list) and not -len(value) <= int(part) < len(value)):
            raise MissingError
        value = value[part]
    return value


def path_text(path: ValuePath) -> str:
    """A path as an expression."""
    text = str(path[0])
    for part in path[1:]:
        if isinstance(part, int):
            text += f"[{part}]" if part >= 0 else f".at({part})"
        elif PLAIN_NAME.fullmatch(part):
            text += f".{part}"
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def numbers_in(playbook: str) -> tuple[float, ...]:
    """The numbers that a playbook names, in digits or as words; `one` may be an article."""
    plain = STEP_NUMBER.sub("", playbook)
    numbers = {float(each) for each in NUMBERS.findall(plain)}
    values = {**merge("numbers"), **merge("numbers", "freezing")}
    words = (word for word in re.findall(r"\w+", plain.lower()) if word not in TIMES)
    numbers |= {float(values[word]) for word in words if values.get(word, 0) > 1}
    return tuple(sorted(int(each) if each.is_integer() else each for each in numbers))


def names_text(playbook: str, text: str) -> bool:
    """Whether a text stands in a playbook as words of its own, in any letter case."""
    return bool(text) and re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", playbook, re.IGNORECASE) is not None


@dataclass(slots=True)
class TermBank:
    """The terms of some samples.

    Args:
        samples: names with their values, such as `args`.
        playbook: its text; numbers and words in it are what values are compared with.
        walks: of values that banks have in common.
    """

    samples: Sequence[Names]
    playbook: str
    walks: Walks = field(default_factory=dict)
    all: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in self.samples[0] if not self.all else ():
            if all(name in sample for sample in self.samples):
                self.all += self._terms_of(name)
        del self.all[MAX_VALUES:]

    def _terms_of(self, name: str) -> Sequence[Term]:
        """The terms of a name. The bodies of a loop have most of their values in common: each is looked at once."""
        places: dict[int, int] = {}
        order = [places.setdefault(id(sample[name]), len(places)) for sample in self.samples]
        walk = self.walks.get((name, *places))
        if walk is None:
            distinct = {id(sample[name]): {name: sample[name]} for sample in self.samples}
            walk = self.walks[name, *places] = TermWalk(list(distinct.values()), self.playbook)
            is_result = all(isinstance(each[name], dict) and each[name].keys() == {"output"} for each in walk.samples)
            walk.go((name, "output") if is_result else (name,), 0)
        return walk.terms if len(order) == len(places) else [each.pick(order) for each in walk.terms]

    def take(self, places: Sequence[int]) -> TermBank:
        """The bank of the samples at some places."""
        samples = [self.samples[place] for place in places]
        return replace(self, samples=samples, all=[each.pick(places) for each in self.all])

    def of_kind(self, kind: str) -> list[Term]:
        """Those whose values are all of a kind."""
        return [each for each in self.all if each.kinds == {kind}]

    @property
    def lists(self) -> list[Term]:
        """Those that are lists in the samples themselves, or are made of them."""
        return self.of_kind("list")


@dataclass(slots=True)
class TermWalk:
    """The terms of the values under one name."""

    samples: Sequence[Names]
    playbook: str
    terms: list[Term] = field(default_factory=list)
    _columns: set[str] = field(default_factory=set)

    def go(self, path: ValuePath, depth: int) -> None:
        """Add the terms of the values at a path, and of those in them."""
        try:
            column = tuple(value_at(names, path) for names in self.samples)
        except MissingError:
            return
        self._add(Term(path_text(path), column, lambda names: value_at(names, path), (path,)))
        if depth >= MAX_DEPTH:
            return
        if all(isinstance(each, dict) for each in column):
            for name in column[0]:
                self.go((*path, name), depth + 1)
        elif all(isinstance(each, list) for each in column):
            lengths = {len(each) for each in column}
            count = min(lengths) if len(lengths) == 1 else min(1, *lengths)
            for index in range(min(count, MAX_INDEXED)):
                self.go((*path, index), depth + 1)
            if len(lengths) > 1 and 0 not in lengths and compile_needs("last", "freezing").search(self.playbook):
                self.go((*path, -1), depth + 1)
            self._add_list(path, column)

    def _add(self, term: Term) -> None:
        if term.text not in self._columns:
            self._columns.add(term.text)
            self.terms.append(term)

    def _add_computed(self, text: str, path: ValuePath, work: Callable[[list[Any]], Any], size: int = 1) -> None:
        def compute(names: Names) -> Any:
            try:
                return work(value_at(names, path))
            except (KeyError, TypeError) as error:
                raise MissingError from error

        try:
            column = tuple(compute(names) for names in self.samples)
        except MissingError:
            return
        self._add(Term(text, column, compute, (path,), size))

    # ------------------------------------------------------------ lists

    def _add_list(self, path: ValuePath, column: Sequence[list[Any]]) -> None:
        text = path_text(path)
        items = [item for each in column for item in each]
        if not isinstance(column[0], Repeated):
            self._add_computed(f"{text}.length", path, len)
        kinds = {kind_of_value(item) for item in items}
        if kinds == {NUMBER}:
            self._add_computed(f"{text}.reduce((sum, {EACH}) => sum + {EACH}, 0)", path, sum)
        if kinds == {TEXT}:
            self._add_joined(text, path, lambda values: values)
        if kinds == {"object"}:
            self._add_objects(text, path, items)

    def _add_joined(self, text: str, path: ValuePath, texts_of: Callable[[list[Any]], list[str]]) -> None:
        for separator in SEPARATORS:
            self._add_computed(f"{text}.join({json.dumps(separator)})", path, _join_with(separator, texts_of))

    def _add_objects(self, text: str, path: ValuePath, items: Sequence[Mapping[str, Any]]) -> None:
        names = [name for name in items[0] if PLAIN_NAME.fullmatch(name) and all(name in item for item in items)]
        kinds = {name: {kind_of_value(item[name]) for item in items} for name in names}
        numeric = [name for name in names if kinds[name] == {NUMBER}]
        for name in numeric:
            self._add_computed(f"{text}.reduce((sum, {EACH}) => sum + {EACH}.{name}, 0)", path, _sum_of(name))
        for one, other in combinations_with_replacement(numeric, 2):
            reduced = f"{text}.reduce((sum, {EACH}) => sum + {EACH}.{one} * {EACH}.{other}, 0)"
            self._add_computed(reduced, path, _sum_of(one, other), 2)
        self._add_mapped(text, path, names, kinds, lambda values: values)
        for condition, holds in item_conditions(items, names, self.playbook):
            if len(set(map(holds, items))) < 2:
                continue
            filtered, keep = f"{text}.filter({EACH} => {condition})", _filter(holds)
            self._add_computed(filtered, path, keep, 2)
            self._add_computed(f"{filtered}.length", path, _after(keep, len), 2)
            for name in numeric:
                reduced = f"{filtered}.reduce((sum, {EACH}) => sum + {EACH}.{name}, 0)"
                self._add_computed(reduced, path, _after(keep, _sum_of(name)), 3)
            self._add_mapped(filtered, path, names, kinds, keep)

    def _add_mapped(
        self,
        text: str,
        path: ValuePath,
        names: Sequence[str],
        kinds: Mapping[str, set[str]],
        keep: Callable[[list[Any]], list[Any]],
    ) -> None:
        for name in names:
            mapped = f"{text}.map({EACH} => {EACH}.{name})"

            def pick(values: list[Any], name: str = name) -> list[Any]:
                return [value[name] for value in keep(values)]

            self._add_computed(mapped, path, pick, 2)
            if kinds[name] == {TEXT}:
                self._add_joined(mapped, path, pick)


# By a name and the identities of the values under it, which the walks keep.
Walks = dict[tuple[str | int, ...], TermWalk]


def item_conditions(
    items: Sequence[Mapping[str, Any]], names: Sequence[str], playbook: str
) -> Iterator[tuple[str, Predicate]]:
    """Conditions on the items of a list: a truth value, a text or number of the playbook, two numbers of an item."""
    numbers = (*numbers_in(playbook), 0)
    numeric = list[str]()
    for name in names:
        kinds = {kind_of_value(item[name]) for item in items}
        value = _field(name)
        if kinds == {TRUTH}:
            yield f"{EACH}.{name}", value
            yield f"!{EACH}.{name}", negate(value)
        elif kinds == {TEXT}:
            texts = sorted({item[name] for item in items})[:MAX_TEXTS]
            for text in (each for each in texts if names_text(playbook, each)):
                written = json.dumps(text, ensure_ascii=False)
                yield f"{EACH}.{name} === {written}", comparing(operator.eq, value, always(text))
        elif kinds == {NUMBER}:
            numeric.append(name)
            for number, (mark, compare) in product(numbers, ORDERS):
                yield f"{EACH}.{name} {mark} {number}", comparing(compare, value, always(number))
    for (one, other), (mark, compare) in product(permutations(numeric, 2), ORDERS[:2]):
        yield f"{EACH}.{one} {mark} {EACH}.{other}", comparing(compare, _field(one), _field(other))


def _field(name: str) -> Callable[[Any], Any]:
    return lambda item: item[name]


def negate(value: Callable[[Any], Any]) -> Predicate:
    """The opposite of what a function computes."""
    return lambda names: not value(names)


def always(value: Any) -> Callable[[Any], Any]:
    """A constant as a function of names."""
    return lambda names: value


def comparing(compare: Callable[[Any, Any], bool], one: Callable[[Any], Any], other: Callable[[Any], Any]) -> Predicate:
    """The comparison of what two functions compute."""
    return lambda names: bool(compare(one(names), other(names)))


def _sum_of(*names: str) -> Callable[[list[Any]], Any]:
    return lambda values: sum(math.prod(value[name] for name in names) for value in values)


def _join_with(separator: str, texts_of: Callable[[list[Any]], list[str]]) -> Callable[[list[Any]], str]:
    return lambda values: separator.join(texts_of(values))


def _after(first: Callable[[list[Any]], list[Any]], then: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: then(first(values))


def _filter(holds: Predicate) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value for value in values if holds(value)]
