"""A stand-in for a model that follows the explicit steps of a playbook, offline and always the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_names

if TYPE_CHECKING:
    from koi_lang.llm.rehearsal.model import Rehearsal
else:
    # Checks of programs read sentences as the rehearsal does, and need no model.
    __getattr__ = lazy_names(__name__, {"koi_lang.llm.rehearsal.model": ("Rehearsal",)})

__all__ = ["Rehearsal"]
