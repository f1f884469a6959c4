"""Python functions under the names that Koi code calls them by."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import CO_VARARGS
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.undefined import Value

Function: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Function)


class MethodTable(dict[str, Function]):
    """Functions by name; those of methods take the value they belong to first.

    Attributes:
        arities: how many arguments each takes behind that value, at least and at most.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arities: dict[str, tuple[int, int]] = {}

    def add_as(self, *names: str) -> Callable[[F], F]:
        """A decorator that adds a function under its JavaScript names, the first one is how it prints."""

        def add(function: F) -> F:
            function.__dict__["__koi_name__"] = names[0]
            self.update(dict.fromkeys(names, function))
            code = function.__code__
            least = code.co_argcount - len(function.__defaults__ or ()) - 1
            most = sys.maxsize if code.co_flags & CO_VARARGS else code.co_argcount - 1
            self.arities.update(dict.fromkeys(names, (least, most)))
            return function

        return add


def namespace(table: Mapping[str, Value], **more: Value) -> Mapping[str, Value]:
    """A read-only object such as `Math`: the functions of a table and further members."""
    return MappingProxyType({**table, **more})


@dataclass(frozen=True, slots=True, eq=False)
class Constructor:
    """A global such as `Map`: what `new Map(…)` and `Map(…)` make, what is `instanceof` it, its own members."""

    name: str
    build: Function
    convert: Function | None
    holds: Callable[[Value], bool]
    statics: Mapping[str, Value] = field(default_factory=dict)

    def __call__(self, *args: Value) -> Value:
        """The result of a call without `new`."""
        if self.convert is None:
            raise TypeErrorValue(f"Class constructor {self.name} cannot be invoked without 'new'")
        return self.convert(*args)


def holder(*kinds: type) -> Callable[[Value], bool]:
    """A test for being an instance of one of some Python classes."""
    return lambda value: isinstance(value, kinds)
