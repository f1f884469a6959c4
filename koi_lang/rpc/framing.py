"""Bytes to messages and back: one JSON object a line, and only a line feed ends a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from koi_lang.runtime.journal.entries import Redact, json_line
from koi_lang.sessions.errors import SessionError

# Bytes: the images of a message take at most 18 MiB.
MAX_MESSAGE_BYTES = 20 << 20
# Valid in JSON texts, but some clients take them for line breaks.
SEPARATORS = {character.encode(): b"\\u%04x" % ord(character) for character in "\u0085\u2028\u2029"}


class LineSplitter:
    """Lines out of pieces of a stream. A line that is too long is not kept; it comes out as None, once.

    Args:
        longest: bytes of a line without its end.
    """

    def __init__(self, longest: int = MAX_MESSAGE_BYTES) -> None:
        self._longest = longest
        self._begun = bytearray()
        self._skips = False

    def feed(self, piece: bytes) -> Iterator[bytes | None]:
        """The lines that end in a piece, without their ends; blank ones are left out."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            yield from self._add(part)
            if not self._skips:
                yield from self._whole()
            self._begun.clear()
            self._skips = False
        yield from self._add(rest)

    def end(self) -> Iterator[bytes | None]:
        """The text behind the last line feed, if any."""
        if not self._skips:
            yield from self._whole()
        self._begun.clear()

    def _add(self, part: bytes) -> Iterator[None]:
        if self._skips:
            return
        if len(self._begun) + len(part) > self._longest:
            self._skips = True
            self._begun.clear()
            yield None
            return
        self._begun += part

    def _whole(self) -> Iterator[bytes]:
        line = bytes(self._begun).removesuffix(b"\r")
        if line.strip():
            yield line


def message_in(line: bytes | None) -> dict[str, Any]:
    """The message in a line; None stands for one that was too long. Raises SessionError."""
    if line is None:
        help = f"Send at most {MAX_MESSAGE_BYTES:,} bytes in a line."
        raise SessionError("line_too_long", "the line is too long and was not read", help=help)
    try:
        message = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise SessionError("parse_error", _reason(error), help="Send one JSON object a line, in UTF-8.") from error
    if not isinstance(message, dict):
        raise SessionError("parse_error", "the line is JSON, but no object", help='Send {"type": "…"} with its fields.')
    return message


def _no_number(name: str) -> NoReturn:
    raise SessionError("parse_error", f"`{name}` is no number of JSON")


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"the line is no JSON, from character {error.pos + 1} on"
        case UnicodeDecodeError():
            return f"the line is no UTF-8, from byte {error.start + 1} on"
        case RecursionError():
            return "the line is nested too deeply"
    return "the line holds a number that is too long"


def line_of(message: Mapping[str, Any], redact: Redact) -> bytes:
    """A message as a line, without secrets and without anything that could be taken for a line break."""
    line = json_line(message, redact)
    for separator, escaped in SEPARATORS.items():
        line = line.replace(separator, escaped)
    return line
