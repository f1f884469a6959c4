"""Koi: a small language for programs made of AI agents, compiled to Python modules."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - said here, before anything is read that older versions cannot read
    raise SystemExit(
        f"error: koi needs Python 3.11 or newer, and this is Python {sys.version_info[0]}.{sys.version_info[1]}\n"
        "  = help: Install Python 3.11 or newer, and Koi with it, from where this one came."
    )

# For type checkers, which see plain imports. The constant of `typing` would cost an import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from koi_lang.api.entry import open as open
    from koi_lang.api.entry import run as run
    from koi_lang.api.modules import install as install
    from koi_lang.api.modules import load as load
    from koi_lang.api.program import Program as Program
    from koi_lang.diagnostics import CompileError as CompileError
    from koi_lang.errors import AgentError as AgentError
    from koi_lang.errors import KoiError as KoiError
    from koi_lang.errors import PermissionDeniedError as PermissionDeniedError
    from koi_lang.errors import ProgramError as ProgramError
    from koi_lang.errors import ProviderError as ProviderError
    from koi_lang.errors import UsageError as UsageError
    from koi_lang.events import Event as Event
    from koi_lang.llm.scripted import ScriptedModel as ScriptedModel
    from koi_lang.runtime.budget.limits import LimitReachedError as LimitReachedError
    from koi_lang.version import __version__ as __version__

# Public names by the module that has them, which is imported when one of them is used first.
_PLACES = {
    "koi_lang.api.entry": ("open", "run"),
    "koi_lang.api.modules": ("install", "load"),
    "koi_lang.api.program": ("Program",),
    "koi_lang.diagnostics": ("CompileError",),
    "koi_lang.errors": (
        "AgentError", "KoiError", "PermissionDeniedError", "ProgramError", "ProviderError", "UsageError",
    ),
    "koi_lang.llm.scripted": ("ScriptedModel",),
    "koi_lang.runtime.budget.limits": ("LimitReachedError",),
    "koi_lang.events": ("Event",),
    "koi_lang.version": ("__version__",),
}  # fmt: skip
__all__ = [
    "AgentError", "CompileError", "Event", "KoiError", "LimitReachedError", "PermissionDeniedError", "Program",
    "ProgramError", "ProviderError", "ScriptedModel", "UsageError", "install", "load", "open", "run",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for place, names in _PLACES.items():
        if name in names:
            from importlib import import_module

            found: object = getattr(import_module(place), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module `koi_lang` has no `{name}`")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
