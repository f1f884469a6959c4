"""The tree of a regular expression to a search whose time grows with the length of the text, whatever the pattern.

All ways through the pattern are followed at once. Sets of places in the program that were reached together are
remembered with what follows after each character, so that most characters cost one look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from koi_lang.errors import RegistryError
from koi_lang.runtime.registry.characters import LINE_ENDS, is_word
from koi_lang.runtime.registry.patterns import Alternation, Char, Edge, Node, Repeat, Sequence, parse_pattern

MOST_STEPS = 2000
MOST_REMEMBERED_PLACES = 200_000


def compile_pattern(pattern: str, flags: str = "") -> Callable[[str], bool]:
    """Whether a text contains what a pattern describes; of the flags `i`, `m` and `s` matter.

    Raises:
        RegistryError: the pattern is malformed, too large, or needs look-around or back-references.
    """
    tree = parse_pattern(pattern, ignore_case="i" in flags, dot_all="s" in flags)
    steps = _Steps(pattern)
    steps.add(tree)
    steps.append(_Found())
    return _StateSearch(steps.steps, multiline="m" in flags).finds


@dataclass(frozen=True, slots=True)
class _Fork:
    """Continue at several places."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """The whole pattern has been seen."""


_Step = Char | Edge | _Fork | _Found


class _Steps:
    """A program under construction; a step that is not a fork continues with the next one."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.steps: list[_Step] = []

    def append(self, step: _Step) -> int:
        """Add a step at the end and return its place."""
        if len(self.steps) >= MOST_STEPS:
            raise RegistryError(f"the regular expression `{self._pattern}` repeats too much", help="Lower its counts.")
        self.steps.append(step)
        return len(self.steps) - 1

    def add(self, node: Node) -> None:
        """Add the steps of a node."""
        match node:
            case Sequence(parts):
                for part in parts:
                    self.add(part)
            case Alternation(branches):
                self._add_choice(branches)
            case Repeat():
                self._add_repeat(node)
            case _:
                self.append(node)

    def _add_choice(self, branches: tuple[Node, ...]) -> None:
        fork = self.append(_Fork(()))
        starts, ends = [], []
        for branch in branches:
            starts.append(len(self.steps))
            self.add(branch)
            ends.append(self.append(_Fork(())))
        self.steps[fork] = _Fork(tuple(starts))
        for end in ends:
            self.steps[end] = _Fork((len(self.steps),))

    def _add_repeat(self, node: Repeat) -> None:
        for _ in range(node.low):
            start = len(self.steps)
            self.add(node.part)
            if len(self.steps) == start:
                return
        if node.high is None:
            self._add_loop(node.part)
        else:
            self._add_optional(node.part, node.high - node.low)

    def _add_loop(self, part: Node) -> None:
        fork = self.append(_Fork(()))
        self.add(part)
        self.append(_Fork((fork,)))
        self.steps[fork] = _Fork((fork + 1, len(self.steps)))

    def _add_optional(self, part: Node, times: int) -> None:
        forks = []
        for _ in range(times):
            forks.append(self.append(_Fork(())))
            self.add(part)
        for fork in forks:
            self.steps[fork] = _Fork((fork + 1, len(self.steps)))


@dataclass(slots=True)
class _State:
    """Places reached after some character, and the states that follow it; None follows when the pattern is found.

    `before` stands for that character: empty at the start of the text, else a line feed, `a` for a word or a space.
    """

    places: frozenset[int]
    before: str
    following: dict[str, _State | None] = field(default_factory=dict)


class _StateSearch:
    """A finished program with the states it has met so far."""

    def __init__(self, steps: list[_Step], *, multiline: bool) -> None:
        self._steps = steps
        self._multiline = multiline
        self._forget()

    def finds(self, text: str) -> bool:
        """Whether the pattern is somewhere in the text."""
        state = self._start
        for char in text:
            known = char in state.following
            following = state.following[char] if known else self._follow(state, char)
            if following is None:
                return True
            state = following
        return self._reach(state, "") is None

    def _forget(self) -> None:
        self._remembered = 0
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._start = self._state(frozenset((0,)), "")

    def _state(self, places: frozenset[int], before: str) -> _State:
        return self._states.setdefault((places, before), _State(places, before))

    def _follow(self, state: _State, char: str) -> _State | None:
        if self._remembered >= MOST_REMEMBERED_PLACES:
            self._forget()
        self._remembered += len(state.places)
        tests = self._reach(state, char)
        if tests is None:
            state.following[char] = None
            return None
        places = frozenset({0, *(place + 1 for place, step in tests if step.test(char))})
        following = self._state(places, _kind(char))
        state.following[char] = following
        return following

    def _reach(self, state: _State, after: str) -> list[tuple[int, Char]] | None:
        """The characters asked for next, in front of `after` (empty: the end); None when the pattern is found."""
        pending, seen, tests = list(state.places), set(state.places), []
        while pending:
            place = pending.pop()
            step = self._steps[place]
            if isinstance(step, _Found):
                return None
            if isinstance(step, Char):
                tests.append((place, step))
                continue
            targets = [target for target in self._targets(place, state.before, after) if target not in seen]
            seen.update(targets)
            pending.extend(targets)
        return tests

    def _targets(self, place: int, before: str, after: str) -> tuple[int, ...]:
        step = self._steps[place]
        if isinstance(step, _Fork):
            return step.targets
        assert isinstance(step, Edge)
        return (place + 1,) if self._holds(step.kind, before, after) else ()

    def _holds(self, kind: str, before: str, after: str) -> bool:
        if kind == "^":
            return not before or (self._multiline and before == "\n")
        if kind == "$":
            return not after or (self._multiline and _kind(after) == "\n")
        return (is_word(before) != is_word(after)) == (kind == "b")


def _kind(char: str) -> str:
    """A character that stands for all that look the same to `^`, `$` and `\\b`."""
    if char in LINE_ENDS:
        return "\n"
    return "a" if is_word(char) else " "
