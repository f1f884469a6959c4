"""How much a model can be asked to think, by the words that programs, settings and command lines use."""

from __future__ import annotations

from typing import Any

from koi_lang.diagnostics import nearest

EFFORTS = ("none", "low", "medium", "high")
# What leaves it to the program, the settings and the models again.
AUTO = "auto"


def effort_help(given: Any) -> str:
    """The advice for an unknown effort."""
    near = nearest(given, EFFORTS) if isinstance(given, str) else None
    listed = ", ".join(f"`{each}`" for each in EFFORTS[:-1])
    return f"{f'Did you mean `{near}`? ' if near else ''}There are {listed} and `{EFFORTS[-1]}`."
