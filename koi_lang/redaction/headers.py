"""Headers of a request as a journal may hold them."""

from __future__ import annotations

from collections.abc import Mapping

# Everything else may be a key, or what a session is known by; only its name is written down.
OPEN = frozenset(
    "accept accept-encoding accept-language cache-control content-encoding content-language content-type if-match"
    " if-modified-since if-none-match if-unmodified-since origin prefer range user-agent x-requested-with".split()
)
# The field of an effect that holds them; journals of older versions have none.
HEADER_VALUES = "header_values"


def shown_headers(headers: Mapping[str, str]) -> dict[str, str | None]:
    """The headers by their names in small letters, with the values of those that are never secret; None for others."""
    names = {name.lower(): value for name, value in headers.items()}
    return {name: value if name in OPEN else None for name, value in sorted(names.items())}
