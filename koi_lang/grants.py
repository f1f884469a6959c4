"""Permissions that include others, and patterns of what may be used of an MCP server.

Patterns are `read_*` for tools, `prompt:greet` and `resource:docs://*` beside.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

# `write` includes `read`; a plain name covers every detail of it (`registry` covers `registry:read`).
IMPLIED = {"read": "write", "read_tasks": "write_tasks"}
KINDS = ("resource", "prompt")
# The patterns that cover all of a server.
EVERYTHING = ("*", *(f"{kind}:*" for kind in KINDS))


def permits(capabilities: Container[str | None], permission: str) -> bool:
    """Whether the capabilities of a role hold a permission, or one that includes it."""
    family = permission.partition(":")[0]
    return any(name in capabilities for name in (permission, family, IMPLIED.get(permission)) if name is not None)


def covers(patterns: Iterable[str], name: str, kind: str = "") -> bool:
    """Whether one of some patterns covers a tool, or something else of a kind; patterns of tools cover tools only."""
    return any(matches(pattern, name) for pattern in of_kind(patterns, kind))


def of_kind(patterns: Iterable[str], kind: str = "") -> list[str]:
    """The patterns for tools, or for another kind of things, without the name of the kind."""
    others = tuple(f"{other}:" for other in KINDS)
    if not kind:
        return [pattern for pattern in patterns if not pattern.startswith(others)]
    return [pattern.removeprefix(f"{kind}:") for pattern in patterns if pattern.startswith(f"{kind}:")]


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern in which `*` stands for any characters covers all of a text; letter case counts.

    The time for it grows with both and no faster, whatever a server calls its tools.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
