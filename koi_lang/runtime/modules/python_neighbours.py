"""Finders for imports of Python files that programs import by path: only neighbours from the time of loading."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, all_suffixes
from types import FrameType, ModuleType
from typing import Any

ENDINGS = (*all_suffixes(), ".koi")
PASSED_OVER = frozenset({"node_modules", "__pycache__"})
# Folders of a project are far fewer; an archive of a million files must not hold up the start of a program.
MAX_NAMES = 50_000
Mark = tuple[int, int, int]


class Neighbours:
    """The modules that the Python files of programs may import from their own folders.

    Only they find them: a library that tries an import finds nothing in a folder of a project.

    Attributes:
        files: by folder, the modules that were there when a program imported a file of it.
        owners: the folders whose files a loaded module may import, by its name.
        users: the `.koi` files that have imported a file of a folder.
    """

    def __init__(self) -> None:
        self.files: dict[str, frozenset[str]] = {}
        self.owners: dict[str, str] = {}
        self.users: dict[str, set[str]] = {}
        # What loaded modules were read from, and a mark that changes with it, by folder and name.
        self._read: dict[str, dict[str, tuple[str, Mark | None]]] = {}

    def add(self, name: str, file: str) -> None:
        """Permit a module to import the present neighbours of its file."""
        folder = os.path.dirname(file)
        sys.path_importer_cache.pop(folder, None)
        self.files[folder] = frozenset(_modules_below(folder))
        self._note_read(name, folder, file)

    def note_user(self, name: str, file: str) -> None:
        """Keep that a `.koi` file has imported a module that was added."""
        self.users.setdefault(self.owners[name], set()).add(file)

    def unload_changed(self) -> set[str]:
        """Forget the modules of folders in which one has another file now; gives the `.koi` files that have used them.

        What goes on keeps the modules that it has.
        """
        users: set[str] = set()
        for folder, read in list(self._read.items()):
            if any(_mark(file) != mark for file, mark in read.values()):
                users |= self._unload(folder)
        return users

    def unload(self) -> None:
        """Forget the modules of all folders, so that the next program loads fresh ones."""
        for folder in list(self._read):
            self._unload(folder)

    def loaded_files(self) -> list[str]:
        """The files that loaded modules were read from."""
        return [file for read in self._read.values() for file, _ in read.values()]

    def _unload(self, folder: str) -> set[str]:
        del self._read[folder]
        for name in [name for name, owner in self.owners.items() if owner == folder]:
            sys.modules.pop(name, None)
        return self.users.pop(folder, set())

    def _note_read(self, name: str, folder: str, file: str | None) -> None:
        self.owners[name] = folder
        if file is not None:
            self._read.setdefault(folder, {})[name] = file, _mark(file)

    def spec(self, name: str, folder: str, path: Sequence[str]) -> ModuleSpec | None:
        """The spec of a module that is looked for in the folders of a path, found as Python finds it.

        Raises:
            ModuleNotFoundError: its file came after the program was loaded.
        """
        for finder in list(sys.meta_path):
            found = None if isinstance(finder, (TopFinder, PackageFinder)) else _find_spec(finder, name, path)
            if found is not None:
                self._require_known(found, folder)
                self._note_read(name, folder, found.origin)
                return found
        return None

    def _require_known(self, spec: ModuleSpec, folder: str) -> None:
        files = self.files[folder]
        if spec.origin is None:
            places = [os.path.join(place, "") for place in spec.submodule_search_locations or ()]
            is_known = any(file.startswith(place) for place in places for file in files)
            spec.submodule_search_locations = [place.rstrip(os.sep) for place in places]
        else:
            is_known = spec.origin in files
        if not is_known:
            message = f"No module named {spec.name!r}: it was not there yet when the program was loaded"
            raise ModuleNotFoundError(message, name=spec.name)


def _mark(file: str) -> Mark | None:
    """The change stamp of a file; None for a missing one."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _find_spec(finder: Any, name: str, path: Sequence[str]) -> ModuleSpec | None:
    find: Any = getattr(finder, "find_spec", None)
    found: ModuleSpec | None = find(name, path) if find is not None else None
    return found


class TopFinder:
    """Finds modules beside the file whose code imports them; the last one to be asked."""

    def __init__(self, known: Neighbours) -> None:
        self.known = known

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that is imported by a file that a program has imported."""
        folder = self.known.owners.get(_importer()) if path is None else None
        return None if folder is None else self.known.spec(name, folder, [folder])


class PackageFinder:
    """Finds modules in packages beside such files; the first one to be asked, since Python would find later ones."""

    def __init__(self, known: Neighbours) -> None:
        self.known = known

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of such a package."""
        folder = self.known.owners.get(name.rpartition(".")[0])
        return None if folder is None or path is None else self.known.spec(name, folder, path)


def neighbours() -> Neighbours:
    """Those of this process, whose finders become a part of Python's import system."""
    for finder in sys.meta_path:
        if isinstance(finder, TopFinder):
            return finder.known
    known = Neighbours()
    sys.meta_path.insert(0, PackageFinder(known))
    sys.meta_path.append(TopFinder(known))
    return known


def _importer() -> str:
    """The name of the module whose code is importing."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in ("importlib", "_frozen_importlib", "_frozen_importlib_external"):
            return name
        frame = frame.f_back
    return ""


def _modules_below(folder: str) -> Iterator[str]:
    """The files in a folder, and in the packages below it, that can be imported; the nearest first."""
    waiting, left = deque([folder]), MAX_NAMES
    while waiting and left > 0:
        here = waiting.popleft()
        entries = list(_entries(here))
        left -= len(entries)
        if here != folder and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        yield from (entry.path for entry in entries if entry.name.endswith(ENDINGS))
        waiting += _packages(entries)


def _packages(entries: Iterable[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        if entry.name.isidentifier() and entry.name not in PASSED_OVER and entry.is_dir():
            yield entry.path


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:  # nothing can be imported from a folder that cannot be read
        return
