"""The global `Uint8Array`: bytes that are read and written in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from koi_lang.js import arrays
from koi_lang.js.conversions import PRIMITIVES, integer, number, text
from koi_lang.js.errors import RangeErrorValue, TypeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.own_properties import is_record
from koi_lang.js.strings import span
from koi_lang.js.undefined import Value, undefined

_MAX_LENGTH = 2**32


def to_byte(value: Value) -> int:
    """A value as a byte: the lowest eight bits of its whole part."""
    n = number(value)
    return int(n) & 0xFF if n - n == 0 else 0


class ByteArrayValue:
    """A `Uint8Array`. What does not change it is done as for an array of its numbers.

    Args:
        view: the bytes, which others may share.
    """

    __slots__ = ("view",)
    __koi_kind__ = "a Uint8Array"
    __koi_members__: ClassVar[dict[str, str]] = {
        "byteLength": "byte_length", "byteOffset": "byte_offset", "BYTES_PER_ELEMENT": "element_size", "set": "set",
        "subarray": "subarray", "slice": "slice", "fill": "fill", "sort": "sort", "reverse": "reverse",
        "copyWithin": "copy_within", "map": "map", "filter": "filter", "toSorted": "to_sorted",
        "toReversed": "to_reversed", "with": "replace_item",
    }  # fmt: skip
    # Members of arrays that bytes do not have, since their number stays.
    __koi_absent__ = frozenset({"push", "pop", "shift", "unshift", "splice", "toSpliced", "concat", "flat", "flatMap"})

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __bytes__(self) -> bytes:
        return bytes(self.view)

    def __len__(self) -> int:
        return len(self.view)

    def __iter__(self) -> Iterator[int]:
        return iter(self.view)

    def __getitem__(self, index: int) -> int:
        return self.view[index]

    def __str__(self) -> str:
        return ",".join(map(str, self.view))

    def put_item(self, index: int, value: Value) -> None:
        """Write a byte; there is nothing to write behind the end."""
        byte = to_byte(value)
        if index < len(self.view):
            self.view[index] = byte

    @property
    def byte_length(self) -> int:
        """How many bytes there are."""
        return len(self.view)

    @property
    def byte_offset(self) -> int:
        """Always 0: what is beneath is not reached."""
        return 0

    @property
    def element_size(self) -> int:
        """An item is one byte."""
        return 1

    def set(self, source: Value, offset: Value = 0) -> Value:
        """Write the items of something that has some. Raises RangeErrorValue where they do not fit."""
        items, start = bytes(map(to_byte, _items(source))), integer(offset)
        if start < 0 or start + len(items) > len(self.view):
            raise RangeErrorValue("offset is out of bounds")
        self.view[start : start + len(items)] = items
        return undefined

    def subarray(self, start: Value = 0, end: Value = undefined) -> ByteArrayValue:
        """A part that is the same memory."""
        first, last = span(start, end, len(self.view))
        return ByteArrayValue(self.view[first : max(first, last)])

    def slice(self, start: Value = 0, end: Value = undefined) -> ByteArrayValue:
        """A copy of a part."""
        first, last = span(start, end, len(self.view))
        return byte_array(self.view[first:last])

    def fill(self, value: Value = undefined, start: Value = 0, end: Value = undefined) -> ByteArrayValue:
        """Write one byte to all places of a part."""
        first, last = span(start, end, len(self.view))
        self.view[first:last] = bytes([to_byte(value)]) * max(0, last - first)
        return self

    def sort(self, compare: Value = undefined) -> ByteArrayValue:
        """Order the bytes, as numbers unless a comparison says otherwise."""
        self.view[:] = bytes(self.to_sorted(compare))
        return self

    def reverse(self) -> ByteArrayValue:
        """Turn the order round."""
        self.view[:] = bytes(self)[::-1]
        return self

    def copy_within(self, target: Value, start: Value = 0, end: Value = undefined) -> ByteArrayValue:
        """Write a part over another one."""
        items: list[Value] = list(self)
        self.view[:] = bytes(arrays.METHODS["copyWithin"](items, target, start, end))
        return self

    def map(self, callback: Value) -> ByteArrayValue:
        """The bytes that a function gives."""
        return byte_array(map(to_byte, arrays.METHODS["map"](list(self), callback)))

    def filter(self, callback: Value) -> ByteArrayValue:
        """The bytes that a function wants."""
        return byte_array(arrays.METHODS["filter"](list(self), callback))

    def to_sorted(self, compare: Value = undefined) -> ByteArrayValue:
        """An ordered copy."""
        items: list[Value] = list(self)
        return byte_array(sorted(items) if compare is undefined else arrays.METHODS["toSorted"](items, compare))

    def to_reversed(self) -> ByteArrayValue:
        """A copy in the other order."""
        return byte_array(bytes(self)[::-1])

    def replace_item(self, index: Value, value: Value = undefined) -> ByteArrayValue:
        """A copy with another byte at one place. Raises RangeErrorValue where there is none."""
        return byte_array(arrays.METHODS["with"](list(self), index, to_byte(value)))


def byte_array(content: Iterable[int]) -> ByteArrayValue:
    """A new array of some bytes."""
    return ByteArrayValue(memoryview(bytearray(content)))


def _items(source: Value) -> Iterable[Any]:
    """The items of something that can be iterated, or has numbered members; none of anything else."""
    if is_record(source):
        return list(arrays.STATICS["from"](source))
    return source if hasattr(type(source), "__iter__") else ()


def _build(source: Value = undefined) -> ByteArrayValue:
    if not isinstance(source, PRIMITIVES):
        return byte_array(map(to_byte, _items(source)))
    count = integer(source)
    if not 0 <= count < _MAX_LENGTH:
        raise RangeErrorValue(f"Invalid typed array length: {text(source)}")
    return byte_array(bytes(count))


STATICS = MethodTable()


@STATICS.add_as("of")
def _of(*values: Value) -> ByteArrayValue:
    return byte_array(map(to_byte, values))


@STATICS.add_as("from")
def _from(source: Value, callback: Value = undefined) -> ByteArrayValue:
    return byte_array(map(to_byte, arrays.STATICS["from"](source, callback)))


def _refuse_call(*_: Value) -> Value:
    raise TypeErrorValue("Constructor Uint8Array requires 'new'")


UINT8ARRAY = Constructor(
    "Uint8Array", _build, _refuse_call, holder(ByteArrayValue), {**STATICS, "BYTES_PER_ELEMENT": 1}
)
