"""Bodies of requests to JSON values, within bounds: of size, of values, of depth, of numbers."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, NoReturn

from koi_lang.errors import KoiError

# Bytes: the images of a message take at most 18 MiB in base64.
MAX_BYTES = 26 << 20
# Values take up to 40 times the bytes that they are written with.
MAX_VALUES, MAX_DEPTH = 200_000, 100
SEPARATORS = (b",", b"[", b"{")
# The beginning of half a pair, which no text holds alone.
# Bytes that are read of what is refused.
MAX_DISCARDED_BYTES = 64 << 20
SURROGATE = b"\\ud"


class BadBodyError(KoiError):
    """A request body is not read.

    Attributes:
        status: of the answer.
    """

    def __init__(self, message: str, *, help: str, status: int = 400) -> None:
        super().__init__(message, help=help)
        self.status = status


async def read_body(pieces: AsyncIterable[bytes], size: str | None = None, most: int = MAX_BYTES) -> bytes:
    """All that a client sends, unless it is too much. Raises BadBodyError as soon as that is clear.

    Args:
        size: what the client says of it, in bytes.
    """
    source = aiter(pieces)
    if size is not None and size.isdecimal() and (len(size) > 18 or int(size) > most):
        if len(size) < 18 and int(size) <= MAX_DISCARDED_BYTES:
            await _discard(source)
        raise _too_large_error(most)
    body = bytearray()
    async for piece in source:
        body += piece
        if len(body) > most:
            await _discard(source)
            raise _too_large_error(most)
    return bytes(body)


async def _discard(source: AsyncIterator[bytes]) -> None:
    """Read on for a while: a client that is still sending would lose the answer."""
    size = 0
    async for piece in source:
        size += len(piece)
        if size > MAX_DISCARDED_BYTES:
            return


def json_of(body: bytes) -> Any:
    """The value in a body. Raises BadBodyError."""
    if sum(map(body.count, SEPARATORS)) > MAX_VALUES:
        help = f"Send at most {MAX_VALUES:,}; long texts are files."
        raise BadBodyError("the JSON holds too many values", help=help, status=413)
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadBodyError(_reason(error), help="Send one JSON value, in UTF-8.") from error
    if _is_deeper(value, MAX_DEPTH):
        raise BadBodyError("the JSON is nested too deeply", help=f"Nest at most {MAX_DEPTH} lists and objects.")
    if SURROGATE in body.lower() and not _is_text(value):
        raise BadBodyError("the JSON holds half of a character", help=r"Write both parts, as in \ud83d\ude00.")
    return value


def object_in(body: bytes) -> dict[str, Any]:
    """The object in a body; an empty one is an object without fields. Raises BadBodyError."""
    value = json_of(body) if body.strip() else {}
    if not isinstance(value, dict):
        raise BadBodyError("the JSON is no object", help='Send one, such as {"message": "hello"}.')
    return value


def _too_large_error(most: int) -> BadBodyError:
    return BadBodyError("the body is too large", help=f"Send at most {most >> 20} MB.", status=413)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is no number of JSON")


def _finite(written: str) -> float:
    number = float(written)
    if math.isinf(number):
        raise ValueError(f"`{written[:40]}` is too large a number")
    return number


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"the body is no JSON, from character {error.pos + 1} on"
        case UnicodeDecodeError():
            return f"the body is no UTF-8, from byte {error.start + 1} on"
        case RecursionError():
            return "the JSON is nested too deeply"
    text = str(error)
    return text if text.startswith("`") else "the JSON holds a number that is too long"


def _is_deeper(value: Any, most: int) -> bool:
    """Whether lists and objects stand in one another more often than that."""
    level = [value]
    for _ in range(most + 1):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for values in lists for inner in values]
        if not level:
            return False
    return True


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
