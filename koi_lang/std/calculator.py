"""A calculation that arrives as a text to its number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.program import safe_expressions
else:
    safe_expressions = lazy_module("koi_lang.program.safe_expressions")


def calculate(expression: str, values: Any) -> Any:
    """The value of an expression over some names; only operators and harmless functions. Raises KoiError."""
    return safe_expressions.evaluate(expression, values if isinstance(values, dict) else {})
