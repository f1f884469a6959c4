"""JSON as models write it to the values it stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from functools import partial
from typing import Any

HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

# The first half of a character at the end of a text.
FIRST_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
# A text, also one without its end; a sign; a word or number.
TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
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


def parse_beginning(text: str) -> Any:
    """The value that a text of JSON begins, with the beginning of a text that is not complete.

    Numbers and keys that may go on are left out, and what follows the value. None where nothing has arrived, or where
    the text is no JSON.
    """
    closing: list[str] = []
    is_key = False
    end, whole = 0, ""
    for token in TOKEN.finditer(text):
        sign = token[0]
        if sign in "{[":
            closing.append("}" if sign == "{" else "]")
        elif sign in "}]" and closing:
            closing.pop()
        goes_on = token.end() == len(text) and sign not in "{}[]"
        is_begun = goes_on and sign[0] == '"' and (len(sign) == 1 or sign[-1] != '"')
        if sign in "}]" or (sign[0] not in ",:" and not is_key and (is_begun or not goes_on or sign[0] == '"')):
            end, whole = token.end(), '"' * is_begun
        is_key = bool(closing) and closing[-1] == "}" and sign in "{,"
        if not closing and sign != ":":
            break
    try:
        beginning = FIRST_HALF.sub("", text[:end]) + whole if whole else text[:end]
        return loads(beginning + "".join(reversed(closing))) if end else None
    except ValueError:  # an escape that is not complete
        return None


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
