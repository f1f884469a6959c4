"""Names to what stands under them in modules that are not loaded before one of the names is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A module that is imported when something of it is asked for first."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> Any:
    """Stand in for `import name` where only some runs need it; for type checkers there is a plain import."""
    return LazyModule(name)


def on_demand(module: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that lends names of others.

    Such a module is called `late`. Type checkers see plain imports there; a program loads what it uses.

    Args:
        module: that lends.
        places: the names that each module has.
    """
    owners = {name: place for place, names in places.items() for name in names}

    def found(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module `{module}` has no `{name}`")
        return getattr(import_module(owners[name]), name)

    return found
