"""`import name` for `name.koi`: a finder for Python's import system."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from koi_lang.program import loader
from koi_lang.program.files import absolute


class KoiLoader:
    """Makes the module of one `.koi` file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_executed = False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, already executed: the same one that `koi_lang.load` gives."""
        module = loader.module_of(self.path, spec.name)
        self.is_executed = True
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module that is being reloaded; for others nothing is left to do."""
        if not self.is_executed:
            loader.execute(module)


class KoiFinder:
    """Finds `name.koi` in the folders Python searches, after Python's own modules."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a `.koi` file of that name."""
        for folder in sys.path if path is None else path:
            file = Path(folder or ".") / f"{name.rpartition('.')[2]}.koi"
            if file.is_file():
                found = absolute(str(file))
                return ModuleSpec(name, KoiLoader(found), origin=found)  # type: ignore[arg-type]
        return None


def install() -> None:
    """Make `import name` find `name.koi` from now on; doing it twice changes nothing."""
    if KoiFinder not in sys.meta_path:
        sys.meta_path.append(KoiFinder)
