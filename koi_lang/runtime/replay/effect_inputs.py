"""Comparison of the inputs of an effect with the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.js.tagged_json import TAG
from koi_lang.redaction.names import HEADER_VALUES


def is_same_input(recorded: Any, now: Any) -> bool:
    """Whether the inputs of an effect equal the recorded ones.

    Older journals hold no headers of requests, and `<tuple>` for what has a tag now.
    """
    if isinstance(recorded, dict) and isinstance(now, dict) and HEADER_VALUES not in recorded:
        now = {name: value for name, value in now.items() if name != HEADER_VALUES}
    return bool(recorded == now) or (isinstance(now, dict) and bool(recorded == _without_tags(now)))


def _without_tags(given: Mapping[str, Any]) -> dict[str, Any]:
    args, named = given.get("args", ()), given.get("named", {})
    older: dict[str, Any] = {"args": [_named_by_type(value) for value in args]}
    return {**older, "named": {key: _named_by_type(value) for key, value in named.items()}} if named else older


def _named_by_type(value: Any) -> Any:
    if not _has_tag(value):
        return value
    name = value[TAG].rpartition(".")[2] if isinstance(value, dict) and TAG in value else type(value).__name__
    return f"<{name}>"


def _has_tag(value: Any) -> bool:
    if isinstance(value, dict):
        return TAG in value or any(map(_has_tag, value.values()))
    return isinstance(value, list) and any(map(_has_tag, value))
