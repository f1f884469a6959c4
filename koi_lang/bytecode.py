"""Imports of Python files whose compiled form may be damaged, as after a crash: Python itself would give up."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from types import CodeType, ModuleType


class TolerantLoader(SourceFileLoader):
    """Loads a Python file from its source where its compiled form is damaged, which is removed."""

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the file. Raises as its compilation does."""
        try:
            return super().get_code(fullname)
        except (EOFError, ValueError, TypeError):  # as `marshal` does
            with suppress(OSError):
                os.unlink(cache_from_source(self.path))
            code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
            return code


def tolerate_damage(spec: ModuleSpec) -> ModuleSpec:
    """The spec of a module, whose loader minds no damage if it is Python's own for source files."""
    if type(spec.loader) is SourceFileLoader:
        spec.loader = TolerantLoader(spec.loader.name, spec.loader.path)
    return spec


class OwnModuleFinder:
    """Finds the modules of this package, of which one or another may be damaged."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module of this package."""
        if not name.startswith("koi_lang."):
            return None
        found = PathFinder.find_spec(name, path, target)
        return None if found is None else tolerate_damage(found)


def install_finder() -> None:
    """Have further modules of this package found so; doing it twice changes nothing."""
    if OwnModuleFinder not in sys.meta_path:
        sys.meta_path.insert(0, OwnModuleFinder)
