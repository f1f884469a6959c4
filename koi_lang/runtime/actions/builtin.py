"""All built-in actions: importing this module fills the table."""

from __future__ import annotations

from koi_lang.runtime.actions import control, core, registry, shell
from koi_lang.runtime.actions.table import all_actions, allowed, find

MODULES = (core, registry, control, shell)

__all__ = ["MODULES", "all_actions", "allowed", "find"]
