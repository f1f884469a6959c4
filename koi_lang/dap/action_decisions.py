"""An action at a stop: its fields, which a person may change, and what kind of failure an error of it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.dap.nodes import ActionNode
from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.intervention import Intervention


def copy_of(value: Any) -> Any:
    """A value whose objects and arrays can be changed without changing those of the playbook."""
    if isinstance(value, dict):
        return {name: copy_of(each) for name, each in value.items()}
    return [copy_of(each) for each in value] if isinstance(value, list) else value


def changed_fields(node: ActionNode, fields: Mapping[str, Any]) -> Intervention | None:
    """What a person has made of the fields of an action; None where they have left them."""
    return None if node.fields == fields else Intervention("fields", node.fields)


def filter_of(intent: str, error: Exception) -> str:
    """The filter that an error of an action belongs to; empty where it is a failure like others."""
    if isinstance(error, PermissionDeniedError):
        return "refused"
    return "misfit" if intent == "return" else ""
