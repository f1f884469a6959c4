"""A value to how much room it takes once it is written down, and to a refusal where that is too much.

References make large values from few words: a text that mentions itself four times, twenty times over, fills any
memory. Objects do not even have to be copied for that: what is mentioned twice is told twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from koi_lang.errors import AgentError

# In characters; larger than all images of a message in base64.
MAX_BYTES = 20_000_000
ITEM = 20


def weight(value: Any, most: int, *, item: int = 1) -> int:
    """The characters of all texts in a value, and `item` for each of its items and members.

    Args:
        most: beyond this nothing more is counted.
    """
    size, waiting = 0, [value]
    while waiting and size <= most:
        each = waiting.pop()
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, (list, tuple, dict)):
            size += item * len(each)
            if size <= most:
                waiting += _inside(each)
    return size


def mentions(value: Any, sought: Any) -> bool:
    """Whether a value is, or holds at any depth, that very list or object; the value has an end."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if each is sought:
            return True
        if isinstance(each, (list, tuple, dict)):
            waiting += _inside(each)
    return False


def _inside(value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def written_weight(value: Any) -> int:
    """About how many characters a value takes when it is written down, counted to MAX_BYTES."""
    return weight(value, MAX_BYTES, item=ITEM)


def require_room(size: int) -> None:
    """Raise AgentError for more characters than a value may take."""
    if size > MAX_BYTES:
        help = "Use a part of it, such as `${id.output.items[0]}`."
        raise AgentError(f"this becomes larger than {MAX_BYTES:,} characters", help=help)
