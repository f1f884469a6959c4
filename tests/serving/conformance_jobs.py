"""What the program of the conformance tests does in Python."""

from __future__ import annotations


def leave() -> None:
    """End the process, as far as the caller lets it."""
    raise SystemExit(3)
