"""A calculation that arrives as a text to its number."""

from __future__ import annotations

from typing import Any

from koi_lang.program import late


def calculated(expression: str, values: Any) -> Any:
    """The value of an expression over some names; only operators and harmless functions. Raises KoiError."""
    return late.evaluate(expression, values if isinstance(values, dict) else {})
