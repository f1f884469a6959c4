"""Fields of the query of a request to values."""

from __future__ import annotations

from starlette.requests import Request

from koi_lang.web.answers import HttpError


def limit_of(request: Request, usual: int, most: int) -> int:
    """How many are wanted at most. Raises HttpError."""
    given = request.query_params.get("limit", str(usual))
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or not 0 < int(given) <= most:
        raise HttpError(400, "invalid_request", "`limit` is no such number", help=f"Write one from 1 to {most}.")
    return int(given)
