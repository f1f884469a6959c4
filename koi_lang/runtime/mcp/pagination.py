"""Paginated listings of a server, read to their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

MAX_PAGES = 100


async def every(page_after: Callable[[str | None], Awaitable[Any]], field: str) -> list[Any]:
    """The items of a paginated listing, up to a page that was there before."""
    found: list[Any] = []
    cursor: str | None = None
    seen = set[str | None]()
    while len(seen) < MAX_PAGES and cursor not in seen:
        seen.add(cursor)
        page = await page_after(cursor)
        found += getattr(page, field)
        cursor = page.next_cursor or None
    return found
