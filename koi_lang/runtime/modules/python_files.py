"""Python modules that Koi programs import, executed or, for commands that only inspect programs, outlined."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

from koi_lang.errors import KoiError
from koi_lang.js.environment import is_inspecting, not_executed
from koi_lang.runtime.modules.python_neighbours import neighbours

# Where a name has a value that only executing the module would tell.
NOT_COMPUTED = object()
# The one Python import of compiled modules that is not of their program.
PRELUDE = ("koi_lang.runtime", ("prelude",))


class ModuleOutline(ModuleType):
    """The outline of a Python module from its syntax tree, without executing the module.

    Its functions and classes can be read and not called; of its variables those have a value that are assigned one
    literal. Reading anything else raises KoiError.

    Attributes:
        label: its name for people.
        names: all names that its top level binds, each with what is bound to it.
    """

    def __init__(self, name: str, file: str | None) -> None:
        super().__init__(name)
        self.__file__ = file
        self.label = name.rpartition("/")[2]
        self.names: dict[str, list[Any]] = {}
        try:
            for bound, value in () if file is None else _bindings(ast.parse(Path(file).read_bytes()).body, self.label):
                self.names.setdefault(bound, []).append(value)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise KoiError(f"`{self.label}` cannot be read as Python: {error}") from error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        match self.names.get(name):
            case [value] if value is not NOT_COMPUTED:
                return value
        raise not_executed(f"`{name}` of `{self.label}`")


def _bindings(nodes: Iterable[ast.AST], label: str) -> Iterator[tuple[str, Any]]:
    """The names that statements bind outside of functions and classes, each with a label for its value."""
    for node in nodes:
        match node:
            case ast.expr():
                continue
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, _raising(name, label)
                continue
            case ast.ClassDef(name=name):
                yield name, type(name, (), {"__new__": _raising(name, label)})
                continue
            case ast.Assign(targets=targets, value=value):
                yield from ((target.id, _literal(value)) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, _literal(value)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name, NOT_COMPUTED
            case ast.alias(name=name, asname=asname):
                yield asname or name, NOT_COMPUTED
        yield from _bindings(ast.iter_child_nodes(node), label)


def _literal(value: ast.expr) -> Any:
    with suppress(ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(value)
    return NOT_COMPUTED


def _raising(name: str, label: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **named: Any) -> NoReturn:
        raise not_executed(f"`{name}` of `{label}`")

    call.__name__ = name
    return call


def import_outline(
    load: Callable[..., ModuleType], name: str, globals: Any, locals: Any, names: Sequence[str] | None, level: int
) -> Any:
    """The value of an import in a program that is only inspected, as `__import__` returns it.

    Args:
        load: loads the `.koi` files that the program imports.
    """
    if (name, names) == PRELUDE:
        return SimpleNamespace(prelude=importlib.import_module(f"{name}.prelude"))
    if name == "koi_lang":
        package = ModuleOutline(name, None)
        package.load = load  # type: ignore[attr-defined]
        return package
    return SimpleNamespace(**{each: _outline(f"{name}.{each}") for each in names}) if names else _outline(name)


def _outline(name: str) -> ModuleType:
    if name == "math":  # it only computes, and leads to no other module
        return math
    spec = find_spec(name)
    file = None if spec is None else spec.origin
    return ModuleOutline(name, file if file is not None and file.endswith(".py") else None)


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
    if is_inspecting():
        return ModuleOutline(f"koi_python:{file}", str(file))
    name = f"koi_python:{file}"
    if name in sys.modules:
        neighbours().note_user(name, beside)
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise KoiError(f"`{path}` cannot be imported as a Python module")
    neighbours().add(name, str(file))
    neighbours().note_user(name, beside)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, name)
        spec.loader.exec_module(module)
        undo.pop_all()
    return module
