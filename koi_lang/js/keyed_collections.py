"""The collections `Map` and `Set`, whose keys may be any value."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar

from koi_lang.js.calling import apply, arity, describe
from koi_lang.js.conversions import PRIMITIVES
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.iteration import IteratorValue, iterate
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.number_format import to_compact
from koi_lang.js.promises import start_coroutine
from koi_lang.js.undefined import Value, nullish, undefined


def identity(value: Value) -> Hashable:
    """What two values share if and only if they are one key: primitives by value and kind, others by identity."""
    kind = type(value)
    if kind is str or kind is int:
        return value  # type: ignore[no-any-return]
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return to_compact(value or 0.0) if value == value else ("number", "NaN")
    return value if isinstance(value, PRIMITIVES) else ("object", id(value))


def _without_sign(key: Value) -> Value:
    """A key as it is stored: zero without its sign."""
    return 0 if isinstance(key, float) and key == 0 else key


class Entries:
    """Keys and values in the order they were added; what Map and Set are made of."""

    __slots__ = ("_cells", "_walks")

    def __init__(self) -> None:
        self._cells: dict[Hashable, tuple[Value, Value]] = {}
        # Of each walk over them that is under way: the keys it has visited, and those it finds at another place.
        self._walks: list[tuple[set[Hashable], set[Hashable]]] = []

    def __len__(self) -> int:
        return len(self._cells)

    def has(self, key: Value) -> bool:
        """Whether the key is there."""
        return identity(key) in self._cells

    def delete(self, key: Value) -> bool:
        """Remove a key; says whether it was there."""
        known = identity(key)
        for seen, moved in self._walks:
            seen.discard(known)
            moved.add(known)
        return self._cells.pop(known, None) is not None

    def clear(self) -> Value:
        """Remove everything."""
        for seen, moved in self._walks:
            seen.clear()
            moved.update(self._cells)
        self._cells.clear()
        return undefined

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """Keys with values; what is removed meanwhile is skipped, what is added, or added again, is still visited."""
        seen, moved = walk = (set[Hashable](), set[Hashable]())
        self._walks.append(walk)
        try:
            while fresh := [key for key in self._cells if key not in seen]:
                moved.clear()
                for key in fresh:
                    if key in self._cells and key not in moved:
                        seen.add(key)
                        yield self._cells[key]
        finally:
            self._walks = [each for each in self._walks if each is not walk]

    def _each(self, callback: Value) -> Value:
        for key, value in self.pairs():
            start_coroutine(apply(callback, value, key, self))
        return undefined


class MapValue(Entries):
    """A `Map`; for Python an iterable of `[key, value]` lists."""

    __slots__ = ()
    __koi_members__: ClassVar[dict[str, str]] = {
        "get": "get", "set": "set", "has": "has", "delete": "delete", "clear": "clear", "size": "size",
        "forEach": "_each", "keys": "keys", "values": "values", "entries": "entries", "toString": "__str__",
    }  # fmt: skip

    def __iter__(self) -> Iterator[list[Value]]:
        return ([key, value] for key, value in self.pairs())

    def __str__(self) -> str:
        return "[object Map]"

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self)

    def get(self, key: Value) -> Value:
        """The value of a key, undefined when it is not there."""
        return self._cells.get(identity(key), (undefined, undefined))[1]

    def set(self, key: Value, value: Value) -> MapValue:
        """Store a value under a key; a known key keeps its place."""
        self._cells[identity(key)] = (_without_sign(key), value)
        return self

    def keys(self) -> IteratorValue:
        """An iterator of the keys."""
        return IteratorValue("Map Iterator", (key for key, _ in self.pairs()))

    def values(self) -> IteratorValue:
        """An iterator of the values."""
        return IteratorValue("Map Iterator", (value for _, value in self.pairs()))

    def entries(self) -> IteratorValue:
        """An iterator of `[key, value]`."""
        return IteratorValue("Map Entries", self)


class SetValue(Entries):
    """A `Set`; for Python an iterable of its values."""

    __slots__ = ()
    __koi_members__: ClassVar[dict[str, str]] = {
        "add": "add", "has": "has", "delete": "delete", "clear": "clear", "size": "size", "forEach": "_each",
        "keys": "values", "values": "values", "entries": "entries", "toString": "__str__", "union": "union",
        "intersection": "intersection", "difference": "difference", "symmetricDifference": "symmetric_difference",
        "isSubsetOf": "is_subset_of", "isSupersetOf": "is_superset_of", "isDisjointFrom": "is_disjoint_from",
    }  # fmt: skip

    def __iter__(self) -> Iterator[Value]:
        return (value for value, _ in self.pairs())

    def __str__(self) -> str:
        return "[object Set]"

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self)

    def add(self, value: Value) -> SetValue:
        """Put a value in; one that is there keeps its place."""
        value = _without_sign(value)
        self._cells.setdefault(identity(value), (value, value))
        return self

    def values(self) -> IteratorValue:
        """An iterator of the values."""
        return IteratorValue("Set Iterator", self)

    def entries(self) -> IteratorValue:
        """An iterator of `[value, value]`."""
        return IteratorValue("Set Entries", ([value, value] for value in self))

    def union(self, other: Value) -> SetValue:
        """What is in either one."""
        return new_set([*self, *_keys_of(other)])

    def intersection(self, other: Value) -> SetValue:
        """What is in both, in the order of the smaller one."""
        others = _keys_of(other)
        if len(self) <= len(others):
            return new_set([value for value in self if others.has(value)])
        return new_set([value for value in others if self.has(value)])

    def difference(self, other: Value) -> SetValue:
        """What is here alone."""
        others = _keys_of(other)
        return new_set([value for value in self if not others.has(value)])

    def symmetric_difference(self, other: Value) -> SetValue:
        """What is in one of the two alone."""
        others = _keys_of(other)
        return new_set([*self.difference(others), *others.difference(self)])

    def is_subset_of(self, other: Value) -> bool:
        """Whether all of it is in the other one, too."""
        others = _keys_of(other)
        return all(others.has(value) for value in self)

    def is_superset_of(self, other: Value) -> bool:
        """Whether all of the other one is here, too."""
        return all(self.has(value) for value in _keys_of(other))

    def is_disjoint_from(self, other: Value) -> bool:
        """Whether they have nothing in common."""
        return not any(self.has(value) for value in _keys_of(other))


def _keys_of(other: Value) -> SetValue:
    """What a set is compared with: another one, or the keys of a map. Raises TypeErrorValue for anything else."""
    if isinstance(other, MapValue):
        return new_set([key for key, _ in other.pairs()])
    if not isinstance(other, SetValue):
        raise TypeErrorValue(f"{describe(other)} is no Set; write `new Set(…)` around it")
    return other


def new_map(entries: Value = undefined) -> MapValue:
    """`new Map(entries)`."""
    made = MapValue()
    for entry in [] if nullish(entries) else iterate(entries):
        if not isinstance(entry, list | tuple):
            raise TypeErrorValue(f"Iterator value {describe(entry)} is not an entry object")
        key, value = [*entry, undefined, undefined][:2]
        made.set(key, value)
    return made


def new_set(values: Value = undefined) -> SetValue:
    """`new Set(values)`."""
    made = SetValue()
    for value in [] if nullish(values) else iterate(values):
        made.add(value)
    return made


MAP_STATICS = MethodTable()


@MAP_STATICS.add_as("groupBy")
def group_by(items: Value, callback: Value) -> MapValue:
    """`Map.groupBy`: items under what the callback gives for them."""
    groups = MapValue()
    arity(callback)  # which refuses what cannot be called, also where there is nothing to call it for
    for index, item in enumerate(iterate(items)):
        key = apply(callback, item, index)
        if not groups.has(key):
            groups.set(key, [])
        groups.get(key).append(item)
    return groups


MAP = Constructor("Map", new_map, None, holder(MapValue), MAP_STATICS)
SET = Constructor("Set", new_set, None, holder(SetValue))
