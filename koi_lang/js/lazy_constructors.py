"""Constructors whose modules are loaded when a program uses them first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from koi_lang.js.calling import apply
from koi_lang.js.method_tables import Constructor
from koi_lang.js.undefined import Value


class _LazyStatics(Mapping[str, Value]):
    """The members of a constructor, which is loaded with the first one that is asked for."""

    def __init__(self, load: Callable[[], Constructor]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> Value:
        return self._load().statics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load().statics)

    def __len__(self) -> int:
        return len(self._load().statics)


def lazy_constructor(name: str, module: str, *, is_function: bool = False) -> Constructor:
    """A constructor that stands for the one of a module, which is loaded when something of it is used first.

    Args:
        name: of the global; the module has the constructor under it in capital letters.
        module: its whole name.
        is_function: whether it may be called without `new`.
    """

    def load() -> Constructor:
        constructor: Constructor = getattr(import_module(module), name.upper())
        return constructor

    def holds(value: Value) -> bool:
        return module in sys.modules and load().holds(value)

    def build(*args: Value) -> Value:
        return apply(load().build, *args)

    return Constructor(name, build, build if is_function else None, holds, _LazyStatics(load))
