"""Objects with getters and setters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from koi_lang.js.calling import apply_to
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.own_properties import sort_names
from koi_lang.js.undefined import Value, undefined


@dataclass(frozen=True, slots=True, eq=False)
class Accessor:
    """What stands under a key instead of a value: functions that read and write it, undefined where there is none."""

    getter: Value = undefined
    setter: Value = undefined

    @property
    def title(self) -> str:
        """How it is shown."""
        names = [name for name, f in (("Getter", self.getter), ("Setter", self.setter)) if f is not undefined]
        return f"[{'/'.join(names)}]"


class AccessorObject(dict[str, Value]):
    """An object some of whose keys hold accessors. Whoever reads it as a dict gets values; copies have no accessors."""

    __koi_record__: ClassVar[bool] = True

    def __getitem__(self, key: str) -> Value:
        found = super().__getitem__(key)
        if type(found) is not Accessor:
            return found
        return undefined if found.getter is undefined else apply_to(self, found.getter)

    def __setitem__(self, key: str, new: Value) -> None:
        found = super().get(key)
        if type(found) is not Accessor:
            super().__setitem__(key, new)
        elif found.setter is undefined:
            raise TypeErrorValue(f"Cannot set property {key} of #<Object> which has only a getter")
        else:
            apply_to(self, found.setter, new)

    def __iter__(self) -> Iterator[str]:
        # Python copies what has an `__iter__` of its own through `keys` and `[…]`, and not as it is stored.
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Value:
        """The value under a key."""
        found = super().get(key, default)
        return self[key] if type(found) is Accessor else found

    def values(self) -> list[Value]:  # type: ignore[override]
        """All values, read now."""
        return [self[key] for key in self]

    def items(self) -> list[tuple[str, Value]]:  # type: ignore[override]
        """All keys with their values, read now."""
        return [(key, self[key]) for key in self]

    def copy(self) -> dict[str, Value]:
        """A plain object with the values there are now."""
        return dict(self.items())

    def list_stored(self) -> list[tuple[str, Value]]:
        """All keys in JavaScript's order with what stands there, accessors as they are."""
        return [(key, super(AccessorObject, self).__getitem__(key)) for key in sort_names(self)]
