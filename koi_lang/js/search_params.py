"""The global `URLSearchParams`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from koi_lang.js.calling import apply
from koi_lang.js.conversions import text
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.inspect_layout import WIDTH
from koi_lang.js.inspect_primitives import string_text
from koi_lang.js.iteration import IteratorValue
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.own_properties import is_record, own_entries
from koi_lang.js.undefined import Value, nullish, undefined
from koi_lang.js.url_encoding import form_text, parse_form, scalar_text

Pair = tuple[str, str]


class SearchParamsValue:
    """Pairs of names and values, of which several may have one name.

    Args:
        pairs: in their order.
        changed: is told the query when the program has changed them.
    """

    __slots__ = ("_changed", "pairs")
    __koi_members__: ClassVar[dict[str, str]] = {
        "size": "size", "append": "append", "delete": "delete", "get": "get", "getAll": "get_all", "has": "has",
        "set": "set", "sort": "sort", "entries": "entries", "forEach": "each", "keys": "keys", "values": "values",
        "toString": "__str__",
    }  # fmt: skip

    def __init__(self, pairs: list[Pair], changed: Callable[[str], object] | None = None) -> None:
        self.pairs = pairs
        self._changed = changed

    def __iter__(self) -> Iterator[list[str]]:
        return ([name, value] for name, value in self.pairs)

    def __str__(self) -> str:
        return form_text(self.pairs)

    def __repr__(self) -> str:
        written = [f"{string_text(name, WIDTH, 2)} => {string_text(value, WIDTH, 2)}" for name, value in self.pairs]
        if sum(map(len, written)) + 2 * (len(written) - 1) > WIDTH:
            return "URLSearchParams {\n  " + ",\n  ".join(written) + " }"
        return f"URLSearchParams {{ {', '.join(written)} }}" if written else "URLSearchParams {}"

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return len(self.pairs)

    def append(self, *given: Value) -> Value:
        """Add a pair at the end."""
        name, value = _texts(given, "name", "value")
        return self._replace([*self.pairs, (name, value)])

    def delete(self, *given: Value) -> Value:
        """Remove the pairs of a name, or only those with a value."""
        name, value = _name_and_value(given)
        return self._replace([pair for pair in self.pairs if pair[0] != name or value not in (None, pair[1])])

    def get(self, *given: Value) -> Value:
        """The first value of a name, null when there is none."""
        (wanted,) = _texts(given, "name")
        return next((value for name, value in self.pairs if name == wanted), None)

    def get_all(self, *given: Value) -> list[Value]:
        """All values of a name."""
        (wanted,) = _texts(given, "name")
        return [value for name, value in self.pairs if name == wanted]

    def has(self, *given: Value) -> bool:
        """Whether there is a pair of a name, or of a name and a value."""
        wanted, value = _name_and_value(given)
        return any(name == wanted and value in (None, known) for name, known in self.pairs)

    def set(self, *given: Value) -> Value:
        """Give a name one value, in the place of the first one that it has."""
        name, value = _texts(given, "name", "value")
        at = next((at for at, pair in enumerate(self.pairs) if pair[0] == name), len(self.pairs))
        rest = [pair for pair in self.pairs[at:] if pair[0] != name]
        return self._replace([*self.pairs[:at], (name, value), *rest])

    def sort(self) -> Value:
        """Order the pairs by their names; those of one name keep their order."""
        return self._replace(sorted(self.pairs, key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass")))

    def each(self, callback: Value = undefined) -> Value:
        """Call with (value, name) for every pair."""
        for name, value in self.pairs:
            apply(callback, value, name, self)
        return undefined

    def entries(self) -> IteratorValue:
        """An iterator of `[name, value]`."""
        return IteratorValue("URLSearchParams Iterator", self)

    def keys(self) -> IteratorValue:
        """An iterator of the names."""
        return IteratorValue("URLSearchParams Iterator", (name for name, _ in self.pairs))

    def values(self) -> IteratorValue:
        """An iterator of the values."""
        return IteratorValue("URLSearchParams Iterator", (value for _, value in self.pairs))

    def _replace(self, pairs: list[Pair]) -> Value:
        # The same list, which iterators are going through.
        self.pairs[:] = pairs
        if self._changed is not None:
            self._changed(str(self))
        return undefined


def _texts(given: tuple[Value, ...], *names: str) -> list[str]:
    """The arguments as texts. Raises TypeErrorValue where some are missing."""
    if len(given) < len(names):
        listed = " and ".join(f'"{name}"' for name in names)
        plural = "arguments" if len(names) > 1 else "argument"
        raise _refusal(f"The {listed} {plural} must be specified", "ERR_MISSING_ARGS")
    return [scalar_text(text(value)) for value in given[: len(names)]]


def _name_and_value(given: tuple[Value, ...]) -> tuple[str, str | None]:
    """A name, and a value where one is given."""
    (name,) = _texts(given, "name")
    return name, None if len(given) < 2 or given[1] is undefined else scalar_text(text(given[1]))


def _refusal(message: str, code: str) -> TypeErrorValue:
    refusal = TypeErrorValue(message)
    refusal.__koi_extra__["code"] = code
    return refusal


def _build(given: Value = undefined) -> SearchParamsValue:
    if nullish(given):
        return SearchParamsValue([])
    if is_record(given):
        pairs = [(scalar_text(name), scalar_text(text(value))) for name, value in own_entries(given)]
        return SearchParamsValue(list(dict(pairs).items()))
    if isinstance(given, str) or not hasattr(type(given), "__iter__"):
        return SearchParamsValue(parse_form(scalar_text(text(given).removeprefix("?"))))
    return SearchParamsValue([_pair(each) for each in given])


def _pair(given: Value) -> Pair:
    if not isinstance(given, str) and not is_record(given) and hasattr(type(given), "__iter__"):
        items = list(given)
        if len(items) == 2:
            return scalar_text(text(items[0])), scalar_text(text(items[1]))
    raise _refusal("Each query pair must be an iterable [name, value] tuple", "ERR_INVALID_TUPLE")


URLSEARCHPARAMS = Constructor("URLSearchParams", _build, None, holder(SearchParamsValue))
