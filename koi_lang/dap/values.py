"""Values of a program in a debugger: in the forms of Koi, with their children by name."""

from __future__ import annotations

import ctypes
import sys
from types import FrameType
from typing import Any

from koi_lang.compiler.scope import PYTHON_NAMES
from koi_lang.js.inspect_value import inspect
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.operators import type_of
from koi_lang.js.own_properties import own_entries
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.destructuring import Box

# Characters of a value in a list of variables.
MAX_CHARS = 2000
# What generated functions have beside the variables of the program.
HIDDEN = frozenset({"scope", "koi", "koi_lang"})


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a call by their names in the program."""
    return {
        koi_name(name): value.value if isinstance(value, Box) else value
        for name, value in frame.f_locals.items()
        if name not in HIDDEN and not name.startswith(".")
    }


def koi_name(name: str) -> str:
    """The name in the program of a variable of Python."""
    plain = name.replace("_S_", "$")
    return plain[:-1] if plain.endswith("_") and plain.rstrip("_") in PYTHON_NAMES else plain


def set_variable(frame: FrameType, name: str, value: Any) -> bool:
    """Give a variable of a call another value; whether there is one of that name."""
    found = next((each for each in frame.f_locals if koi_name(each) == name), None)
    if found is None:
        return False
    kept = frame.f_locals[found]
    if isinstance(kept, Box):
        kept.value = value
        return True
    frame.f_locals[found] = value
    if sys.version_info < (3, 13):  # there `f_locals` is a copy
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return True


def plain(value: Any) -> Any:
    """A value as expressions know it: an agent is an object with its name, role and state."""
    if isinstance(value, Agent):
        return {"name": value.name, "role": value.role_name, "state": value.state}
    return value


def text_of(value: Any) -> str:
    """A value on few lines, as `console.log` shows it within objects."""
    text = inspect(plain(value), depth=1)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}… ({len(text) - MAX_CHARS} more characters)"


def kind_of(value: Any) -> str:
    """The kind of a value, as `typeof` says it, with arrays told apart."""
    return "array" if isinstance(value, list) else "agent" if isinstance(value, Agent) else type_of(value)


def children_of(value: Any) -> list[tuple[str, Any]]:
    """The children of a value, by name; none for a simple one."""
    inside = plain(value)
    if isinstance(inside, (str, int, float, type(None))):
        return []
    if isinstance(inside, (MapValue, SetValue)):
        return [(str(index), each) for index, each in enumerate(inside)]
    return own_entries(inside)
