"""The value of what is not there, and the type that stands for any Koi value."""

from __future__ import annotations

from typing import Any, TypeAlias

# Koi values are dict, list, str, int, float, bool, None, `undefined`, callables and host objects.
Value: TypeAlias = Any


class Undefined:
    """The class of `undefined`; calling it gives the one instance."""

    __slots__ = ()
    _only: Undefined

    def __new__(cls) -> Undefined:
        """The only value of this class."""
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "undefined"

    def __copy__(self) -> Undefined:
        return self

    def __deepcopy__(self, memo: object) -> Undefined:
        return self

    def __reduce__(self) -> str:
        return "undefined"


Undefined._only = object.__new__(Undefined)
undefined = Undefined()


def nullish(value: Value) -> bool:
    """Whether a value is null or undefined."""
    return value is None or value is undefined
