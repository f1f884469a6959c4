"""The object `registry` of Koi programs: keys and JSON values to and from a store.

A query is an object of field names and conditions, all of which must hold. A name may be a dotted path (`user.tags.0`).
A condition is a value to be equal to, or an object of operators. A missing field passes `$ne`, `$nin` and
`$exists: false` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from koi_lang.diagnostics import nearest
from koi_lang.errors import RegistryError
from koi_lang.js.bounded_regex import BoundedRegex
from koi_lang.js.conversions import is_number
from koi_lang.runtime.registry.entries import key_text, kind_of, value_of, value_text
from koi_lang.runtime.registry.store import IdempotencyKey, RegistryStore, T


class Registry:
    """Entries that all agents of a run share; keys keep the order in which they were first set.

    Every method raises RegistryError when the store cannot be read or written. Those that change something take
    `once`: with a key that is known they change nothing and give what they gave then.
    """

    __koi_members__: ClassVar[dict[str, str]] = {
        name: name for name in ("get", "set", "delete", "has", "keys", "search", "clear", "stats")
    }

    def __init__(self, store: RegistryStore, *, backend: str) -> None:
        self._store = store
        self._backend = backend

    async def get(self, key: str) -> Any:
        """The value of a key as it was set, a fresh copy each time; None when there is none."""
        name = key_text(key)
        text = self._store.read(name)
        return None if text is None else value_of(name, text)

    async def set(self, key: str, value: object, *, once: IdempotencyKey | None = None) -> None:
        """Keep a JSON value under a key; it is on disk when this returns.

        Raises:
            RegistryError: the value is not JSON; the message names the part that is not.
        """
        name = key_text(key)
        text = value_text(name, value)
        self._change(lambda: self._store.write(name, text), once)

    async def swap(self, key: str, before: object, after: object, *, once: IdempotencyKey | None = None) -> bool:
        """Keep a JSON value under a key that still has another one, None for no value; says whether it had.

        Raises:
            RegistryError: a value is not JSON.
        """
        name = key_text(key)
        wanted, text = value_text(name, before), value_text(name, after)

        def swap() -> bool:
            stored = self._store.read(name)
            if value_text(name, None if stored is None else value_of(name, stored)) != wanted:
                return False
            self._store.write(name, text)
            return True

        return self._change(swap, once)

    async def delete(self, key: str, *, once: IdempotencyKey | None = None) -> bool:
        """Forget a key; says whether it was there."""
        name = key_text(key)
        return self._change(lambda: self._store.remove(name), once)

    async def has(self, key: str) -> bool:
        """Whether a key is set, with any value."""
        return self._store.read(key_text(key)) is not None

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that start with a prefix; all of them when it is empty or absent."""
        keys = self._store.keys()
        if not prefix:
            return keys
        start = key_text(prefix)
        return [key for key in keys if key.startswith(start)]

    async def search(self, query: object) -> list[dict[str, Any]]:
        """The entries whose values match a query, as `{"key", "value"}`.

        Raises:
            RegistryError: the query is malformed, even when there is no entry to try it on.
        """
        test = compile_query(query)
        values = ((key, value_of(key, text)) for key, text in self._store.entries())
        return [{"key": key, "value": value} for key, value in values if test(value)]

    async def clear(self, *, once: IdempotencyKey | None = None) -> int:
        """Forget every entry; says how many there were."""
        return self._change(self._store.clear, once)

    async def stats(self) -> dict[str, Any]:
        """`backend`, `count` of entries, `file` (None in memory) and `size` in bytes."""
        store = self._store
        return {"backend": self._backend, "count": store.count(), "file": store.file, "size": store.size()}

    @property
    def is_durable(self) -> bool:
        """Whether entries are there again in another process."""
        return self._store.file is not None

    def forget(self, keys: Collection[IdempotencyKey]) -> None:
        """Keep some keys no longer; nobody carries their changes out again."""
        self._store.forget(keys)

    def forget_run(self, run: str) -> None:
        """The same for all keys of a run."""
        self._store.forget_run(run)

    def _change(self, change: Callable[[], T], once: IdempotencyKey | None) -> T:
        """The result of a change; with a key, its first result."""
        return self._store.atomically(change) if once is None else self._store.once(once, change)

    def close(self) -> None:
        """Release the store's files; the next use opens them again."""
        self._store.close()


Test = Callable[[Any], bool]

_MISSING: Final = object()


def matches(value: object, query: object) -> bool:
    """Whether a value passes a query; null passes none.

    Raises:
        RegistryError: the query is malformed.
    """
    return compile_query(query)(value)


def compile_query(query: object) -> Test:
    """The test that a query stands for.

    Raises:
        RegistryError: the query is not an object, or an operator is unknown or has an unusable operand.
        PatternError: a regular expression is unusable; the test raises it, too, when one takes too long.
    """
    try:
        test = _object_test(query, "a registry query")
    except RecursionError as error:
        raise RegistryError("the registry query is nested too deep") from error
    return lambda value: value is not None and test(value)


def _object_test(query: object, what: str) -> Test:
    if not isinstance(query, Mapping):
        raise RegistryError(f"{what} must be an object, not {kind_of(query)}", help=_EXAMPLE)
    tests = [_member_test(str(name), operand) for name, operand in query.items()]
    return lambda value: all(test(value) for test in tests)


def _member_test(name: str, operand: object) -> Test:
    if name.startswith("$"):
        return _operator_test(name, operand)
    steps = name.split(".")
    test = _condition_test(operand)
    return lambda value: test(_field(value, name, steps))


def _condition_test(condition: object) -> Test:
    if not isinstance(condition, Mapping):
        return _equal_to(condition)
    if not condition:
        return lambda value: value is not _MISSING and value is not None
    tests = [_operator_test(str(name), operand) for name, operand in condition.items()]
    return lambda value: all(test(value) for test in tests)


def _operator_test(name: str, operand: object) -> Test:
    build = _OPERATORS.get(name)
    if build is None:
        raise _unknown_operator(name)
    return build(operand)


def _unknown_operator(name: str) -> RegistryError:
    near = nearest(name if name.startswith("$") else f"${name}", _OPERATORS)
    hint = f"Did you mean `{near}`? " if near else ""
    known = ", ".join(f"`{operator}`" for operator in _OPERATORS)
    nested = "" if name.startswith("$") else f' For a field inside another write a dotted name: `"outer.{name}"`.'
    return RegistryError(f"unknown registry operator `{name}`", help=f"{hint}The operators are {known}.{nested}")


def _field(value: Any, name: str, steps: Sequence[str]) -> Any:
    """The part of a value that a dotted name leads to; a member with just that name comes first."""
    if isinstance(value, Mapping) and name in value:
        return value[name]
    for step in steps:
        value = _step(value, step)
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, _MISSING)
    if not isinstance(value, (list, tuple)) or not (step.isascii() and step.isdigit()):
        return _MISSING
    # More digits than any list has items; also spares converting thousands of them.
    index = int(step) if len(step) < 16 else len(value)
    return value[index] if index < len(value) else _MISSING


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values by content; true is not 1."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_equal, left, right))
    return type(left) is type(right) and bool(left == right)


def _equal_to(operand: object) -> Test:
    return lambda value: _equal(value, operand)


def _different_from(operand: object) -> Test:
    return lambda value: not _equal(value, operand)


def _compare_ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object], Test]:
    """An operator that puts a number beside a number or text beside text; anything else does not pass."""

    def build(operand: object) -> Test:
        if is_number(operand):
            return lambda value: is_number(value) and compare(value, operand)
        if isinstance(operand, str):
            return lambda value: isinstance(value, str) and compare(value, operand)
        return lambda value: False

    return build


def _one_of(operand: object) -> Test:
    choices = _list(operand, "$in")
    return lambda value: any(_equal(value, choice) for choice in choices)


def _none_of(operand: object) -> Test:
    choices = _list(operand, "$nin")
    return lambda value: not any(_equal(value, choice) for choice in choices)


def _exists(operand: object) -> Test:
    if not isinstance(operand, bool):
        raise RegistryError(f"`$exists` takes true or false, not {kind_of(operand)}")
    return lambda value: (value is not _MISSING) is operand


def _regex(operand: object) -> Test:
    found = _pattern_test(operand)
    return lambda value: isinstance(value, str) and found(value)


def _pattern_test(operand: Any) -> Callable[[str], bool]:
    if isinstance(operand, str):
        return BoundedRegex(operand).is_in
    source, flags = getattr(operand, "source", None), getattr(operand, "flags", None)
    if isinstance(source, str) and isinstance(flags, str):
        return BoundedRegex(source, flags).is_in
    test = getattr(operand, "test", None)
    if callable(test):
        return lambda text: bool(test(text))
    raise RegistryError(f"`$regex` takes text or a regular expression, not {kind_of(operand)}")


def _all_of(operand: object) -> Test:
    tests = [_object_test(query, "each part of `$and`") for query in _list(operand, "$and")]
    return lambda value: all(test(value) for test in tests)


def _any_of(operand: object) -> Test:
    tests = [_object_test(query, "each part of `$or`") for query in _list(operand, "$or")]
    return lambda value: any(test(value) for test in tests)


def _not(operand: object) -> Test:
    test = _object_test(operand, "the operand of `$not`")
    return lambda value: not test(value)


def _list(operand: object, operator: str) -> Sequence[Any]:
    if isinstance(operand, (list, tuple)):
        return operand
    raise RegistryError(f"`{operator}` takes a list, not {kind_of(operand)}", help=_EXAMPLE)


_EXAMPLE = (
    'A query looks like `{ age: { $gte: 18 }, "address.city": "Oslo", $or: [{ vip: true }, { visits: { $gt: 9 } }] }`.'
)

_OPERATORS: Mapping[str, Callable[[object], Test]] = {
    "$eq": _equal_to,
    "$ne": _different_from,
    "$gt": _compare_ordered(lambda value, limit: bool(value > limit)),
    "$gte": _compare_ordered(lambda value, limit: bool(value >= limit)),
    "$lt": _compare_ordered(lambda value, limit: bool(value < limit)),
    "$lte": _compare_ordered(lambda value, limit: bool(value <= limit)),
    "$in": _one_of,
    "$nin": _none_of,
    "$regex": _regex,
    "$exists": _exists,
    "$and": _all_of,
    "$or": _any_of,
    "$not": _not,
}
