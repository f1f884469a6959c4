"""Lazy imports: modules that are loaded when something of them is used first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Stands for a module until something of it is asked for, which loads it; nothing is kept of it here."""

    def __getattr__(self, name: str) -> Any:
        # Not out of `sys.modules`: another thread may be executing the module, and then its import waits for that.
        return getattr(import_module(self.__name__), name)


def lazy_module(name: str) -> Any:
    """A module that is loaded with the first name that is asked of it.

    Type checkers see a plain import beside it:

    ```python
    if TYPE_CHECKING:
        import openai
    else:
        openai = lazy_module("openai")
    ```

    Args:
        name: the whole name of the module.
    """
    return LazyModule(name)


def lazy_names(package: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose public names stand in modules that most of its users do not need.

    Args:
        package: that has the names.
        places: the names that each module has.
    """
    owners = {name: place for place, names in places.items() for name in names}

    def find(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module `{package}` has no `{name}`")
        return getattr(import_module(owners[name]), name)

    return find
