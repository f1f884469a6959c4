"""The path of a program to its Python modules, compiled or from the cache, each loaded once in a process."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING

from koi_lang.js import environment
from koi_lang.lazy import lazy_module
from koi_lang.program import cache
from koi_lang.program.files import DiskFiles, absolute
from koi_lang.runtime.modules.koi_module import KoiModule
from koi_lang.runtime.modules.python_files import import_outline
from koi_lang.runtime.modules.python_neighbours import neighbours
from koi_lang.system import resources

if TYPE_CHECKING:
    from koi_lang.program import build as build
else:
    build = lazy_module("koi_lang.program.build")

PREFIX = "koi:"
# One for all modules: those that import each other could be loaded by two threads that wait for each other.
LOADING = RLock()


def load_compiled(path: str, *, strict: bool = False, fresh: bool = False) -> cache.CachedModule:
    """The code of a file's module with the warnings about its program, from the cache unless `fresh`.

    Raises:
        CompileError: the program has errors; with `strict` also when it has warnings.
    """
    known = None if strict or fresh else cache.find(absolute(path))
    return known if known is not None else build.built(path, strict=strict)


def load(path: str, beside: str | None = None) -> ModuleType:
    """The module of a `.koi` file; loaded once in a process.

    Args:
        path: a path, or the name of a package or standard skill (`std/…`).
        beside: a file; a relative path starts in its folder.

    Raises:
        CompileError: the program has errors.
        UsageError: there is no such file.
    """
    return module_of(_locate(path, beside))


def _locate(path: str, beside: str | None) -> str:
    if path.startswith("std/"):
        found = DiskFiles().package(path)
        if found is not None:
            return absolute(found)
    return absolute(path if beside is None else os.path.join(os.path.dirname(beside), path))


def module_of(path: str, name: str | None = None, entry: cache.CachedModule | None = None) -> ModuleType:
    """The module of a file by its absolute path.

    A file that is being loaded is given as far as it is to the files that it imports; other threads wait for it.
    """
    with LOADING:
        known = sys.modules.get(PREFIX + path)
        return _load_module(path, name, entry) if known is None else known


def _load_module(path: str, name: str | None, entry: cache.CachedModule | None) -> ModuleType:
    key = PREFIX + path
    module = KoiModule(name or Path(path).stem)
    module.__file__ = path
    module.__package__ = (name or "").rpartition(".")[0]
    sys.modules[key] = module
    with ExitStack() as undo:
        undo.callback(sys.modules.pop, key, None)
        execute(module, entry)
        undo.pop_all()
    return module


def execute(module: ModuleType, entry: cache.CachedModule | None = None) -> None:
    """Fill a module with what its file declares."""
    path = str(module.__file__)
    entry = entry or load_compiled(path)
    if isinstance(module, KoiModule):
        module.files = entry.files
    if environment.is_inspecting() and not Path(path).is_relative_to(resources.standard_skills()):
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": partial(import_outline, load)}
    exec(entry.code, module.__dict__)


@contextmanager
def inspecting() -> Iterator[None]:
    """Modules of programs that are loaded here execute no Python of theirs, and are forgotten afterwards.

    The Python modules that they import are outlines, and what code would do outside of its program raises KoiError.
    It is for processes that load nothing else meanwhile.
    """
    with environment.inspecting():
        before = {PREFIX + path: module for path, module in loaded_modules().items()}
        unload()
        try:
            yield
        finally:
            unload()
            sys.modules.update(before)


def unload_changed(entry: cache.CachedModule) -> None:
    """Forget the modules of a program when one of them was loaded from another content of its files.

    The same goes for the modules of all programs that have imported Python files which have changed.

    What goes on in them, such as a run, keeps the modules that it has.
    """
    known = [sys.modules.get(PREFIX + path) for path in entry.files]
    loaded = [module for module in known if isinstance(module, KoiModule)]
    if any(entry.files.get(path, digest) != digest for module in loaded for path, digest in module.files.items()):
        _forget(entry.files)
    _forget_users(neighbours().unload_changed())


def _forget_users(paths: set[str]) -> None:
    """Forget the modules of files, and of all programs that they are a part of."""
    if not paths:
        return
    for module in loaded_modules().values():
        if isinstance(module, KoiModule) and not paths.isdisjoint(module.files):
            _forget(module.files)
    _forget(paths)


def _forget(paths: Iterable[str]) -> None:
    for path in paths:
        sys.modules.pop(PREFIX + path, None)


def unload() -> None:
    """Forget all loaded modules, so that changed files are read again."""
    for path in loaded_modules():
        sys.modules.pop(PREFIX + path, None)


def loaded_modules() -> Mapping[str, ModuleType]:
    """All loaded modules by path, while other threads may import."""
    known = sys.modules.copy()  # which makes no objects, so that no collection of garbage lets others in between
    return {name.removeprefix(PREFIX): module for name, module in known.items() if name.startswith(PREFIX)}
