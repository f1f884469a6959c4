"""Results as models are told them: JSON, and below it texts of several lines, of long ones both ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from koi_lang.js.errors import ErrorValue
from koi_lang.js.inspect_value import inspect as inspect_value
from koi_lang.js.undefined import undefined
from koi_lang.runtime.model_calls.images import medium, prompt_text
from koi_lang.runtime.outputs.long_texts import KeptOutput, LongText, count_rows, references, replace_texts
from koi_lang.runtime.playbook.outside_text import flatten_lines, mark_lines, quote_line

READ_OUTPUT = "read_output"
# Of each end at the least, in characters.
MIN_CHARS = 200
# How many lines the hint asks for.
DEFAULT_ROWS = 200
# The end of a line with the mark of the next one, and the line in place of what is left out.
BREAK_CHARS, GAP_CHARS = 3, 80
# What terminals take for a sign, and what is no character.
ODD, ODD_CHARS = re.compile("[\x00-\x08\x0e-\x1b\x7f\ud800-\udfff]"), 6


@dataclass(frozen=True, slots=True)
class ResultText:
    """A result for a model.

    Attributes:
        text: JSON on one line; below it each line of a text behind `>`, so that none looks like a line of Koi.
        parts: what it consists of, without these marks.
    """

    text: str
    parts: tuple[str, ...]


class _Block(NamedTuple):
    """A text that stands below the JSON of its result: the name of its field, and how it is kept whole."""

    name: str
    text: str
    kept: KeptOutput | None


def result_text(value: Any, most: int) -> ResultText:
    """A result as text. Texts of several lines, alone or in fields of an object, stand below the JSON of the rest.

    Args:
        value: it, with references in place of its long texts.
        most: about how many characters of it; both ends are there of a text that has more.
    """
    rest, blocks = _split(value)
    head = "" if rest is undefined else flatten_lines(_json_of(rest, most // 2 if blocks else most))
    lines, parts = [head], [head]
    for block, pieces in _pieces(blocks, most - len(head)):
        left_out = f"{len(block.text) - sum(map(len, pieces)):,} characters left out"
        gap = f"… {left_out} …" if block.kept is None else _gap(block.kept)
        marked = (mark_lines(ODD.sub(lambda sign: f"\\u{ord(sign[0]):04x}", piece)) for piece in pieces)
        lines += [*([f"{quote_line(block.name)}:"] if block.name else []), f"\n{gap}\n".join(marked)]
        lines += [] if block.kept is None else [_note(block.kept, pieces[0])]
        parts += [block.name, *pieces]
    return ResultText("\n".join(lines), tuple(parts))


def _split(value: Any) -> tuple[Any, Sequence[_Block]]:
    """A value without its texts of several lines, undefined where nothing is left, and these."""
    if not isinstance(value, dict) or medium(value) is not None or "toJSON" in value:
        block = _block("", value)
        return (value, []) if block is None else (undefined, [block])
    blocks = [block for name, item in value.items() if name and (block := _block(name, item)) is not None]
    if not blocks:
        return value, blocks
    names = {block.name for block in blocks}
    return {name: item for name, item in value.items() if name not in names} or undefined, blocks


def _block(name: str, text: Any) -> _Block | None:
    """The block for a text, without the end of its last line; None for one that stands in the JSON."""
    if isinstance(text, LongText):
        return _Block(name, _text_of(text).removesuffix("\n"), text.kept)
    return _Block(name, text.removesuffix("\n"), None) if isinstance(text, str) and "\n" in text.strip("\n") else None


def _pieces(blocks: Sequence[_Block], room: int) -> Iterator[tuple[_Block, Sequence[str]]]:
    """Each text whole, or both ends of it; what one does not need of some room is for the others."""

    def cost(character: str) -> int:
        return BREAK_CHARS if character == "\n" else ODD_CHARS if ODD.match(character) else 1

    sizes = {block.name: len(block.text) if block.kept else sum(map(cost, block.text)) for block in blocks}
    shares: dict[str, int] = {}
    for number, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
        shares[name] = max(2 * MIN_CHARS, min(sizes[name], room // (len(sizes) - number)))
        room -= shares[name]
    for block in blocks:
        is_whole = block.kept is None and sizes[block.name] <= shares[block.name]
        ends = (block.text, "") if is_whole else _ends(block.text, (shares[block.name] - GAP_CHARS) // 2, cost)
        yield block, [*filter(None, ends)]


def _json_of(value: Any, most: int) -> str:
    """A value as JSON, of which as much is there as may be, and both ends of its long texts.

    Values that JSON cannot hold, such as circular objects, are written as `console.log` shows them. Of images and the
    like a model is told that they are there; code has their data.
    """

    def write(each: Any) -> str:
        try:
            return prompt_text(each)
        except ErrorValue:
            return inspect_value(each)

    if found := list(references(value)):
        beside = len(write(replace_texts(value, lambda each: "" if isinstance(each, LongText) else each)))
        value = with_ends(value, max(MIN_CHARS, (most - beside) // (2 * len(found)) - GAP_CHARS))
    text = write(value)
    return text if found or len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def with_ends(value: Any, room: int) -> Any:
    """A value with both ends of each of its long texts, and advice to read the middle.

    Args:
        value: it, with references in place of its long texts.
        room: characters of each end.
    """

    def put(each: Any) -> Any:
        if not isinstance(each, LongText):
            return each
        begin, end = _ends(_text_of(each), room, lambda character: len(json.dumps(character, ensure_ascii=False)) - 2)
        return f"{begin}\n{_gap(each.kept)}\n{_note(each.kept, begin)}\n{end}"

    return replace_texts(value, put)


def _gap(kept: KeptOutput) -> str:
    return f"… output {kept.number}: {kept.size:,} bytes, {kept.rows:,} lines, both ends shown …"


def _note(kept: KeptOutput, begin: str) -> str:
    """Advice to read the omitted part."""
    start = max(1, count_rows(begin) if begin else 1)
    fields = {"id": kept.number, "from": start, "count": DEFAULT_ROWS}
    action = json.dumps({"intent": READ_OUTPUT, "data": fields}, separators=(",", ":"))
    return f"(output {kept.number} is kept whole; {action} reads any of its lines)"


def _text_of(long: LongText) -> str:
    return long.text if long.text is not None else f"{long.kept.begin}\n{long.kept.end}"


def _ends(text: str, room: int, cost: Callable[[str], int]) -> tuple[str, str]:
    """The beginning and the end of a text that take so much room each.

    Args:
        cost: the room that a character takes.
    """
    if len(text) <= 2 * MIN_CHARS:
        return text, ""
    most = min(room, len(text) // 2)
    begin, end = text[:most], text[-most:]
    return begin[: _fit(map(cost, begin), room)], end[len(end) - _fit(map(cost, reversed(end)), room) :]


def _fit(costs: Iterator[int], room: int) -> int:
    """How many characters fit."""
    count = 0
    for cost in costs:
        room -= cost
        if room < 0:
            break
        count += 1
    return count
