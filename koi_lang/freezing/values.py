"""Explanations of the fields of actions: numbers, texts, lists and objects, each perhaps with a condition."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from koi_lang.freezing.candidates import AmbiguousError, Explanation, UnexplainedError, choose, constant
from koi_lang.freezing.numeric import NumericSearch, plain_number
from koi_lang.freezing.terms import (
    ORDERS,
    Names,
    Term,
    TermBank,
    ValuePath,
    always,
    comparing,
    negate,
    numbers_in,
    same,
)
from koi_lang.runtime.model_calls.frozen_plans import NUMBER, TEXT, TRUTH, kind_of_value
from koi_lang.runtime.playbook.holes import HOLE, texts_in
from koi_lang.runtime.prompts import value_text

MAX_COMPARED = 24
# Of a comparison of two terms; one with a constant is smaller.
PAIR_SIZE = 4
COMPARISONS = (*ORDERS, ("===", operator.eq))


class Conditions:
    """The comparisons of terms that hold in some samples alone, each with where it does."""

    def __init__(self, term: TermBank) -> None:
        self.all = [(each, holds) for each, holds in _all(term) if len(set(holds)) == 2]

    def separating(self, wanted: Sequence[bool]) -> list[Explanation]:
        """The comparisons that hold in just some samples."""
        return [candidate for candidate, holds in self.all if holds == tuple(wanted)]

    @property
    def simple(self) -> list[tuple[Explanation, tuple[bool, ...]]]:
        """Those of one term."""
        return [(candidate, holds) for candidate, holds in self.all if candidate.size < PAIR_SIZE]


def _all(term: TermBank) -> Iterator[tuple[Explanation, tuple[bool, ...]]]:
    for each in term.of_kind(TRUTH):
        if each.varies:
            yield Explanation(each.text, each.text, each.compute, each.roots), each.column
            text = f"!{each.text}"
            yield Explanation(text, text, negate(each.compute), each.roots), tuple(not value for value in each.column)
    for each in term.of_kind(TEXT):
        for text in sorted(set(each.column)) if each.varies and each.size == 1 else ():
            written = f"{each.text} === {json.dumps(text, ensure_ascii=False)}"
            holds = comparing(operator.eq, each.compute, always(text))
            candidate = Explanation(written, written, holds, each.roots, compared=each.roots)
            yield candidate, tuple(value == text for value in each.column)
    numbers = [each for each in term.of_kind(NUMBER) if each.size == 1][:MAX_COMPARED]
    count = len(term.samples)
    constants = [
        Term(str(each), (each,) * count, always(each), ()) for each in dict.fromkeys((0, *numbers_in(term.playbook)))
    ]
    for each in numbers:
        for number in constants if each.varies else ():
            yield from _compare(each, number, PAIR_SIZE - 1)
    for one, other in combinations(numbers, 2):
        if one.varies or other.varies:
            yield from _compare(one, other, PAIR_SIZE)


def _compare(one: Term, other: Term, size: int) -> Iterator[tuple[Explanation, tuple[bool, ...]]]:
    roots = (*one.roots, *other.roots)
    for mark, compare in COMPARISONS:
        text = f"{one.text} {mark} {other.text}"
        holds = tuple(compare(*pair) for pair in zip(one.column, other.column, strict=True))
        yield Explanation(text, text, comparing(compare, one.compute, other.compute), roots, size), holds


WRITTEN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
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


def text_parts(term: Sequence[Term]) -> list[TextPart]:
    """The ways in which terms can stand in a text; amounts also with two decimals."""
    parts: list[TextPart] = []
    for each in term:
        if any(isinstance(value, (dict, list)) or value is None for value in each.column):
            continue
        texts = tuple(map(value_text, each.column))
        parts.append(TextPart(each.text, texts, _as_text(each.compute), each, each.varies))
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in each.column):
            fixed = tuple(f"{value:.2f}" for value in each.column)
            if fixed != texts:
                parts.append(TextPart(f"({each.text}).toFixed(2)", fixed, _as_amount(each.compute), each, each.varies))
    return [part for part in parts if any(part.texts)]


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
        for count, reading in enumerate(self._read(targets, (0,) * len(targets))):
            if any(isinstance(each, TextPart) for each in reading):
                yield candidate_of(reading)
            if count == MAX_READINGS:
                return

    def _read(self, targets: tuple[str, ...], at: Positions) -> Iterator[list[str | TextPart]]:
        if all(place == len(text) for place, text in zip(at, targets, strict=True)):
            yield []
            return
        self._steps += 1
        if at in self._dead or self._steps > MAX_STEPS:
            return
        has_any = False
        for part in self._fitting(targets, at):
            behind = tuple(place + len(text) for place, text in zip(at, part.texts, strict=True))
            for rest in self._read(targets, behind):
                has_any = True
                yield [part, *rest]
        first = {text[place : place + 1] for place, text in zip(at, targets, strict=True)}
        if len(first) == 1 and "" not in first:
            letter = first.pop()
            for rest in self._read(targets, tuple(place + 1 for place in at)):
                has_any = True
                yield [letter + rest[0], *rest[1:]] if rest and isinstance(rest[0], str) else [letter, *rest]
        if not has_any:
            self._dead.add(at)

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
# Recordings in which a short constant is none by chance, and words from which on a text is not short.
MIN_CONSTANT = 5
MIN_WORDS = 3
YEAR = re.compile(r"\d{4}")


@dataclass
class ValueExplainer:
    """Explains values in some samples.

    Args:
        samples: names with their values.
        today: what the models were told of the day.
        has_conditions: whether a value may depend on a condition.

    Attributes:
        compared: places that a condition compares with texts.
        ambiguities: of values that were explained, each by the simplest of several explanations.
    """

    samples: Sequence[Names]
    playbook: str
    today: Sequence[str]
    has_conditions: bool = True
    compared: set[ValuePath] = field(default_factory=set)
    ambiguities: list[AmbiguousError] = field(default_factory=list)

    @cached_property
    def terms(self) -> TermBank:
        """The terms of the samples."""
        return TermBank(self.samples, self.playbook)

    @cached_property
    def numbers(self) -> NumericSearch:
        """The search for numbers, by the terms that are numbers."""
        return NumericSearch(self.terms.of_kind(NUMBER), numbers_in(self.playbook))

    @cached_property
    def conditions(self) -> Conditions:
        """The comparisons of terms."""
        return Conditions(self.terms)

    @cached_property
    def texts(self) -> TextSearch:
        """The search for texts, by all terms."""
        return TextSearch(text_parts(self.terms.all), lambda: self.numbers)

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
        if self.has_conditions:
            return self._conditional(what, targets)
        raise UnexplainedError(f"nothing explains {what}, such as {short_value(targets[0])}")

    def _candidates(self, targets: tuple[Any, ...]) -> Iterator[Explanation]:
        first = targets[0]
        has_holes = any(HOLE.search(text) for text in texts_in([first]))
        has_parts = isinstance(first, (dict, list)) and bool(first)  # each of them is explained by itself
        if not (has_holes or has_parts) and all(same(each, targets[0]) for each in targets):
            yield constant(first)
        kinds = {kind_of_value(each) for each in targets}
        if kinds == {NUMBER}:
            yield from self.numbers.explain(targets)
            return
        for term in self.terms.all:
            if all(map(same, term.column, targets)):
                yield Explanation(f"${{{term.text}}}", term.text, term.compute, term.roots, term.size)
        if kinds == {TRUTH} and len(set(targets)) == 2:
            plain = {term.text for term in self.terms.all}
            for each in self.conditions.separating(targets):
                if each.expression not in plain:
                    yield replace(each, written=f"${{{each.expression}}}")
        if kinds == {TEXT}:
            plain = {term.text for term in self.terms.all if all(map(same, term.column, targets))}
            yield from (each for each in self.texts.explain(targets) if each.expression not in plain)

    def _require_shown(self, what: str, chosen: Explanation) -> None:
        """Raise UnexplainedError for a short constant that few recordings have and the playbook does not name."""
        value = chosen.written
        is_short = isinstance(value, (bool, int, float)) or (
            isinstance(value, str) and 0 < len(value.split()) < MIN_WORDS
        )
        if chosen.roots or not is_short or len(self.samples) >= MIN_CONSTANT:
            return
        if isinstance(value, bool) or str(value).lower() not in self.playbook.lower():
            needed = f"{MIN_CONSTANT} recordings are needed to say so"
            raise UnexplainedError(f"{what} was always {short_value(value)}, and {needed}")

    def _require_lasting(self, written: Any) -> None:
        """Raise UnexplainedError for a constant, or one in a text, that may be the day of its recordings."""
        for text in [*texts_in([written]), *([str(written)] if kind_of_value(written) == NUMBER else [])]:
            plain = HOLE.sub("", text)
            for day in self.today:
                parts = [part.strip() for part in day.split(",")[:2]]
                words = [word for part in parts for word in (part, *YEAR.findall(part)) if word]
                day_word = next((word for word in words if word in plain and word not in self.playbook), None)
                if day_word:
                    raise UnexplainedError(f"`{day_word}` may be the day of the recording, which plans do not know")

    def _explain_parts(
        self, what: str, parts: Mapping[Any, tuple[Any, ...]], targets: tuple[Any, ...]
    ) -> tuple[Any, set[ValuePath]]:
        compared: set[ValuePath] = set()
        written: dict[Any, Any] = {}
        for name, column in parts.items():
            inner = f"`{name}`" + (f" of {what}" if what else "")
            written[name], more = self._explain_values(inner, column)
            compared |= more
        return (written if isinstance(targets[0], dict) else list(written.values())), compared

    def _conditional(self, what: str, targets: tuple[Any, ...]) -> tuple[Any, set[ValuePath]]:
        """One of two explanations, by a condition."""
        joined: list[Explanation] = []
        simple = self.conditions.simple
        divisions = [each for each in dict.fromkeys(holds for _, holds in simple) if min(_counts(each)) >= MIN_SIDE]
        sides = {holds: self._sides(what, targets, holds) for holds in divisions[:MAX_DIVISIONS]}
        for condition, holds in simple:
            both = sides.get(holds)
            if both is not None:
                joined.append(_join(condition, *both))
        if not joined:
            raise UnexplainedError(f"nothing explains {what}, such as {short_value(targets[0])}")
        chosen = choose(what, joined, self.samples, self.ambiguities)
        return chosen.written, set(chosen.compared)

    def _sides(
        self, what: str, targets: tuple[Any, ...], holds: tuple[bool, ...]
    ) -> tuple[Explanation, Explanation] | None:
        """The explanations where a condition holds and where not; None where one side has none."""
        both: list[Explanation] = []
        for side in (True, False):
            numbers = [n for n, each in enumerate(holds) if each is side]
            inner = ValueExplainer([self.samples[n] for n in numbers], self.playbook, self.today)
            try:
                candidates = list(inner._candidates(tuple(targets[n] for n in numbers)))
                fitting = [each for each in candidates if _expression(each) is not None]
                both.append(choose(what, fitting, inner.samples, self.ambiguities))
                inner._require_shown(what, both[-1])
            except UnexplainedError:
                return None
        return both[0], both[1]


def _counts(holds: Sequence[bool]) -> tuple[int, int]:
    return sum(holds), len(holds) - sum(holds)


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
