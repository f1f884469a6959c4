"""What a server lists, page after page, to all of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

MOST_PAGES = 100


async def every(page_after: Callable[[str | None], Awaitable[Any]], field: str) -> list[Any]:
    """What a server lists in a field of its answers, page after page."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await page_after(cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor:
            break
    return found
