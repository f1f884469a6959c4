"""Results with long texts, shortened for a model: both ends of each, its size, and how to read the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from koi_lang.runtime.outputs.long_texts import LongText, count_rows, references, replace_texts

READ_OUTPUT = "read_output"
# Of each end at the least, in characters.
MIN_CHARS = 200
# How many lines the hint asks for.
DEFAULT_ROWS = 200


def shown_result(value: Any, most: int, write: Callable[[Any], str]) -> str:
    """A result as text.

    Args:
        value: it, with references in place of its long texts.
        most: characters of it.
        write: gives a value as JSON.
    """
    found = list(references(value))
    gaps = {id(each): _gap(each) for each in found}
    beside = len(write(replace_texts(value, lambda each: gaps[id(each)] if isinstance(each, LongText) else each)))
    room = max(MIN_CHARS, (most - beside) // (2 * len(found)))
    ends = {id(each): _ends(each, room) for each in found}

    def put(each: Any) -> Any:
        return "".join((ends[id(each)][0], gaps[id(each)], ends[id(each)][1])) if isinstance(each, LongText) else each

    notes = {each.kept.number: _note(each, ends[id(each)][0]) for each in found}
    return " ".join([write(replace_texts(value, put)), *notes.values()])


def with_ends(value: Any, room: int) -> Any:
    """A value with both ends of each of its long texts, and advice to read the middle.

    Args:
        value: it, with references in place of its long texts.
        room: characters of each end.
    """

    def put(each: Any) -> Any:
        if not isinstance(each, LongText):
            return each
        begin, end = _ends(each, room)
        return f"{begin}{_gap(each)}{_note(each, begin)}\n{end}"

    return replace_texts(value, put)


def _gap(long: LongText) -> str:
    return f"\n… output {long.kept.number}: {long.kept.size:,} bytes, {long.kept.rows:,} lines, both ends shown …\n"


def _note(long: LongText, begin: str) -> str:
    """Advice to read the omitted part."""
    start = max(1, count_rows(begin) if begin else 1)
    fields = {"id": long.kept.number, "from": start, "count": DEFAULT_ROWS}
    action = json.dumps({"intent": READ_OUTPUT, "data": fields}, separators=(",", ":"))
    return f"(output {long.kept.number} is kept whole; {action} reads any of its lines)"


def _ends(long: LongText, room: int) -> tuple[str, str]:
    """The beginning and the end of a text that take so much room as JSON."""
    text = long.text if long.text is not None else f"{long.kept.begin}\n{long.kept.end}"
    if len(text) <= 2 * MIN_CHARS:
        return text, ""
    most = min(room, len(text) // 2)
    begin, end = text[:most], text[-most:]
    return begin[: _fit(iter(begin), room)], end[len(end) - _fit(reversed(end), room) :]


def _fit(characters: Iterator[str], room: int) -> int:
    """How many characters fit."""
    count = 0
    for character in characters:
        room -= len(json.dumps(character, ensure_ascii=False)) - 2
        if room < 0:
            break
        count += 1
    return count
