"""Koi: a small language for programs made of AI agents, compiled to Python modules."""

from __future__ import annotations

from types import ModuleType

__version__ = "0.1.0"
__all__ = ["__version__", "install", "load"]


def load(path: str, beside: str | None = None) -> ModuleType:
    """The module of a `.koi` file; see `koi_lang.program.load`."""
    from koi_lang import program

    return program.load(path, beside)


def install() -> None:
    """Make `import name` find `name.koi`; see `koi_lang.importer`."""
    from koi_lang import importer

    importer.install()
