"""JSON as models write it to the values it stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from functools import partial
from typing import Any

HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

# A text in JSON; one without an end goes on to that of all, so that no beginning is looked at twice.
TEXT = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))', re.DOTALL)


def loads(text: str, *, keep_first: Container[str] = ()) -> Any:
    """The value a text stands for; commas too many are forgiven, halves of characters are replaced.

    Args:
        keep_first: keys of which the first value counts where an object has several; of all others it is the last.

    Raises:
        ValueError: says what is wrong, and near what.
    """
    try:
        together = partial(_with_first, keep_first) if keep_first else None
        loaded = json.loads(text, strict=False, object_pairs_hook=together)
    except json.JSONDecodeError as error:
        repaired = _without_trailing_commas(text)
        if repaired == text:
            near = text[max(0, error.pos - 30) : error.pos + 30]
            raise ValueError(f"the JSON is broken near {near!r}: {error.msg[:1].lower()}{error.msg[1:]}") from None
        return loads(repaired, keep_first=keep_first)
    except ValueError as error:
        raise ValueError(f"the JSON holds a value that cannot be read: {error}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return _whole(loaded) if HALF.search(text) else loaded


def _with_first(keep_first: Container[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key not in read or key not in keep_first:
            read[key] = value
    return read


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, outside of strings."""
    pieces = TEXT.split(text)
    return "".join(piece if at % 2 else re.sub(r",(\s*[}\]])", r"\1", piece) for at, piece in enumerate(pieces))


def _whole(value: Any) -> Any:
    """A value whose texts hold no half of a surrogate pair, which nothing could print."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
