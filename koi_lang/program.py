"""The path of a program to its Python modules, checked, compiled or from the cache, and to a run of it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from koi_lang import cache, resources
from koi_lang.diagnostics import CompileError, render
from koi_lang.errors import KoiError, UsageError, reason

if TYPE_CHECKING:
    import ast

    from koi_lang.compiler.compile import Checked

PREFIX = "koi:"
SUFFIX = ".koi"


class DiskFiles:
    """The file system as the compiler sees it."""

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return Path(path).read_bytes()

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return Path(path).is_file()

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""
        with suppress(OSError):
            return sorted(os.listdir(folder))
        return []

    def package(self, name: str) -> str | None:
        """The Koi file of a standard skill or of an installed Python package."""
        if name.startswith("std/"):
            return _existing(resources.standard_skills() / f"{name.removeprefix('std/')}.koi")
        import importlib.util

        spec = None
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(name.replace("/", "."))
        if spec is None:
            return None
        for folder in spec.submodule_search_locations or ():
            found = _existing(Path(folder) / "index.koi")
            if found is not None:
                return found
        return spec.origin if spec.origin and spec.origin.endswith((".koi", ".py")) else None


def _existing(path: Path) -> str | None:
    return path.as_posix() if path.is_file() else None


def check(path: str, *, strict: bool = False) -> Checked:
    """Read and check a program. Raises UsageError when the file cannot be read."""
    from koi_lang.compiler.compile import check_program

    if not path.endswith(SUFFIX) and Path(path).is_file():
        raise UsageError(f"`{path}` does not end in `{SUFFIX}`", help=_renaming(path))
    try:
        with _no_collection():
            return check_program(absolute(path), DiskFiles(), strict=strict)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {reason(error)}", help=_advice(path)) from error


def _renaming(path: str) -> str:
    """The command that gives a program its ending; editors and browsers like to add `.txt`."""
    from shlex import quote

    stem = str(Path(path).with_suffix(""))
    return f"Rename it: `mv {quote(path)} {quote(stem if stem.endswith(SUFFIX) else stem + SUFFIX)}`."


def _advice(path: str) -> str | None:
    if Path(f"{path}{SUFFIX}").is_file():
        return f"Did you mean `{path}{SUFFIX}`?"
    if Path(f"{path}.txt").is_file():
        return _renaming(f"{path}.txt")
    names = DiskFiles().names(os.path.dirname(path) or ".")
    near = [name for name in names if name.endswith(".koi") and name != ".koi"]
    listed = ", ".join(f"`{name}`" for name in near[:6])
    return f"Koi programs here are {listed}." if near else None


def absolute(path: str) -> str:
    """The path that names a file everywhere: absolute, links resolved, with `/`."""
    return Path(path).resolve().as_posix()


def syntax_trees(path: str, *, strict: bool = False) -> tuple[dict[str, ast.Module], Checked]:
    """The Python modules of a program by path of their file, the entry first. Raises CompileError."""
    from koi_lang.compiler.compile import generate

    with _no_collection():
        checked = check(path, strict=strict)
        if checked.errors:
            raise CompileError(checked.errors)
        return {file.unit.path: generate(file) for file in checked.files}, checked


@contextmanager
def _no_collection() -> Iterator[None]:
    """Suspend Python's search for cyclic garbage: syntax trees are millions of objects, all of them in use."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def compiled(path: str, *, strict: bool = False, fresh: bool = False) -> cache.Entry:
    """The code of a file's module with the warnings about its program, from the cache unless `fresh`.

    Raises:
        CompileError: the program has errors; with `strict` also when it has warnings.
    """
    known = None if strict or fresh else cache.find(absolute(path))
    return known if known is not None else _compile(path, strict)


def _compile(path: str, strict: bool) -> cache.Entry:
    with _no_collection():
        trees, checked = syntax_trees(path, strict=strict)
        warnings = tuple(render(diagnostic) for diagnostic in checked.diagnostics)
        hashes = {file: cache.digest(data) for file, data in checked.read.items()}
        tests = {file.unit.path: file.tests for file in checked.files}
        entries = {file: cache.Entry(_code(tree, file), hashes, warnings, tests[file]) for file, tree in trees.items()}
    for file, entry in entries.items():
        cache.store(file, entry)
    return entries[absolute(path)]


def _code(tree: ast.Module, path: str) -> CodeType:
    try:
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    except RecursionError:
        raise KoiError(f"`{path}` nests its code too deeply", help="Split the deepest expression.") from None
    return code


def load(path: str, beside: str | None = None) -> ModuleType:
    """The module of a `.koi` file; loaded once in a process.

    Args:
        path: a path, or the name of a package or standard skill (`std/…`).
        beside: a file; a relative path starts in its folder.

    Raises:
        CompileError: the program has errors.
        UsageError: there is no such file.
    """
    return module_of(_located(path, beside))


def _located(path: str, beside: str | None) -> str:
    if path.startswith("std/"):
        found = DiskFiles().package(path)
        if found is not None:
            return absolute(found)
    return absolute(path if beside is None else os.path.join(os.path.dirname(beside), path))


def module_of(path: str, name: str | None = None, entry: cache.Entry | None = None) -> ModuleType:
    """The module of a file by its absolute path. A file that is being loaded is given as far as it is."""
    key = PREFIX + path
    known = sys.modules.get(key)
    if known is not None:
        return known
    module = ModuleType(name or Path(path).stem)
    module.__file__ = path
    module.__package__ = (name or "").rpartition(".")[0]
    sys.modules[key] = module
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, key, None)
        execute(module, entry)
        undo.pop_all()
    return module


def execute(module: ModuleType, entry: cache.Entry | None = None) -> None:
    """Fill a module with what its file declares."""
    exec((entry or compiled(str(module.__file__))).code, module.__dict__)


def unload() -> None:
    """Forget all loaded modules, so that changed files are read again."""
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def loaded() -> Mapping[str, ModuleType]:
    """All loaded modules by path."""
    return {name.removeprefix(PREFIX): module for name, module in sys.modules.items() if name.startswith(PREFIX)}
