"""Fields of a stream's parts, checked where they are read: SDKs accept any data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# What the parts of a text are called; the others hold what a model thinks, or no text at all.
TEXTS = (None, "text", "output_text")
# Of a number that comes as a text.
MAX_DIGITS = 19


def field(record: Any, name: str) -> Any:
    """A field of a record or of a plain object; None where there is none."""
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def first(records: Any) -> Any:
    """The first of a list; None where there is none."""
    return records[0] if isinstance(records, list) and records else None


def word(record: Any, name: str) -> str:
    """A text that stands in a field; empty where there is none."""
    value = field(record, name)
    return value if isinstance(value, str) else ""


def json_word(record: Any, name: str) -> str:
    """A piece of JSON that stands in a field as a text; a value that stands there itself, as the text of it."""
    value = field(record, name)
    return value or "" if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text_of(content: Any) -> str:
    """The text of content, also from a list of parts, without thoughts.

    Raises:
        ValueError: it is something else.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    raise ValueError(f"content is a {type(content).__name__}")


def thought_of(content: Any) -> str:
    """The thoughts in a list of parts; other parts are skipped."""
    parts = content if isinstance(content, list) else []
    thoughts = [field(part, "thinking") for part in parts if field(part, "type") == "thinking"]
    pieces = [piece for thought in thoughts for piece in (thought if isinstance(thought, list) else [thought])]
    return "".join([piece if isinstance(piece, str) else word(piece, "text") for piece in pieces])


def count(record: Any, name: str) -> int:
    """A number of tokens, or an index, 0 where there is none. Raises ValueError when it is something else."""
    value = field(record, name)
    if value is None:
        return 0
    value = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < MAX_DIGITS else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"`{name}` is no number of tokens")
    return value


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    return text_of(field(part, "text")) if field(part, "type") in TEXTS else ""
