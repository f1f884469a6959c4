"""The folders that Python searches, and the modules that a program imports, to the extensions in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import ExtensionError
from koi_lang.lazy import lazy_module
from koi_lang.program import declarations
from koi_lang.runtime.modules.python_files import ModuleOutline

if TYPE_CHECKING:
    from importlib import metadata
    from importlib.metadata import EntryPoint

    from koi_lang.extensions.koi import Koi
else:
    metadata = lazy_module("importlib.metadata")

GROUP = "koi.extensions"
FUNCTION = "extend_koi"
DESCRIPTIONS = (".dist-info", ".egg-info")
HELP = (
    "It may be there to guard what is done, so nothing is run without it. Mend or uninstall it, or leave installed "
    "extensions out with `--no-extensions`."
)


@dataclass(frozen=True, slots=True)
class Extension:
    """Something that adds to runs.

    Attributes:
        package: where it comes from: an installed package, or the Python file that a program imports.
        version: of the package; empty for a file.
        load: gives the function that adds. Raises ExtensionError.
    """

    name: str
    package: str
    version: str
    load: Callable[[], Callable[[Koi], None]]

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"`{self.name}` of {self.package}{f' {self.version}' if self.version else ''}"


def find_installed() -> list[Extension]:
    """The extensions of installed packages by name; none of them is imported yet.

    Raises:
        ExtensionError: two packages call theirs the same.
    """
    if not any(_mentions(folder) for folder in dict.fromkeys(sys.path)):
        return []
    found: dict[str, Extension] = {}
    for extension in sorted(map(_of, metadata.entry_points(group=GROUP)), key=lambda each: (each.name, each.package)):
        if extension.name in found:
            message = (
                f"two extensions are called `{extension.name}`: {found[extension.name].label} and {extension.label}"
            )
            raise ExtensionError(message, help="Uninstall one of the packages, or use `--no-extensions`.")
        found[extension.name] = extension
    return list(found.values())


def _mentions(folder: str) -> bool:
    """Whether a folder has a package that brings an extension; archives are not looked into, so they may have."""
    try:
        return _mentions_at(os.path.abspath(folder), os.stat(folder or ".").st_mtime_ns)
    except NotADirectoryError:
        return True
    except OSError:
        return False


@cache
def _mentions_at(folder: str, changed_ns: int) -> bool:
    """Whether a folder that changed last at a time has such a package; installing one changes it."""
    names = os.listdir(folder)
    return any(GROUP in text for text in _entry_points(folder, names))


def _entry_points(folder: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if name.endswith(DESCRIPTIONS):
            # Most packages have none.
            with suppress(OSError):
                yield Path(folder, name, "entry_points.txt").read_text("utf-8", "replace")


def _of(point: EntryPoint) -> Extension:
    about = point.dist
    package, version = (about.name, about.version) if about is not None else ("an unknown package", "")
    return Extension(point.name, package, version, lambda: _load_function(point, package))


def _load_function(point: EntryPoint, package: str) -> Callable[[Koi], None]:
    try:
        value = point.load()
    except (Exception, SystemExit) as error:
        message = f"the extension `{point.name}` of {package} cannot be loaded: {type(error).__name__}: {error}"
        raise ExtensionError(message, help=HELP) from error
    function: Any = getattr(value, FUNCTION, value)
    if not callable(function):
        raise ExtensionError(f"the extension `{point.name}` of {package} is no function `{FUNCTION}(koi)`", help=HELP)
    return function  # type: ignore[no-any-return]


def of_program(module: ModuleType) -> list[Extension]:
    """The extensions among the Python modules that a program imports: those with a function `extend_koi`.

    Outlines of modules have none, since nothing of them can be called.
    """
    found = declarations.python_modules_of(module)
    return [_of_module(each) for each in found if not isinstance(each, ModuleOutline) and hasattr(each, FUNCTION)]


def outlined_extensions(modules: Iterable[ModuleType]) -> list[str]:
    """The names of Python modules with a function `extend_koi` that some modules of programs know by outlines alone."""
    outlines = [value for module in modules for value in vars(module).values() if isinstance(value, ModuleOutline)]
    return list(dict.fromkeys(each.label for each in outlines if FUNCTION in each.names))


def _of_module(module: ModuleType) -> Extension:
    file = module.__file__ or module.__name__
    return Extension(Path(file).stem, Path(file).name, "", lambda: getattr(module, FUNCTION))
