"""What only some runs need, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_names

if TYPE_CHECKING:
    from koi_lang.llm.calibration import Calibration as Calibration
    from koi_lang.llm.images import BadImageError as BadImageError
    from koi_lang.llm.images import Image as Image
    from koi_lang.llm.images import size_of as size_of
    from koi_lang.llm.images import size_text as size_text
    from koi_lang.llm.messages import message_of as message_of
    from koi_lang.runtime.actions.lookup import called as called
    from koi_lang.runtime.budget.reservations import Reservations as Reservations
    from koi_lang.runtime.forms import Form as Form
    from koi_lang.runtime.hooks.runner import Hooks as Hooks
    from koi_lang.runtime.mcp.connection import McpConnection as McpConnection
    from koi_lang.runtime.mcp.validation import Checks as Checks
    from koi_lang.runtime.model_calls.gateway import ModelGateway as ModelGateway
    from koi_lang.runtime.playbook.loop import run_playbook as run_playbook
    from koi_lang.runtime.registry import KeptRegistry as KeptRegistry
    from koi_lang.runtime.registry import open_registry as open_registry
    from koi_lang.runtime.routing.semantic import Meaning as Meaning
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "koi_lang.llm.calibration": ("Calibration",),
            "koi_lang.llm.images": ("BadImageError", "Image", "size_of", "size_text"),
            "koi_lang.llm.messages": ("message_of",),
            "koi_lang.runtime.actions.lookup": ("called",),
            "koi_lang.runtime.model_calls.gateway": ("ModelGateway",),
            "koi_lang.runtime.forms": ("Form",),
            "koi_lang.runtime.hooks.runner": ("Hooks",),
            "koi_lang.runtime.routing.semantic": ("Meaning",),
            "koi_lang.runtime.mcp.validation": ("Checks",),
            "koi_lang.runtime.mcp.connection": ("McpConnection",),
            "koi_lang.runtime.playbook.loop": ("run_playbook",),
            "koi_lang.runtime.registry": ("KeptRegistry", "open_registry"),
            "koi_lang.runtime.budget.reservations": ("Reservations",),
        },
    )
