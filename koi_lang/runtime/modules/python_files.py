"""Python files that Koi programs import by path."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack, suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from koi_lang.bytecode import tolerate_damage
from koi_lang.errors import KoiError
from koi_lang.runtime.modules.python_neighbours import neighbours


def find_spec(name: str) -> ModuleSpec | None:
    """The spec of a module that Python finds; unlike `importlib` it does not execute the packages above it."""
    parts = name.split(".")
    with suppress(ImportError, ValueError, KeyError):
        spec = importlib.util.find_spec(parts[0])
        for length in range(2, len(parts) + 1):
            if spec is None:
                break
            spec = PathFinder.find_spec(".".join(parts[:length]), list(spec.submodule_search_locations or ()))
        return spec
    return None


def python_file(path: str, beside: str) -> ModuleType:
    """The module of a Python file, given relative to the file that imports it; loaded once in a process.

    It can import the modules that stand beside it now; nobody else can, since Python does not search the folder.
    """
    file = (Path(beside).parent / path).resolve()
    name = f"koi_python:{file}"
    if name in sys.modules:
        neighbours().note_user(name, beside)
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise KoiError(f"`{path}` cannot be imported as a Python module")
    neighbours().add(name, str(file))
    neighbours().note_user(name, beside)
    module = sys.modules[name] = importlib.util.module_from_spec(tolerate_damage(spec))
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, name)
        spec.loader.exec_module(module)
        undo.pop_all()
    return module
