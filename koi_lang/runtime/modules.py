"""Python files that Koi programs import by path."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

from koi_lang.errors import KoiError


def python_file(path: str, beside: str) -> ModuleType:
    """The module of a Python file, given relative to the file that imports it; loaded once in a process.

    Its folder becomes the last one that Python searches, so that it can import its neighbours.
    """
    file = (Path(beside).parent / path).resolve()
    name = f"koi_python:{file}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise KoiError(f"`{path}` cannot be imported as a Python module")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, name)
        spec.loader.exec_module(module)
        undo.pop_all()
    return module
