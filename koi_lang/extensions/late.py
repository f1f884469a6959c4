"""What only runs with extensions need, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import on_demand

if TYPE_CHECKING:
    from importlib.metadata import entry_points as entry_points

    from koi_lang.extensions.collecting import collected as collected
else:
    __getattr__ = on_demand(
        __name__,
        {
            "importlib.metadata": ("entry_points",),
            "koi_lang.extensions.collecting": ("collected",),
        },
    )
