"""Plans made of recordings: series of actions explained, and held against recordings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise, product
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.freezing.candidates import AmbiguousError, Explanation, UnexplainedError, choose
from koi_lang.freezing.recordings import ECHOES, RecordedCall, RecordedStep, contradiction
from koi_lang.freezing.terms import (
    Names,
    Repeated,
    Term,
    ValuePath,
    item_conditions,
    same,
    value_at,
)
from koi_lang.freezing.values import MIN_SIDE, SearchCache, ValueExplainer, short_value
from koi_lang.freezing.wording import FixedText, fixed_texts, open_sentences, require_whole, select_unconfirmed
from koi_lang.runtime.actions.control import FOR_EACH
from koi_lang.runtime.model_calls.frozen_plans import (
    EXPECT,
    NUMBER,
    FrozenPlan,
    digest,
    form_of,
    is_half_cent,
    kind_of_value,
    why_unexpected,
)
from koi_lang.runtime.playbook.holes import holes_in_command, recorded_kind, texts_in
from koi_lang.runtime.playbook.references import ActionScope, open_result
from koi_lang.system.interpolation import COMMANDS, HOLE, Evaluate

# What follows a number of things.
AS_TEXT = re.compile(r"^String\((.*)\)$")
# Roundings to two decimals.
ROUNDED = (re.compile(r"^\((.*)\)\.toFixed\(2\)$"), re.compile(r"^Math\.round\(\((.*)\) \* 100\) / 100$"))
COUNTED = re.compile(r" [^\W\d_]")
# Efforts from which on something is looked for.
NESTED_LOOPS = 1
NESTED_BRANCHES = 2
VALUE_CONDITIONS = 3
# Series of steps that are tried with one effort.
MAX_TRIES = 80
MAX_BODY = 4
MAX_BRANCH = 4
ITEMS = ("item", "part", "inner")
Actions = list[dict[str, Any]]
# Of each sample, how many steps were done for each item.
Sizes = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known before some steps of a recording, and these."""

    names: Names
    steps: tuple[RecordedStep, ...]

    def skip(self, count: int) -> Sample:
        """The sample behind some steps, with the state that is left."""
        rest = self.steps[count:]
        return Sample({**self.names, "state": rest[0].state} if rest else self.names, rest)


@dataclass(slots=True)
class StepExplainer:
    """Explains the steps of some samples.

    Args:
        effort: from 0 on: loops and branches, also loops in loops, branches in loops, values that depend on conditions.
        cache: what explainers of the same recordings have in common.

    Attributes:
        compared: places that conditions compare with texts.
        ambiguities: of what was explained.
    """

    playbook: str
    today: Sequence[str]
    effort: int
    cache: SearchCache
    evaluate: Evaluate
    compared: set[ValuePath] = field(default_factory=set)
    ambiguities: list[AmbiguousError] = field(default_factory=list)
    _ids: int = 0
    _tries: int = 0

    def explain(self, samples: Sequence[Sample], depth: int = 0) -> Actions:
        """The actions of a plan. Raises UnexplainedError."""
        if all(not each.steps for each in samples):
            return []
        self._tries += 1
        if self._tries > MAX_TRIES:
            raise UnexplainedError("the recordings differ in more ways than are looked for")
        values = self._values(samples)
        failure: UnexplainedError | None = None
        for attempt in (self._loop, self._step, self._branch):
            try:
                with self._undone():
                    return attempt(samples, values, depth)
            except UnexplainedError as error:
                failure = failure or error if attempt != self._step else error
        assert failure is not None
        raise failure

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """A context that, where it explains nothing, takes back its ids and ambiguities."""
        ids, count = self._ids, len(self.ambiguities)
        try:
            yield
        except UnexplainedError:
            self._ids = ids
            del self.ambiguities[count:]
            raise

    def _values(self, samples: Sequence[Sample]) -> ValueExplainer:
        searches = self.cache.searches([each.names for each in samples])
        return ValueExplainer(searches, self.today, self.effort >= VALUE_CONDITIONS)

    # ------------------------------------------------------------ one step

    def _step(self, samples: Sequence[Sample], values: ValueExplainer, depth: int) -> Actions:
        if not all(each.steps for each in samples):
            raise UnexplainedError("nothing says when the recordings end")
        first = samples[0].steps[0]
        heads = [each.steps[0] for each in samples]
        if any(each.intent != first.intent or each.fields.keys() != first.fields.keys() for each in heads):
            raise UnexplainedError(f"nothing says when `{first.intent}` follows")
        fields = {
            name: values.explain(f"`{name}` of `{first.intent}`", [each.fields[name] for each in heads])
            for name in first.fields
        }
        self.compared |= values.compared
        self.ambiguities += values.ambiguities
        id = self._id() if first.intent not in ECHOES else ""
        rest = [_behind(each, id) for each in samples]
        action = {"intent": first.intent, **({"id": id} if id else {}), **fields}
        behind = _expectations(id, heads) if id else ()
        checks = [*self._command_checks(fields, samples), *self._number_checks(fields, samples)]
        return [*checks, action, *behind, *self.explain(rest, depth)]

    def _command_checks(self, fields: Mapping[str, Any], samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        """The checks in front of an action: that values which go into commands are as plain as those recorded there."""
        for name, value in fields.items():
            if isinstance(value, dict):
                yield from self._command_checks(value, samples)
            elif name in COMMANDS and (
                holes := [each for text in texts_in([value]) for each in holes_in_command(text)]
            ):
                columns = [[self.evaluate(hole[1], each.names) for each in samples] for hole, _ in holes]
                kinds = [recorded_kind(how, column) for (_, how), column in zip(holes, columns, strict=True)]
                yield {"intent": EXPECT, "of": [hole[0] for hole, _ in holes], "as": name, "fits": {"shell": kinds}}

    def _number_checks(self, fields: Mapping[str, Any], samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        """The checks in front of an action: whole quotients where they always were, no half cents, and not one item.

        The recordings do not show how another quotient or half a cent is rounded, or whether `1 items` has become
        `1 item`.
        """
        checks: dict[str, dict[str, Any]] = {}
        for text in texts_in([fields]):
            for hole in HOLE.finditer(text):
                written = expression = AS_TEXT.sub(r"\1", hole[1])
                for rounded in ROUNDED:
                    expression = rounded.sub(r"\1", expression)
                column = [self.evaluate(expression, each.names) for each in samples]
                if any(kind_of_value(each) != NUMBER for each in column):
                    continue
                if " / " in expression and all(float(each).is_integer() for each in column):
                    checks.setdefault(expression, {})["whole"] = True
                if expression != written and not any(map(is_half_cent, column)):
                    checks.setdefault(expression, {})["has_half_cents"] = False
                if COUNTED.match(text, hole.end()) and 1 not in column:
                    checks.setdefault(expression, {})["never"] = 1
        for expression, form in checks.items():
            fits = {"kinds": [NUMBER], **form}
            yield {"intent": EXPECT, "of": f"${{{expression}}}", "as": expression, "fits": fits}

    def _id(self) -> str:
        self._ids += 1
        return f"s{self._ids}"

    # ------------------------------------------------------------ for each item

    def _loop(self, samples: Sequence[Sample], values: ValueExplainer, depth: int) -> Actions:
        if depth == len(ITEMS):
            raise UnexplainedError("loops are nested too deeply")
        failure = UnexplainedError("nothing repeats")
        loops: list[tuple[Term, Actions]] = []
        lists = [each for each in values.terms.lists if ".map(" not in each.text]
        if depth:
            lists = [each for each in lists if each.roots[0][0] == ITEMS[depth - 1]]
        for term in sorted(lists, key=lambda each: each.size):
            if loops and term.size > loops[0][0].size:
                break  # a part of a list is looked at where no whole one is repeated for
            for sizes in _body_sizes(samples, term, self.playbook, self.effort):
                try:
                    loops.append((term, self._write_loop(samples, term, sizes, depth)))
                    break
                except UnexplainedError as error:
                    failure = error
        if not loops:
            raise failure
        chosen = choose(
            "the list that is repeated for",
            [Explanation(str(n), each.text, each.compute, each.roots, each.size) for n, (each, _) in enumerate(loops)],
            [each.names for each in samples],
            self.ambiguities,
        )
        return loops[int(chosen.written)][1]

    def _write_loop(self, samples: Sequence[Sample], term: Term, sizes: Sizes, depth: int) -> Actions:
        name = ITEMS[depth]
        bodies = [
            Sample({**sample.names, "state": steps[0].state if steps else sample.names["state"], name: item}, steps)
            for sample, items, counts in zip(samples, term.column, sizes, strict=True)
            for item, steps in zip(items, _segments(sample.steps, counts), strict=True)
        ]
        with self._undone():
            body = self.explain(bodies, depth + 1)
            gives = all(each.steps and each.steps[-1].intent not in ECHOES for each in bodies)
            id = self._id() if gives else ""
            rest = [_behind_loop(each, counts, id) for each, counts in zip(samples, sizes, strict=True)]
            action = {"intent": FOR_EACH, **({"id": id} if id else {}), "of": f"${{{term.text}}}", "as": name}
            return [{**action, "actions": body}, *self.explain(rest, depth)]

    # ------------------------------------------------------------ by a condition

    def _branch(self, samples: Sequence[Sample], values: ValueExplainer, depth: int) -> Actions:
        failure = UnexplainedError("nothing says when the recordings differ")
        if depth and self.effort < NESTED_BRANCHES:
            raise failure
        for holds, then, otherwise in _splits(samples):
            conditions = values.searches.conditions.separating(holds)
            if not conditions:
                continue
            try:
                return self._write_branch(samples, holds, (then, otherwise), conditions, depth)
            except UnexplainedError as error:
                failure = error
        raise failure

    def _write_branch(
        self,
        samples: Sequence[Sample],
        holds: tuple[bool, ...],
        counts: tuple[int, int],
        conditions: Sequence[Explanation],
        depth: int,
    ) -> Actions:
        with self._undone():
            sides = [
                self.explain(
                    [
                        replace(each, steps=each.steps[:count])
                        for each, side in zip(samples, holds, strict=True)
                        if side is wanted
                    ],
                    depth,
                )
                for wanted, count in zip((True, False), counts, strict=True)
            ]
            rest = [each.skip(counts[0] if side else counts[1]) for each, side in zip(samples, holds, strict=True)]
            following = self.explain(rest, depth)
        chosen = choose("the condition", conditions, [each.names for each in samples], self.ambiguities)
        self.compared |= set(chosen.compared)
        action = {"intent": "if", "condition": chosen.written, "then": sides[0]}
        return [{**action, **({"else": sides[1]} if sides[1] else {})}, *following]


def _expectations(id: str, steps: Sequence[RecordedStep]) -> Iterator[dict[str, Any]]:
    """The check behind an action: the form of its results where a model has seen one, else their `success`."""
    results, name = [open_result(each.result) for each in steps], f"{id}.output"
    if not any(each.was_seen for each in steps):
        name, results = f"{name}.success", [each.get("success") if isinstance(each, dict) else None for each in results]
        if not all(isinstance(each, bool) for each in results):
            return
    form = form_of(results)
    if any(HOLE.search(text) for text in texts_in([form])):
        raise UnexplainedError(f"a result of `{steps[0].intent}` holds what looks like an expression")
    yield {"intent": EXPECT, "of": f"${{{name}}}", "as": name, "fits": form}


def _behind(sample: Sample, id: str) -> Sample:
    """A sample behind its first step, with the result of that."""
    rest = sample.skip(1)
    if not id:
        return rest
    return replace(rest, names={**rest.names, id: {"output": open_result(sample.steps[0].result)}})


def _behind_loop(sample: Sample, counts: Sequence[int], id: str) -> Sample:
    rest = sample.skip(sum(counts))
    if not id:
        return rest
    results = [steps[-1].result for steps in _segments(sample.steps, counts)]
    return replace(rest, names={**rest.names, id: {"output": Repeated(results)}})


def _segments(steps: tuple[RecordedStep, ...], counts: Sequence[int]) -> list[tuple[RecordedStep, ...]]:
    """Steps one after the other, so many each time."""
    ends = list(accumulate(counts, initial=0))
    return [steps[start:end] for start, end in pairwise(ends)]


def _body_sizes(samples: Sequence[Sample], term: Term, playbook: str, effort: int) -> Iterator[Sizes]:
    """How many steps may be done for each item of a list: the same number, or one that a part of the item decides."""
    items = [item for each in term.column for item in each]
    if len(items) < 2 or all(len(each) < 2 for each in term.column):
        return
    for measure in _measures(items, playbook, effort):
        sizes = [[measure(item) for item in each] for each in term.column]
        heads = set[str]()
        for sample, counts in zip(samples, sizes, strict=True):
            if sum(counts) > len(sample.steps):
                break
            heads |= {steps[0].intent for steps in _segments(sample.steps, counts) if steps}
        else:
            if len(heads) == 1:
                yield sizes


def _measures(items: Sequence[Any], playbook: str, effort: int) -> Iterator[Callable[[Any], int]]:
    yield from (_linear(count, 0, lambda item: 0) for count in range(1, MAX_BODY + 1))
    if effort < NESTED_LOOPS or not all(isinstance(each, dict) for each in items):
        return
    names = [name for name in items[0] if all(name in each for each in items)]
    parts: list[Callable[[Any], int]] = [
        _length_of(name) for name in names if all(isinstance(each[name], list) for each in items)
    ]
    if effort >= NESTED_BRANCHES:
        parts += [_truth_of(holds) for _, holds in item_conditions(items, names, playbook)]
    for part in parts:
        if len({part(item) for item in items}) > 1:
            yield from (_linear(base, each, part) for base, each in product(range(3), (1, 2)))


def _linear(base: int, each: int, part: Callable[[Any], int]) -> Callable[[Any], int]:
    return lambda item: base + each * part(item)


def _length_of(name: str) -> Callable[[Any], int]:
    return lambda item: len(item[name])


def _truth_of(holds: Callable[[Any], bool]) -> Callable[[Any], int]:
    return lambda item: int(holds(item))


def _splits(samples: Sequence[Sample]) -> Iterator[tuple[tuple[bool, ...], int, int]]:
    """Ways to divide samples in two by how they begin, with how many steps are of the one way and of the other."""
    heads = [each.steps[0].intent if each.steps else "" for each in samples]
    lengths = [len(each.steps) for each in samples]
    divisions = dict.fromkeys(
        [*(tuple(each == head for each in heads) for head in dict.fromkeys(heads) if head)]
        + [tuple(each == length for each in lengths) for length in dict.fromkeys(lengths)]
        + [tuple(each > length for each in lengths) for length in dict.fromkeys(lengths)]
    )
    for holds in divisions:
        if len(set(holds)) != 2:
            continue
        for then, otherwise in sorted(product(range(MAX_BRANCH + 1), repeat=2), key=sum):
            is_shown = (not then or sum(holds) >= MIN_SIDE) and (not otherwise or holds.count(False) >= MIN_SIDE)
            if then and is_shown and _agree(samples, holds, then, otherwise):
                yield holds, then, otherwise


def _agree(samples: Sequence[Sample], holds: tuple[bool, ...], then: int, otherwise: int) -> bool:
    """Whether both ways are long enough, the steps of each are the same actions, and those behind begin alike."""
    ways = {True: set[tuple[str, ...]](), False: set[tuple[str, ...]]()}
    behind = set[str]()
    for sample, side in zip(samples, holds, strict=True):
        count = then if side else otherwise
        if len(sample.steps) < count:
            return False
        ways[side].add(tuple(step.intent for step in sample.steps[:count]))
        behind.add(sample.steps[count].intent if len(sample.steps) > count else "")
    return len(ways[True]) == 1 and len(ways[False]) == 1 and len(behind) == 1


def names_of(args: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """The names that a plan begins with."""
    return {"args": args, "state": dict(state)}


MIN_RECORDINGS = 3


class MismatchError(KoiError):
    """A plan does something else than a recording."""


class HandoverError(KoiError):
    """A plan ends where a recording went on, which is for the model."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A plan without its hashes.

    Attributes:
        actions: of the plan.
        fits: the form of what it explains.
        doubts: what a person is to confirm word by word.
    """

    actions: tuple[Mapping[str, Any], ...]
    fits: Mapping[str, Any]
    doubts: tuple[FixedText, ...] = ()


def explain_calls(recordings: Sequence[RecordedCall], evaluate: Evaluate, confirmed: Iterable[str] = ()) -> Frozen:
    """The plan that does what some recorded calls did.

    Args:
        confirmed: texts of which a person says that they are always so.

    Raises:
        AmbiguousError: two explanations fit.
        UnexplainedError: nothing does.
    """
    if len(recordings) < MIN_RECORDINGS:
        raise UnexplainedError(f"there are {len(recordings)} recordings, and {MIN_RECORDINGS} are needed")
    if runs := contradiction(recordings):
        raise UnexplainedError(f"the recordings contradict each other: {runs} were given the same")
    playbook = recordings[0].playbook
    days = list(dict.fromkeys(each.today for each in recordings))
    samples = [Sample(names_of(each.args, each.state), each.steps) for each in recordings]
    explainer, actions = _explain_steps(playbook, days, samples, evaluate)
    if explainer.ambiguities:
        raise explainer.ambiguities[0]
    require_whole(playbook, actions)
    results = [step.result for each in recordings for step in each.steps if step.intent not in ECHOES]
    fields = _field_names([*results, *([each.args, each.state] for each in recordings)])
    texts = [*fixed_texts(playbook, actions, fields), *open_sentences(playbook, actions)]
    fits = {
        "args": form_of([each.args for each in recordings]),
        "state": form_of([dict(each.state) for each in recordings]),
    }
    for path in explainer.compared:
        _restrict(fits, path, recordings)
    for recording in recordings:
        try:
            hold(actions, recording, evaluate)
        except HandoverError as error:
            raise UnexplainedError(error.message) from error
    return Frozen(tuple(actions), fits, select_unconfirmed(texts, confirmed))


def _field_names(value: Any) -> Iterator[str]:
    """The names of fields in a value of JSON, at any depth."""
    if isinstance(value, Mapping):
        yield from map(str, value)
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for each in inner:
        yield from _field_names(each)


def _explain_steps(
    playbook: str, days: Sequence[str], samples: Sequence[Sample], evaluate: Evaluate
) -> tuple[StepExplainer, list[dict[str, Any]]]:
    """The plan that takes the least effort to find. Raises UnexplainedError, with what was found wanting first."""
    failures: list[UnexplainedError] = []
    cache = SearchCache(playbook)
    for effort in range(VALUE_CONDITIONS + 1):
        explainer = StepExplainer(playbook, days, effort, cache, evaluate)
        try:
            return explainer, explainer.explain(samples)
        except UnexplainedError as error:
            failures.append(error)
    raise failures[0]


def _restrict(fits: Mapping[str, Any], path: ValuePath, recordings: Sequence[RecordedCall]) -> None:
    """Have a form say which texts were recorded at a place that a condition compares."""
    form: Any = fits.get(str(path[0]))
    for part in path[1:]:
        form = form.get("fields", {}).get(part) if isinstance(form, dict) else None
    if isinstance(form, dict) and "kinds" in form:
        form["among"] = sorted({value_at(names_of(each.args, each.state), path) for each in recordings})


# ---------------------------------------------------------------- against a recording


def differences(plan: FrozenPlan, recordings: Sequence[RecordedCall], evaluate: Evaluate) -> Iterator[str]:
    """A sentence for each recording of its playbook that a plan does not do again."""
    for recording in recordings:
        if digest(recording.playbook) != plan.hashes.get("playbook"):
            continue
        try:
            hold(plan.actions, recording, evaluate)
        except HandoverError:
            continue
        except KoiError as error:
            yield f"`{recording.run}`: {error.message}"


def hold(actions: Sequence[Mapping[str, Any]], recording: RecordedCall, evaluate: Evaluate) -> None:
    """See that some actions are those of a recording. Raises HandoverError, MismatchError or UnexplainedError."""
    state = dict(recording.state)
    scope = ActionScope(evaluate, recording.args, state)
    rest = _Held(list(recording.steps), state).carry_out(actions, scope)
    if rest:
        raise MismatchError(f"`{rest[0].intent}` was carried out, and the plan has ended")


@dataclass(slots=True)
class _Held:
    """The steps of a recording that a plan has not come to."""

    steps: list[RecordedStep]
    state: dict[str, Any]
    number: int = 0

    def carry_out(self, actions: Sequence[Mapping[str, Any]], scope: ActionScope) -> list[RecordedStep]:
        """Follow some actions; returns the steps that are left."""
        for action in actions:
            self._follow(action, scope)
        return self.steps

    def _follow(self, action: Mapping[str, Any], scope: ActionScope) -> Any:
        if action["intent"] == "if":
            holds = scope.evaluate_condition(action["condition"])
            self.carry_out(action["then"] if holds else action.get("else", []), scope.child_scope())
            return
        if action["intent"] == FOR_EACH:
            self._repeat(action, scope)
            return
        if action["intent"] == EXPECT:
            if why := why_unexpected(action["fits"], scope.resolve(action["of"]), action["as"]):
                raise HandoverError(why)
            return
        if not self.steps:
            raise MismatchError(f"`{action['intent']}` of the plan was not carried out")
        step = self.steps.pop(0)
        self.state.update(step.state)
        self.number += 1
        fields = {name: value for name, value in action.items() if name not in ("intent", "id")}
        if step.intent != action["intent"]:
            raise MismatchError(f"step {self.number} was `{step.intent}`, and the plan has `{action['intent']}`")
        filled = scope.substitute(fields)
        for name, value in step.fields.items():
            if not same(filled.get(name), value):
                now, then = short_value(filled.get(name)), short_value(value)
                raise MismatchError(
                    f"`{name}` of step {self.number}, `{step.intent}`, was {then}, and the plan has {now}"
                )
        scope.record(step.intent, str(action.get("id", "")), step.result)
        if self.steps:
            self.state.update(self.steps[0].state)

    def _repeat(self, action: Mapping[str, Any], scope: ActionScope) -> None:
        inner, results = scope.child_scope(), list[Any]()
        items = scope.resolve(action["of"])
        if not isinstance(items, list):
            raise MismatchError(f"`{action['of']}` is no list")
        for index, item in enumerate(items):
            inner.add({action["as"]: item, "iteration": index + 1, "iterationIndex": index})
            before = list(self.steps)
            self.carry_out(action["actions"], inner)
            done = before[: len(before) - len(self.steps)]
            results.append(done[-1].result if done else None)
        scope.record(FOR_EACH, str(action.get("id", "")), results)
