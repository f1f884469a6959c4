"""Values to the text that Node's `util.inspect` shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from koi_lang.js.accessors import AccessorObject
from koi_lang.js.conversions import PRIMITIVES, is_number, number, text
from koi_lang.js.errors import AggregateErrorValue, ErrorValue
from koi_lang.js.inspect_layout import WIDTH, enclose, group_columns
from koi_lang.js.inspect_primitives import key_text, leaf, number_leaf, string_text
from koi_lang.js.iteration import IteratorValue
from koi_lang.js.json_text import stringify
from koi_lang.js.keyed_collections import MapValue, SetValue, new_set
from koi_lang.js.number_format import NAN, parse_float, parse_int
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.promises import Promise
from koi_lang.js.regexes import Groups, RegexMatch
from koi_lang.js.undefined import Value, undefined

_MAX_ITEMS = 100
_FLAT_LEVELS = 3


@dataclass(frozen=True, slots=True)
class _Shape:
    """How an object is written: `[name]` where it is too deep, otherwise entries in braces after a base."""

    name: str
    left: str
    right: str
    entries: Callable[[int], list[str]]
    size: int
    base: str = ""
    deep: str = ""
    items: Sequence[Value] | None = None


def inspect(value: Value, depth: int = 2, hidden: bool = False) -> str:
    """A value as text; strings are quoted.

    Args:
        value: anything.
        depth: how many levels of objects inside the outermost one are written out.
        hidden: whether the length of arrays is shown.
    """
    return _Inspector(depth, hidden).write(value, 0)


class _Inspector:
    """One inspection: `open` are the objects around the current one, `references` those found inside themselves."""

    def __init__(self, depth: int, hidden: bool) -> None:
        self.depth = depth
        self.hidden = hidden
        self.indent = 0
        self.deepest = 0
        self.open: list[Value] = []
        self.references: dict[int, int] = {}

    def write(self, value: Value, level: int) -> str:
        """A value at a level of nesting."""
        if isinstance(value, str):
            return string_text(value, WIDTH - self.indent - 4, self.indent + 2)
        simple = leaf(value)
        if simple is not None:
            return simple
        if any(value is outer for outer in self.open):
            return f"[Circular *{self.references.setdefault(id(value), len(self.references) + 1)}]"
        shape = self._shape(value, level)
        if shape is None:
            return repr(value).replace("\n", "\n" + " " * self.indent)
        return self._inspect_nested(value, shape, level)

    def _inspect_nested(self, value: Value, shape: _Shape, level: int) -> str:
        if not shape.size:
            return shape.base or shape.left + shape.right
        if level > self.depth:
            return shape.deep or f"[{shape.name}]"
        self.open.append(value)
        self.deepest = level
        entries = shape.entries(level + 1)
        self.open.pop()
        base = shape.base
        if id(value) in self.references:
            base = f"<ref *{self.references[id(value)]}> {base}".rstrip()
        rows = entries
        if shape.items is not None and len(entries) > 6:
            rows = group_columns(entries, self.indent, len(shape.items) > _MAX_ITEMS, shape.items)
        flat = self.deepest - level < _FLAT_LEVELS and len(rows) == len(entries)
        return enclose(rows, (shape.left, shape.right), base, self.indent, flat)

    def _inside(self, value: Value, level: int) -> str:
        self.indent += 2
        written = self.write(value, level)
        self.indent -= 2
        return written

    def _shape(self, value: Value, level: int) -> _Shape | None:
        if is_array(value):
            return self._array(value)
        if is_record(value):
            members = value.list_stored() if type(value) is AccessorObject else own_entries(value)
            kind = "Object: null prototype" if isinstance(value, Groups) else "Object"
            left = "{" if kind == "Object" else f"[{kind}] {{"
            return _Shape(kind, left, "}", lambda level: self._members(members, level), len(members))
        if isinstance(value, ErrorValue):
            return self._error(value, level)
        if isinstance(value, MapValue | SetValue):
            return self._collection(value)
        if isinstance(value, set | frozenset):
            return self._collection(new_set(list(value)))
        if isinstance(value, Promise):
            return _Shape("Promise", "Promise {", "}", lambda level: [self._outcome(value, level)], 1)
        if isinstance(value, IteratorValue):
            return self._iterator(value)
        if hasattr(type(value), "put_item"):
            return self._bytes(value)
        return self._host_object(value) if hasattr(type(value), "__koi_shape__") else None

    def _host_object(self, value: Value) -> _Shape:
        """An object of the runtime that says which of its members are shown."""
        name, members = value.__koi_shape__()
        left = f"{name} {{".lstrip()
        return _Shape(name, left, "}", lambda level: self._members(members, level), len(members), deep=left + "}")

    def _array(self, items: Sequence[Value]) -> _Shape:
        named: list[tuple[str, Value]] = [("[length]", len(items))] if self.hidden else []
        if isinstance(items, RegexMatch):
            named = [("index", items.start), ("input", items.input), ("groups", items.groups)]

        def entries(level: int) -> list[str]:
            written = _limit_entries([self._inside(item, level) for item in items[:_MAX_ITEMS]], len(items))
            return written + [f"{name}: {self._inside(item, level)}" for name, item in named]

        return _Shape("Array", "[", "]", entries, len(items) + len(named), items=items)

    def _bytes(self, value: Value) -> _Shape:
        """The bytes of an array that holds nothing else."""
        left = f"Uint8Array({len(value)}) ["
        items = [int(item) for item in value[: _MAX_ITEMS + 1]]

        def entries(level: int) -> list[str]:
            return _limit_entries([self._inside(item, level) for item in items[:_MAX_ITEMS]], len(value))

        return _Shape("Uint8Array", left, "]", entries, len(value), deep="[Uint8Array]", items=items)

    def _members(self, members: list[tuple[str, Value]], level: int) -> list[str]:
        return [f"{key_text(name)}: {self._inside(item, level)}" for name, item in members]

    def _collection(self, value: MapValue | SetValue) -> _Shape:
        kind = "Map" if isinstance(value, MapValue) else "Set"

        def entries(level: int) -> list[str]:
            pairs = list(value.pairs())[:_MAX_ITEMS]
            if kind == "Set":
                return _limit_entries([self._inside(item, level) for item, _ in pairs], len(value))
            written = [f"{self._inside(key, level)} => {self._inside(item, level)}" for key, item in pairs]
            return _limit_entries(written, len(value))

        return _Shape(kind, f"{kind}({len(value)}) {{", "}", entries, len(value))

    def _error(self, error: ErrorValue, level: int) -> _Shape:
        own = error.cause is not undefined and error.cause is not error.exception
        hidden = [("[cause]", error.cause)] if own else []
        if isinstance(error, AggregateErrorValue):
            hidden.append(("[errors]", error.errors))
        members = own_entries(error)

        def entries(level: int) -> list[str]:
            return self._members(members, level) + [f"{name}: {self._inside(item, level)}" for name, item in hidden]

        written = getattr(error, "label", str(error))
        base = f"[{written}]" if level else written
        return _Shape(error.kind, "{", "}", entries, len(members) + len(hidden), base=base)

    def _outcome(self, promise: Promise, level: int) -> str:
        status, value = promise.state
        if status == "pending":
            return "<pending>"
        return ("<rejected> " if status == "rejected" else "") + self._inside(value, level)

    def _iterator(self, value: IteratorValue) -> _Shape:
        if value.title.startswith(("Map", "Set", "URL")):
            items = value.peek()
            left = f"{value.title} {{" if value.title.startswith("URL") else f"[{value.title}] {{"
            return _Shape(value.title, left, "}", lambda level: [self._inside(i, level) for i in items], len(items))
        return _Shape("Object", f"Object [{value.title}] {{", "}", lambda level: [], 0)


def _limit_entries(written: list[str], size: int) -> list[str]:
    """Entries, with a note on how many were left out."""
    rest = size - _MAX_ITEMS
    return [*written, f"... {rest} more item{'s' if rest > 1 else ''}"] if rest > 0 else written


def console_text(*values: Value) -> str:
    """What `console.log` prints for its arguments: texts as they are, `%s` and its kin in the first one filled."""
    if not values:
        return ""
    first, rest = values[0], list(values[1:])
    if isinstance(first, str) and rest and "%" in first:
        first, rest = fill(first, rest, inspect)
    return " ".join([value if isinstance(value, str) else inspect(value) for value in (first, *rest)])


_MARK = re.compile("%([sdifjoOc%])")


def fill(form: str, values: list[Value], inspect: Callable[..., str]) -> tuple[str, list[Value]]:
    """The filled text, and the values that no placeholder took; one without a value stays as it is."""
    waiting = list(values)

    def replacement(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        return _format_value(found[1], waiting.pop(0), inspect) if waiting else found[0]

    return _MARK.sub(replacement, form), waiting


def _format_value(kind: str, value: Value, inspect: Callable[..., str]) -> str:
    if kind == "s":
        return _as_text(value, inspect)
    if kind == "d":
        return number_leaf(number(value) if isinstance(value, PRIMITIVES) else NAN)
    if kind == "i":
        return number_leaf(parse_int(text(value)) if isinstance(value, PRIMITIVES) else NAN)
    if kind == "f":
        return number_leaf(parse_float(text(value)))
    if kind == "j":
        written = stringify(value)
        return "undefined" if written is undefined else str(written)
    if kind == "c":
        return ""
    return inspect(value, depth=4, hidden=True) if kind == "o" else inspect(value)


def _as_text(value: Value, inspect: Callable[..., str]) -> str:
    if is_number(value):
        return number_leaf(value)
    own = isinstance(value, dict) and callable(value.get("toString"))
    return text(value) if isinstance(value, PRIMITIVES) or own else inspect(value, depth=0)
