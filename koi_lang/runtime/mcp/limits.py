"""How long a server may take, and how much it may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined

# Of a listing, so that a server that never ends it does not hold a run.
MAX_PAGES = 100
OPTIONS = {"start_timeout_s": "start_s", "timeout_s": "call_s", "max_bytes": "answer_bytes"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server.

    Attributes:
        start_s: until it has told its tools.
        call_s: for each request.
        answer_bytes: the most of one answer; with more, the request has failed.
    """

    start_s: float = 30.0
    call_s: float = 300.0
    answer_bytes: int = 1 << 26


def limits_of(name: str, options: Mapping[str, Any]) -> Limits:
    """The limits that the options of a server set. Raises AgentError for one that is no number above 0."""
    given = {key: options[key] for key in OPTIONS if options.get(key, undefined) not in (undefined, None)}
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
            message = f"`{key}` of the MCP server `{name}` must be a number above 0, not {value!r}"
            raise AgentError(message, help="Write it without quotes and unit, such as 600.")
    return Limits(**{OPTIONS[key]: value for key, value in given.items()})


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
