"""The globals of a program's Python modules: changes by calls are recorded, and restored on resume."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from koi_lang.js.tagged_json import NotEncodableError, decode, encode, is_value_type
from koi_lang.runtime.modules.python_neighbours import neighbours

# What has more parts is compared by its length only, and is not kept.
MAX_PARTS = 500
PART_CHARACTERS = 64
# Variables that seldom change; those of them that functions of their module assign are looked at nevertheless.
CONSTANT = (FunctionType, ModuleType, type, bytes, tuple, frozenset)
# How deep objects of the program's own classes are compared.
MAX_DEPTH = 4
# What can be compared of a value, and a list with its JSON form; None where it has none.
Shown: TypeAlias = tuple[Any, list[Any] | None]
CHANGED, LOST = "globals", "lost_globals"


class ModuleState:
    """The globals that a call of Python may change: those of the program's modules in the folder of its function.

    Functions and tuples that nobody assigns are passed over, and so is what holds objects of other packages, such as
    connections, which a new process makes anew. Attributes of classes count as `Class.name`.

    Attributes:
        key: stands for these modules where it is noted who lacks which calls; None where there are none.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.key = _folder_of(_module_name(function))
        self._before: dict[tuple[str, str], Shown | None] = {} if self.key is None else _snapshot(self.key)
        self._is_lost = False

    def changes(self) -> dict[str, Any]:
        """The journal fields of the changes since; values without a JSON form are lost."""
        if self.key is None:
            return {}
        now = _snapshot(self.key)
        kept: dict[str, dict[str, Any]] = {}
        is_lost = self._is_lost or any(name not in now for name in self._before)
        for (module, name), shown in now.items():
            if shown is None or self._before.get((module, name)) == shown:
                continue
            if shown[1] is None:
                is_lost = True
            else:
                kept.setdefault(module.rpartition("/")[2], {})[name] = shown[1][0]
        return {**({CHANGED: kept} if kept else {}), **({LOST: True} if is_lost else {})}

    def restore(self, data: Mapping[str, Any]) -> bool:
        """Change them as some fields say; says whether they are then as they were."""
        self._is_lost = bool(data.get(LOST))
        changed = data.get(CHANGED) or {}
        if self.key is None or not isinstance(changed, dict):
            return not changed
        modules = {name.rpartition("/")[2]: module for name, module in _modules_in(self.key)}
        for name, values in changed.items():
            if name in modules:
                _assign(modules[name], values)
            else:
                self._is_lost = True  # it was not imported before a call that is not made now
        return not self._is_lost


def state_key(module: ModuleType) -> str | None:
    """The key of the state that a module of the program belongs to; None for other modules."""
    return _folder_of(module.__name__)


def replace_content(value: Any, now: Any) -> bool:
    """Give a list, object or the like the content of another; says whether it is one of the same type."""
    if type(value) is not type(now) or not hasattr(value, "clear"):
        return False
    value.clear()
    (value.extend if hasattr(value, "extend") else value.update)(now)
    return True


def _module_name(function: Callable[..., Any]) -> str:
    found = inspect.unwrap(function)
    return str(getattr(getattr(found, "__func__", found), "__module__", None) or "")


def _folder_of(module: str) -> str | None:
    folder = neighbours().owners.get(module)
    return None if folder is None else sys.intern(folder)


def _modules_in(folder: str) -> list[tuple[str, ModuleType]]:
    owners = list(neighbours().owners.items())
    return [(name, sys.modules[name]) for name, owner in owners if owner == folder and name in sys.modules]


# ---------------------------------------------------------------- what they hold


class ForeignError(Exception):
    """A value holds an object of another package."""


def _snapshot(folder: str) -> dict[tuple[str, str], Shown | None]:
    """The comparable form of each variable; None for objects of other packages."""
    found: dict[tuple[str, str], Shown | None] = {}
    for module_name, module in _modules_in(folder):
        held = {"": vars(module)}
        for owner, name in _variables(module):
            holder = held.get(owner)
            if holder is None:
                holder = held[owner] = getattr(held[""].get(owner), "__dict__", {})
            if name in holder:
                found[module_name, f"{owner}.{name}" if owner else name] = _to_shown(holder[name])
    return found


@functools.lru_cache(maxsize=256)
def _variables(module: ModuleType) -> tuple[tuple[str, str], ...]:
    """The variables of a module that code may change, each with the name of its class, empty for the module's own."""
    found = {("", name): None for name in sorted(_assigned_names(module))}
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            own = [
                each for each, held in vars(value).items() if is_value_type(type(held)) and not each.startswith("__")
            ]
            found |= {(name, attribute): None for attribute in own}
        elif not (isinstance(value, CONSTANT) or name.startswith("__")):
            found["", name] = None
    return tuple(found)


def _assigned_names(module: ModuleType) -> frozenset[str]:
    """The globals that functions of a module, and methods of its classes, assign."""
    values = list(vars(module).values())
    kinds = [value for value in values if isinstance(value, type) and value.__module__ == module.__name__]
    values += [inspect.unwrap(each) for kind in kinds for each in vars(kind).values() if callable(each)]
    codes = [
        value.__code__ for value in map(inspect.unwrap, filter(callable, values)) if isinstance(value, FunctionType)
    ]
    return frozenset().union(*map(_stored_globals, codes))


@functools.lru_cache(maxsize=4096)
def _stored_globals(code: CodeType) -> frozenset[str]:
    """The globals that some code, or a function in it, assigns or removes."""
    steps = dis.get_instructions(code)
    own = {str(step.argval) for step in steps if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return frozenset(own).union(*(_stored_globals(each) for each in code.co_consts if isinstance(each, CodeType)))


def _to_shown(value: Any) -> Shown | None:
    if type(value) in (int, bool, type(None)):
        encoded = encode(value)
        return (type(value), encoded), [encoded]
    if _parts(value, MAX_PARTS) <= 0:
        return (id(value), len(value)), None
    try:
        encoded = encode(value)
    except NotEncodableError:
        try:
            return _fingerprint(value), None
        except ForeignError:
            return None
    return (type(value), encoded), [encoded]


def _parts(value: Any, most: int) -> int:
    """How many parts are left of so many when those of a value are taken away; at most 0 when there are more."""
    most -= 1
    if isinstance(value, (str, bytes, bytearray, range)):
        return most - len(value) // PART_CHARACTERS
    if not is_value_type(type(value)) or not hasattr(value, "__iter__"):
        return most
    for item in value.items() if isinstance(value, Mapping) else value:
        most = _parts(item, most)
        if most <= 0:
            break
    return most


def _fingerprint(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The comparable form of a value without a JSON form. Raises ForeignError."""
    kind = type(value)
    if is_value_type(kind):
        items = [item for pair in value.items() for item in pair] if isinstance(value, Mapping) else value
        if not hasattr(kind, "__iter__") or isinstance(value, (str, bytes, bytearray, range)):
            return value
        return kind.__name__, [_fingerprint(item, depth - 1) for item in items] if depth else len(value)
    if kind.__module__ == "itertools":
        return repr(value)
    if kind in (FunctionType, ModuleType) or isinstance(value, type):
        return id(value)
    if kind.__module__ not in neighbours().owners:
        raise ForeignError
    fields = getattr(value, "__dict__", {})
    return id(value), [(name, _fingerprint(item, depth - 1)) for name, item in fields.items()] if depth else len(fields)


def _assign(module: ModuleType, values: Mapping[str, Any]) -> None:
    for name, encoded in values.items():
        owner, _, attribute = name.rpartition(".")
        holder = getattr(module, owner, None) if owner else module
        now = decode(encoded)
        if holder is not None and not replace_content(getattr(holder, attribute, None), now):
            setattr(holder, attribute, now)
