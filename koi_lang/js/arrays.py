"""The methods of arrays and the global `Array`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from itertools import islice
from types import CoroutineType, FunctionType

from koi_lang.js.calling import apply, arity, describe
from koi_lang.js.comparison import same
from koi_lang.js.conversions import integer, join_text, number, text, truth
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.iteration import IteratorValue, iterate, outcomes
from koi_lang.js.method_tables import Constructor, MethodTable
from koi_lang.js.promises import start_coroutine
from koi_lang.js.strings import span
from koi_lang.js.undefined import Value, nullish, undefined

METHODS = MethodTable()
STATICS = MethodTable()
MAX_LENGTH = 2**32 - 1


def _results(items: list[Value], callback: Value) -> Iterator[tuple[Value, Value]]:
    """Each item with what the callback gives for it."""
    arity(callback)  # which refuses what cannot be called, also where there is nothing to call it for
    return zip(islice(items, len(items)), outcomes(callback, items, start_coroutine), strict=False)


@METHODS.add_as("at")
def _at(items: list[Value], index: Value = 0) -> Value:
    position = integer(index)
    position += len(items) if position < 0 else 0
    return items[position] if 0 <= position < len(items) else undefined


@METHODS.add_as("concat")
def _concat(items: list[Value], *others: Value) -> list[Value]:
    made = list(items)
    for other in others:
        made += other if isinstance(other, list | tuple) else [other]
    return made


@METHODS.add_as("entries")
def _entries(items: list[Value]) -> IteratorValue:
    return IteratorValue("Array Iterator", ([index, item] for index, item in enumerate(items)))


@METHODS.add_as("keys")
def _keys(items: list[Value]) -> IteratorValue:
    return IteratorValue("Array Iterator", range(len(items)))


@METHODS.add_as("values")
def _values(items: list[Value]) -> IteratorValue:
    return IteratorValue("Array Iterator", items)


@METHODS.add_as("every")
def _every(items: list[Value], callback: Value) -> bool:
    return all(truth(result) for _, result in _results(items, callback))


@METHODS.add_as("some")
def _some(items: list[Value], callback: Value) -> bool:
    return any(truth(result) for _, result in _results(items, callback))


@METHODS.add_as("fill")
def _fill(items: list[Value], value: Value, start: Value = 0, end: Value = undefined) -> list[Value]:
    first, last = span(start, end, len(items))
    items[first:last] = [value] * (last - first)
    return items


@METHODS.add_as("filter")
def _filter(items: list[Value], callback: Value) -> list[Value]:
    return [item for item, result in _results(items, callback) if result is True or truth(result)]


@METHODS.add_as("find")
def _find(items: list[Value], callback: Value) -> Value:
    return next((item for item, result in _results(items, callback) if truth(result)), undefined)


@METHODS.add_as("findIndex")
def _find_index(items: list[Value], callback: Value) -> int:
    results = enumerate(outcomes(callback, items, start_coroutine))
    return next((index for index, result in results if truth(result)), -1)


def _last(items: list[Value], callback: Value) -> tuple[int, Value]:
    """The last item that fits and its place; the callback may shorten the array."""
    arity(callback)
    for index in reversed(range(len(items))):
        item = items[index] if index < len(items) else undefined
        if truth(apply(callback, item, index, items)):
            return index, item
    return -1, undefined


@METHODS.add_as("findLast")
def _find_last(items: list[Value], callback: Value) -> Value:
    return _last(items, callback)[1]


@METHODS.add_as("findLastIndex")
def _find_last_index(items: list[Value], callback: Value) -> int:
    return _last(items, callback)[0]


@METHODS.add_as("flat")
def _flat(items: list[Value], depth: Value = 1) -> list[Value]:
    levels = integer(depth, 1)
    made: list[Value] = []
    for item in items:
        if isinstance(item, list | tuple) and levels > 0:
            made += _flat(list(item), levels - 1)
        else:
            made.append(item)
    return made


@METHODS.add_as("flatMap")
def _flat_map(items: list[Value], callback: Value) -> list[Value]:
    return _flat(list(outcomes(callback, items, start_coroutine)), 1)


@METHODS.add_as("forEach")
def _for_each(items: list[Value], callback: Value) -> Value:
    for _ in outcomes(callback, items, start_coroutine):
        pass
    return undefined


@METHODS.add_as("map")
def _map(items: list[Value], callback: Value) -> list[Value]:
    return list(outcomes(callback, items, start_coroutine))


@METHODS.add_as("includes")
def _includes(items: list[Value], wanted: Value, start: Value = 0) -> bool:
    first, _ = span(start, undefined, len(items))
    if isinstance(wanted, float) and wanted != wanted:
        return any(isinstance(item, float) and item != item for item in items[first:])
    return any(same(item, wanted) for item in islice(items, first, None))


@METHODS.add_as("indexOf")
def _index_of(items: list[Value], wanted: Value, start: Value = 0) -> int:
    first, _ = span(start, undefined, len(items))
    return next((index for index in range(first, len(items)) if same(items[index], wanted)), -1)


@METHODS.add_as("lastIndexOf")
def _last_index_of(items: list[Value], wanted: Value, start: Value = undefined) -> int:
    last = integer(start, len(items) - 1)
    last = last + len(items) if last < 0 else min(last, len(items) - 1)
    return next((index for index in range(last, -1, -1) if same(items[index], wanted)), -1)


@METHODS.add_as("join")
def _join(items: list[Value], separator: Value = ",") -> str:
    return join_text(items, "," if separator is undefined else text(separator))


@METHODS.add_as("pop")
def _pop(items: list[Value]) -> Value:
    return items.pop() if items else undefined


@METHODS.add_as("push")
def _push(items: list[Value], *values: Value) -> int:
    items += values
    return len(items)


@METHODS.add_as("shift")
def _shift(items: list[Value]) -> Value:
    return items.pop(0) if items else undefined


@METHODS.add_as("unshift")
def _unshift(items: list[Value], *values: Value) -> int:
    items[:0] = values
    return len(items)


def _fold_items(
    callback: Value, steps: Iterator[tuple[int, Value]], items: list[Value], first: tuple[Value, ...]
) -> Value:
    """Fold the steps; without a first value the first item is it."""
    if first:
        total = first[0]
    elif not items:
        raise TypeErrorValue("Reduce of empty array with no initial value")
    else:
        _, total = next(steps)
    callback = getattr(callback, "__koi_code__", callback)
    is_pair = type(callback) is FunctionType and arity(callback).most == 2
    for index, item in steps:
        result = callback(total, item) if is_pair else apply(callback, total, item, index, items)
        total = start_coroutine(result) if type(result) is CoroutineType else result
    return total


@METHODS.add_as("reduce")
def _reduce(items: list[Value], callback: Value, *first: Value) -> Value:
    return _fold_items(callback, iter(list(enumerate(items))), items, first)


@METHODS.add_as("reduceRight")
def _reduce_right(items: list[Value], callback: Value, *first: Value) -> Value:
    return _fold_items(callback, reversed(list(enumerate(items))), items, first)


@METHODS.add_as("reverse")
def _reverse(items: list[Value]) -> list[Value]:
    items.reverse()
    return items


@METHODS.add_as("toReversed")
def _to_reversed(items: list[Value]) -> list[Value]:
    return items[::-1]


@METHODS.add_as("slice")
def _slice(items: list[Value], start: Value = 0, end: Value = undefined) -> list[Value]:
    first, last = span(start, end, len(items))
    return items[first:last]


@METHODS.add_as("splice")
def _splice(items: list[Value], *args: Value) -> list[Value]:
    if not args:
        return []
    first, last = span(args[0], undefined, len(items))
    if len(args) > 1:
        last = min(last, first + max(0, integer(args[1])))
    removed = items[first:last]
    items[first:last] = args[2:]
    return removed


@METHODS.add_as("toSpliced")
def _to_spliced(items: list[Value], *args: Value) -> list[Value]:
    made = list(items)
    _splice(made, *args)
    return made


@METHODS.add_as("sort")
def _sort(items: list[Value], compare: Value = undefined) -> list[Value]:
    items[:] = _sort_items(items, compare)
    return items


@METHODS.add_as("toSorted")
def _to_sorted(items: list[Value], compare: Value = undefined) -> list[Value]:
    return _sort_items(items, compare)


def _sort_items(items: list[Value], compare: Value) -> list[Value]:
    """Sorted stably, by text without a comparison; undefined goes last."""
    present = [item for item in items if item is not undefined]
    if compare is undefined:
        present.sort(key=text)
    elif not callable(compare):
        raise TypeErrorValue("The comparison function must be either a function or undefined")
    else:
        present.sort(key=cmp_to_key(_comparison(compare)))
    return present + [undefined] * (len(items) - len(present))


def _comparison(compare: Value) -> Callable[[Value, Value], int]:
    """A comparison of Koi as Python's sort asks for it."""
    compare = getattr(compare, "__koi_code__", compare)
    if type(compare) is not FunctionType or arity(compare) != (2, 2):
        return lambda a, b: _order(start_coroutine(apply(compare, a, b)))

    def order(a: Value, b: Value) -> int:
        result = compare(a, b)
        return result if type(result) is int else _order(start_coroutine(result))

    return order


def _order(result: Value) -> int:
    n = number(result)
    return (n > 0) - (n < 0)


@METHODS.add_as("copyWithin")
def _copy_within(items: list[Value], target: Value, start: Value = 0, end: Value = undefined) -> list[Value]:
    first, last = span(start, end, len(items))
    to, _ = span(target, undefined, len(items))
    moved = items[first : max(first, min(last, first + len(items) - to))]
    items[to : to + len(moved)] = moved
    return items


@METHODS.add_as("with")
def _with(items: list[Value], index: Value, value: Value) -> list[Value]:
    position = integer(index)
    position += len(items) if position < 0 else 0
    if not 0 <= position < len(items):
        raise RangeErrorValue(f"Invalid index : {text(index)}")
    return [*items[:position], value, *items[position + 1 :]]


@METHODS.add_as("toString", "toLocaleString")
def _to_string(items: list[Value]) -> str:
    return join_text(items)


@STATICS.add_as("isArray")
def _is_array(value: Value) -> bool:
    return isinstance(value, list | tuple)


@STATICS.add_as("of")
def _of(*items: Value) -> list[Value]:
    return list(items)


@STATICS.add_as("from")
def _from(source: Value, callback: Value = undefined) -> list[Value]:
    if callback is undefined:
        return _to_list(source)
    arity(callback)
    items = _to_list(source)
    return [start_coroutine(apply(callback, item, index)) for index, item in enumerate(items)]


def _to_list(source: Value) -> list[Value]:
    """An array of what can be iterated, or of the numbered members of an object with a length."""
    if isinstance(source, dict):
        length = max(0, integer(source.get("length", 0)))
        return [source.get(str(index), undefined) for index in range(_check_length(length))]
    if nullish(source):
        raise TypeErrorValue(f"{describe(source)} is not iterable")
    return list(iterate(source)) if hasattr(type(source), "__iter__") else []


def _check_length(length: Value) -> int:
    if not isinstance(length, int) or not 0 <= length <= MAX_LENGTH:
        raise RangeErrorValue("Invalid array length")
    return length


def _build(*args: Value) -> list[Value]:
    """`Array(n)` has n undefined items; other arguments are the items."""
    if len(args) == 1 and isinstance(args[0], int | float) and not isinstance(args[0], bool):
        return [undefined] * _check_length(args[0])
    return list(args)


ARRAY = Constructor("Array", _build, _build, lambda value: isinstance(value, list | tuple), STATICS)
