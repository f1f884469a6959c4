"""Koi: a small language for programs made of AI agents, compiled to Python modules."""

from __future__ import annotations

import sys
from types import ModuleType

if sys.version_info < (3, 11):  # noqa: UP036 - said here, before anything is read that older versions cannot read
    raise SystemExit(
        f"error: koi needs Python 3.11 or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}\n"
        "  = help: Install a newer Python, then koi with it: `python3.11 -m pip install koi-lang`."
    )

__version__ = "0.1.0"
__all__ = ["__version__", "install", "load"]


def load(path: str, beside: str | None = None) -> ModuleType:
    """The module of a `.koi` file; see `koi_lang.program.loader.load`."""
    from koi_lang.program import loader

    return loader.load(path, beside)


def install() -> None:
    """Make `import name` find `name.koi`; see `koi_lang.program.import_hook`."""
    from koi_lang.program import import_hook

    import_hook.install()
