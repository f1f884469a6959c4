"""What models and programs give to tools, checked before any work: whole numbers, words and folders."""

from __future__ import annotations

from typing import Any

from koi_lang.errors import AgentError


def whole_number(value: Any, name: str, *, least: int = 0) -> int:
    """A number of lines or the like, which programs may write as `3.0`. Raises AgentError."""
    is_whole = not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1
    if not is_whole or value < least:
        raise AgentError(f"`{name}` is {value!r}", help=f"Give a whole number from {least} on.")
    return int(min(value, 10**9))


def failure(error: str, hint: str | None = None, **more: Any) -> dict[str, Any]:
    """The result of a tool that has found something else than it needs.

    Args:
        hint: one thing to do about it.
    """
    return {"success": False, "error": error} | ({"hint": hint} if hint else {}) | more
