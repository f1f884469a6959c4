"""Explanations of the fields of actions: numbers, texts, lists and objects, each perhaps with a condition."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, product
from typing import Any

from koi_lang.freezing.candidates import AmbiguousError, Explanation, UnexplainedError, choose, constant
from koi_lang.freezing.numeric import NumericSearch, plain_number
from koi_lang.freezing.terms import (
    ORDERS,
    Names,
    Term,
    TermBank,
    ValuePath,
    Walks,
    always,
    comparing,
    names_text,
    negate,
    numbers_in,
    same,
)
from koi_lang.freezing.wording import days_in
from koi_lang.runtime.model_calls.frozen_plans import NUMBER, TEXT, TRUTH, kind_of_value
from koi_lang.runtime.playbook.holes import texts_in
from koi_lang.runtime.prompts import value_text
from koi_lang.system.interpolation import HOLE

MAX_COMPARED = 24
# Of a comparison of two terms; one with a constant is smaller.
PAIR_SIZE = 4
COMPARISONS = (*ORDERS, ("===", operator.eq))


Holds = tuple[bool, ...]


class Conditions:
    """The comparisons of terms that hold in some samples alone, by where they do; each is written when it is asked for.

    Attributes:
        simple: those of one term.
        of_pairs: those of two terms.
    """

    def __init__(self, terms: TermBank) -> None:
        numbers = [each for each in terms.of_kind(NUMBER) if each.size == 1][:MAX_COMPARED]
        self.simple, self.of_pairs = Comparisons(), Comparisons()
        for each in terms.of_kind(TRUTH):
            for text, compute in ((each.text, each.compute), (f"!{each.text}", negate(each.compute))):
                holds = tuple(value is (compute is each.compute) for value in each.column)
                self.simple.add(holds, partial(Explanation, text, text, compute, each.roots))
        for each in terms.of_kind(TEXT):
            for text in sorted(set(each.column)) if each.varies and each.size == 1 else ():
                written = f"{each.text} === {json.dumps(text, ensure_ascii=False)}"
                equals = comparing(operator.eq, each.compute, always(text))
                write = partial(Explanation, written, written, equals, each.roots, compared=each.roots)
                self.simple.add(tuple([value == text for value in each.column]), write)
        for each, number in product(numbers, dict.fromkeys((0, *numbers_in(terms.playbook)))):
            if each.varies:
                self.simple.compare(
                    each, Term(str(number), (number,) * len(each.column), always(number), ()), PAIR_SIZE - 1
                )
        for one, other in combinations(numbers, 2):
            if one.varies or other.varies:
                self.of_pairs.compare(one, other, PAIR_SIZE)

    def separating(self, wanted: Sequence[bool]) -> list[Explanation]:
        """The comparisons that hold in just some samples."""
        holds = tuple(wanted)
        return [write() for write in (*self.simple.get(holds, ()), *self.of_pairs.get(holds, ()))]


class Comparisons(dict[tuple[bool, ...], list[Callable[[], Explanation]]]):
    """Comparisons by where they hold; what holds everywhere or nowhere is none."""

    def add(self, holds: tuple[bool, ...], write: Callable[[], Explanation]) -> None:
        """Add a comparison."""
        if True in holds and False in holds:
            self.setdefault(holds, []).append(write)

    def compare(self, one: Term, other: Term, size: int) -> None:
        """Add the comparisons of two numbers."""
        roots = (*one.roots, *other.roots)
        for mark, holds_for in COMPARISONS:
            text = f"{one.text} {mark} {other.text}"
            compute = comparing(holds_for, one.compute, other.compute)
            self.add(
                tuple(map(holds_for, one.column, other.column)), partial(Explanation, text, text, compute, roots, size)
            )


WRITTEN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Kinds of values that stand in texts as they are.
WRITTEN_KINDS = frozenset({NUMBER, TEXT, TRUTH})
# Ways to read a text as what is the same in all samples and terms; more are not looked for.
MAX_READINGS = 8
# Places at which reading was tried.
MAX_STEPS = 20_000

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A term in a text: its expression, and how it is written."""

    text: str
    texts: tuple[str, ...]
    compute: Callable[[Names], str]
    term: Term | Explanation
    varies: bool


def text_parts(terms: Sequence[Term], targets: tuple[str, ...]) -> Iterator[TextPart]:
    """The terms that stand in each of some texts, as they are written there; amounts also with two decimals."""
    for each in terms:
        if not each.kinds <= WRITTEN_KINDS:
            continue
        texts = _texts_in(targets, each.column, value_text)
        if texts:
            yield TextPart(each.text, texts, _as_text(each.compute), each, each.varies)
        fixed = _texts_in(targets, each.column, "{:.2f}".format) if each.kinds == {NUMBER} else None
        if fixed and fixed != texts:
            yield TextPart(f"({each.text}).toFixed(2)", fixed, _as_amount(each.compute), each, each.varies)


def _texts_in(targets: tuple[str, ...], column: Sequence[Any], write: Callable[[Any], str]) -> tuple[str, ...] | None:
    """Values as texts, not all of them empty; None where one is no part of its target."""
    texts: list[str] = []
    for target, value in zip(targets, column, strict=True):
        texts.append(write(value))
        if texts[-1] not in target:
            return None
    return tuple(texts) if any(texts) else None


def _as_text(compute: Callable[[Names], Any]) -> Callable[[Names], str]:
    return lambda names: value_text(compute(names))


def _as_amount(compute: Callable[[Names], Any]) -> Callable[[Names], str]:
    return lambda names: f"{float(compute(names)):.2f}"


@dataclass(slots=True)
class TextSearch:
    """The readings of texts of some samples."""

    parts: Sequence[TextPart]
    numbers: Callable[[], NumericSearch]
    _steps: int = 0
    _dead: set[Positions] = field(default_factory=set)

    def explain(self, targets: tuple[str, ...]) -> Iterator[Explanation]:
        """The explanations of texts; a constant is none of them."""
        if any(HOLE.search(each) or "${" in each for each in targets):
            return
        self._steps, self._dead = 0, set()
        for count, reading in enumerate(self._read(targets)):
            if any(isinstance(each, TextPart) for each in reading):
                yield candidate_of(reading)
            if count == MAX_READINGS:
                return

    def _read(self, targets: tuple[str, ...]) -> Iterator[list[str | TextPart]]:
        """The ways to divide texts into letters that all of them have and values; depth first, without recursion."""
        ends, path = tuple(map(len, targets)), list[str | TextPart]()
        start = (0,) * len(targets)
        open_places = [(start, self._choices(targets, start))]
        ended = 0  # how many of the open places lead to the end of the texts
        while open_places:
            at, choices = open_places[-1]
            part, behind = next(choices, ("", at))
            if behind == at:  # nothing else fits here
                open_places.pop()
                if ended <= len(open_places):
                    self._dead.add(at)
                ended = min(ended, len(open_places))
                del path[-1:]
            elif behind == ends:
                ended = len(open_places)
                yield [*path, part]
            elif behind not in self._dead and self._steps < MAX_STEPS:
                self._steps += 1
                path.append(part)
                open_places.append((behind, self._choices(targets, behind)))

    def _choices(self, targets: tuple[str, ...], at: Positions) -> Iterator[tuple[str | TextPart, Positions]]:
        """What may stand in all texts at a place, each with the place behind it."""
        for part in self._fitting(targets, at):
            yield part, tuple(place + len(text) for place, text in zip(at, part.texts, strict=True))
        first = {text[place : place + 1] for place, text in zip(at, targets, strict=True)}
        if len(first) == 1 and "" not in first:
            yield first.pop(), tuple(place + 1 for place in at)

    def _fitting(self, targets: tuple[str, ...], at: Positions) -> Iterator[TextPart]:
        """The values that stand in all texts at a place."""
        for part in self.parts:
            placed = zip(targets, at, part.texts, strict=True)
            fits = all(text.startswith(value, place) for text, place, value in placed)
            if fits and (part.varies or self._is_word(targets, at, part.texts)):
                yield part
        yield from self._number_parts(targets, at)

    def _is_word(self, targets: tuple[str, ...], at: Positions, texts: tuple[str, ...]) -> bool:
        """Whether a value that is always the same stands between marks and blanks."""
        for text, place, value in zip(targets, at, texts, strict=True):
            end = place + len(value)
            before, behind = text[place - 1 : place], text[end : end + 1]
            if (before.isalnum() and value[:1].isalnum()) or (behind.isalnum() and value[-1:].isalnum()):
                return False
        return True

    def _number_parts(self, targets: tuple[str, ...], at: Positions) -> Iterator[TextPart]:
        """Numbers in the texts that terms that are numbers come to."""
        matches = [WRITTEN_NUMBER.match(text, place) for text, place in zip(targets, at, strict=True)]
        if any(each is None or each.string[each.start() - 1 : each.start()].isdigit() for each in matches):
            return
        texts = tuple(each[0] for each in matches if each is not None)
        if len(set(texts)) == 1:
            return
        column = tuple(plain_number(float(text)) for text in texts)
        positive = tuple(-each for each in column if each < 0)
        if any(term.column == positive for term in self.numbers().numbers):
            return  # a number behind a dash, as in `order-${args.id}`
        plain = {term.text for term in self.numbers().numbers}
        for candidate in self.numbers().explain(column):
            if candidate.expression in plain:
                continue
            if all(value_text(value) == text for value, text in zip(column, texts, strict=True)):
                yield TextPart(candidate.expression, texts, _as_text(candidate.compute), candidate, varies=True)
            if all(f"{value:.2f}" == text for value, text in zip(column, texts, strict=True)):
                amount = f"({candidate.expression}).toFixed(2)"
                yield TextPart(amount, texts, _as_amount(candidate.compute), candidate, varies=True)


def candidate_of(reading: Sequence[str | TextPart]) -> Explanation:
    """A reading as an explanation."""
    parts = [each for each in reading if isinstance(each, TextPart)]
    written = "".join(each if isinstance(each, str) else f"${{{each.text}}}" for each in reading)
    if len(reading) == 1 and parts:
        is_text = all(isinstance(value, str) for value in getattr(parts[0].term, "column", (0,)))
        written = written if is_text or ".toFixed(" in written else f"${{String({parts[0].text})}}"

    def compute(names: Names) -> str:
        return "".join(each if isinstance(each, str) else each.compute(names) for each in reading)

    roots = tuple(root for part in parts for root in part.term.roots)
    expression = written if len(reading) > 1 else parts[0].text
    return Explanation(written, expression, compute, roots, 1 + sum(part.term.size for part in parts))


# Samples on each side of a condition within a value.
MIN_SIDE = 2
MAX_DIVISIONS = 16
# Of all conditions together.
MAX_SIDES = 160
# Recordings in which a short constant is none by chance, and words from which on a text is not short.
MIN_CONSTANT = 5
MIN_WORDS = 3


@dataclass
class Searches:
    """The searches among some terms, for as many values as there are.

    Args:
        is_side: whether the samples are those in which a condition holds, or not.
    """

    terms: TermBank
    cache: SearchCache
    is_side: bool = False

    @cached_property
    def numbers(self) -> NumericSearch:
        """The search for numbers, by the terms that are numbers."""
        return NumericSearch(self.terms.of_kind(NUMBER), numbers_in(self.terms.playbook), is_side=self.is_side)

    @cached_property
    def conditions(self) -> Conditions:
        """The comparisons of terms."""
        return Conditions(self.terms)

    def texts(self, targets: tuple[str, ...]) -> Iterator[Explanation]:
        """The explanations of texts, by all terms."""
        return TextSearch(list(text_parts(self.terms.all, targets)), lambda: self.numbers).explain(targets)

    def side(self, places: Sequence[int]) -> Searches:
        """The searches among those samples in which a condition holds, or not. Raises UnexplainedError."""
        self.cache.sides += 1
        if self.cache.sides > MAX_SIDES:
            raise UnexplainedError("the recordings differ in more ways than are looked for")
        return Searches(self.terms.take(places), self.cache, is_side=True)


class SearchCache:
    """The searches of one playbook, by the identities of the values in their samples, which these keep.

    Attributes:
        sides: of conditions, how many were looked at.
    """

    def __init__(self, playbook: str) -> None:
        self.sides = 0
        self._playbook = playbook
        self._walks: Walks = {}
        self._searches: dict[tuple[int, ...], Searches] = {}

    def searches(self, samples: Sequence[Names]) -> Searches:
        """The searches among the terms of some samples."""
        key = tuple(id(value) for each in samples for value in each.values())
        if key not in self._searches:
            self._searches[key] = Searches(TermBank(samples, self._playbook, self._walks), self)
        return self._searches[key]


@dataclass
class ValueExplainer:
    """Explains values in some samples.

    Args:
        searches: among the terms of the samples.
        today: what the models were told of the day.
        has_conditions: whether a value may depend on a condition.

    Attributes:
        compared: places that a condition compares with texts.
        ambiguities: of values that were explained, each by the simplest of several explanations.
    """

    searches: Searches
    today: Sequence[str]
    has_conditions: bool = True
    compared: set[ValuePath] = field(default_factory=set)
    ambiguities: list[AmbiguousError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.terms = self.searches.terms
        self.samples, self.playbook = self.terms.samples, self.terms.playbook

    def explain(self, what: str, targets: Sequence[Any]) -> Any:
        """What stands in a plan for a value. Raises UnexplainedError.

        Args:
            what: is explained, for messages.
            targets: its values in the samples.
        """
        written, compared = self._explain_values(what, tuple(targets))
        self.compared |= compared
        return written

    def _explain_values(self, what: str, targets: tuple[Any, ...]) -> tuple[Any, set[ValuePath]]:
        candidates = list(self._candidates(targets))
        if candidates:
            chosen = choose(what, candidates, self.samples, self.ambiguities)
            self._require_shown(what, chosen)
            self._require_lasting(chosen.written)
            return chosen.written, set(chosen.compared)
        parts = _parts_of(targets)
        if parts is not None:
            return self._explain_parts(what, parts, targets)
        joined: list[Explanation] = []
        if self.has_conditions:  # one of two terms only where none of one term fits
            join = partial(self._join_by, what, targets)
            joined = join(self.searches.conditions.simple) or join(self.searches.conditions.of_pairs)
        if not joined:
            raise UnexplainedError(f"nothing explains {what}, such as {short_value(targets[0])}")
        chosen = choose(what, joined, self.samples, self.ambiguities)
        return chosen.written, set(chosen.compared)

    def _candidates(self, targets: tuple[Any, ...]) -> Iterator[Explanation]:
        first = targets[0]
        has_holes = any(HOLE.search(text) for text in texts_in([first]))
        has_parts = isinstance(first, (dict, list)) and bool(first)  # each of them is explained by itself
        if not (has_holes or has_parts) and all(same(each, targets[0]) for each in targets):
            yield constant(first)
        kinds = {kind_of_value(each) for each in targets}
        if kinds == {NUMBER}:
            yield from self.searches.numbers.explain(targets)
            return
        for term in self.terms.all:
            if all(map(same, term.column, targets)):
                yield Explanation(f"${{{term.text}}}", term.text, term.compute, term.roots, term.size)
        if kinds == {TRUTH} and len(set(targets)) == 2:
            plain = {term.text for term in self.terms.all}
            for each in self.searches.conditions.separating(targets):
                if each.expression not in plain:
                    yield replace(each, written=f"${{{each.expression}}}")
        if kinds == {TEXT}:
            plain = {term.text for term in self.terms.all if all(map(same, term.column, targets))}
            yield from (each for each in self.searches.texts(targets) if each.expression not in plain)

    def _require_shown(self, what: str, chosen: Explanation) -> None:
        """Raise UnexplainedError for a short constant that few recordings have and the playbook does not name."""
        value = chosen.written
        is_short = isinstance(value, (bool, int, float)) or (
            isinstance(value, str) and 0 < len(value.split()) < MIN_WORDS
        )
        if chosen.roots or not is_short or len(self.samples) >= MIN_CONSTANT:
            return
        if isinstance(value, bool) or not names_text(self.playbook, str(value)):
            needed = f"{MIN_CONSTANT} recordings are needed to say so"
            raise UnexplainedError(f"{what} was always {short_value(value)}, and {needed}")

    def _require_lasting(self, written: Any) -> None:
        """Raise UnexplainedError for a constant, or one in a text, that may be the day of its recordings."""
        for text in [*texts_in([written]), *([str(written)] if kind_of_value(written) == NUMBER else [])]:
            plain = HOLE.sub("", text)
            days = (day for today in self.today for day in days_in(plain, today))
            if day := next((each for each in days if each.lower() not in self.playbook.lower()), ""):
                raise UnexplainedError(f"`{day}` may be the day of the recording, which plans do not know")

    def _explain_parts(
        self, what: str, parts: Mapping[Any, tuple[Any, ...]], targets: tuple[Any, ...]
    ) -> tuple[Any, set[ValuePath]]:
        compared: set[ValuePath] = set()
        written: dict[Any, Any] = {}
        self._require_lasting([name for name in parts if isinstance(name, str)])
        for name, column in parts.items():
            inner = f"`{name}`" + (f" of {what}" if what else "")
            written[name], more = self._explain_values(inner, column)
            compared |= more
        return (written if isinstance(targets[0], dict) else list(written.values())), compared

    def _join_by(self, what: str, targets: tuple[Any, ...], conditions: Comparisons) -> list[Explanation]:
        divisions = [each for each in conditions if min(each.count(side) for side in (True, False)) >= MIN_SIDE]
        sides = {holds: both for holds in divisions[:MAX_DIVISIONS] if (both := self._sides(what, targets, holds))}
        return [_join(write(), *both) for holds, both in sides.items() for write in conditions[holds]]

    def _sides(
        self, what: str, targets: tuple[Any, ...], holds: tuple[bool, ...]
    ) -> tuple[Explanation, Explanation] | None:
        """The explanations where a condition holds and where not; None where one side has none."""
        both: list[Explanation] = []
        for side in (True, False):
            numbers = [n for n, each in enumerate(holds) if each is side]
            try:
                inner = ValueExplainer(self.searches.side(numbers), self.today)
                candidates = list(inner._candidates(tuple(targets[n] for n in numbers)))
                fitting = [each for each in candidates if _expression(each) is not None]
                both.append(choose(what, fitting, inner.samples, self.ambiguities))
                inner._require_shown(what, both[-1])
                inner._require_lasting(both[-1].written)
            except UnexplainedError:
                return None
        return both[0], both[1]


def _expression(candidate: Explanation) -> str | None:
    """An explanation as a part of an expression; None where it cannot be one."""
    written = candidate.written
    if not isinstance(written, str):
        return None if isinstance(written, (dict, list)) else json.dumps(written)
    if "{" in HOLE.sub("", written) or "}" in HOLE.sub("", written):
        return None
    whole = HOLE.fullmatch(written)
    return str(whole[1]) if whole else _as_sum(written)


def _as_sum(written: str) -> str:
    """A text with holes as an expression."""
    if not HOLE.search(written):
        return json.dumps(written, ensure_ascii=False)
    parts, place = list[str](), 0
    for hole in HOLE.finditer(written):
        parts.append(json.dumps(written[place : hole.start()], ensure_ascii=False))
        parts.append(f"({hole[1]})")
        place = hole.end()
    parts.append(json.dumps(written[place:], ensure_ascii=False))
    return " + ".join(part for n, part in enumerate(parts) if part != '""' or n == 0)


def _join(condition: Explanation, yes: Explanation, no: Explanation) -> Explanation:
    text = f"{condition.expression} ? {_expression(yes)} : {_expression(no)}"

    def compute(names: Names) -> Any:
        return yes.compute(names) if condition.compute(names) else no.compute(names)

    roots = (*condition.roots, *yes.roots, *no.roots)
    return Explanation(f"${{{text}}}", text, compute, roots, condition.size + yes.size + no.size, condition.compared)


def _parts_of(targets: tuple[Any, ...]) -> dict[Any, tuple[Any, ...]] | None:
    """The parts of objects with the same names, or of lists of one length; None for other values."""
    first = targets[0]
    if not first:
        return None
    if all(isinstance(each, dict) and each.keys() == getattr(first, "keys", dict)() for each in targets):
        return {name: tuple(each[name] for each in targets) for name in first}
    if all(isinstance(each, list) and len(each) == len(first) for each in targets):
        return {n: tuple(each[n] for each in targets) for n in range(len(first))}
    return None


def short_value(value: Any) -> str:
    """A value for a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"
