"""A model's answer to the steps it asks for, handed out while the answer is still being written.

Code fences, prose around the JSON, several objects in a row, lists, `batch`, `actions` and `parallel` are understood.
The reader looks at every character once, however the answer is cut into pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from koi_lang.runtime.playbook.intents import LISTS, NAMING, Action, ReplyError, as_action

# Everything that matters for finding where objects begin and end.
MARK = re.compile(r'["{}\[\],:]')
QUOTE = re.compile(r'["\\]')
SHOWN = 200
# Longer than any key that matters.
LONGEST_KEY = 32
MOST_DEPTH = 100
HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


@dataclass(slots=True)
class _Open:
    """An object or list that has begun.

    Attributes:
        piece: in which piece of the answer it begins, and `start` where in that piece.
        place: what it stands for: an `action` or what wraps a list of them, such a list (`steps`), a `list` outside of
            everything whose first item has not come, or any other `value`.
        wraps: whether an object was seen to hold a list of actions, so that it is none itself.
        names_action: whether a key has said that the object is an action.
        group: the parallel group that actions inside belong to.
        key: the last key; None while a key is expected.
        items: number of actions in a list, and `commas` between them.
    """

    piece: int
    start: int
    is_list: bool
    place: Literal["action", "steps", "list", "value"]
    group: int = 0
    wraps: bool = False
    names_action: bool = False
    key: str | None = None
    items: int = 0
    commas: int = 0


class ReplyReader:
    """Takes an answer piece by piece and gives every action once its object is complete."""

    def __init__(self) -> None:
        self.count = 0
        self._pieces: list[str] = []
        self._piece, self._at = "", 0
        self._in_string = self._escaped = False
        self._key = ""
        self._open: list[_Open] = []
        self._groups = 0
        self._prose = ""

    def feed(self, piece: str) -> Iterator[Action]:
        """The actions that are complete with this piece. Raises ReplyError."""
        if not self._open:
            self._pieces.clear()
            self._prose = (self._prose + piece)[:SHOWN]
        self._pieces.append(piece)
        self._piece, self._at = piece, 0
        while self._advance():
            mark = piece[self._at]
            self._at += 1
            for action in self._mark(mark):
                self.count += 1
                yield action

    def finish(self) -> None:
        """The answer has ended. Raises ReplyError when it held no action or stops in the middle of one."""
        self._at = len(self._piece)
        if self._open:
            raise ReplyError(f"the answer stops in the middle of {self._text_from(self._open[0])[:SHOWN]!r}")
        if not self.count:
            seen = self._prose.strip()
            raise ReplyError(f"the answer holds no action: {seen!r}" if seen else "the answer is empty")

    def _text_from(self, opened: _Open) -> str:
        """The text from the start of an object to here."""
        first, *more = self._pieces[opened.piece :]
        if not more:
            return first[opened.start : self._at]
        return "".join([first[opened.start :], *more[:-1], more[-1][: self._at]])

    # ------------------------------------------------------------ finding marks

    def _advance(self) -> bool:
        """Move to the next mark outside of strings; False when this piece has none."""
        while True:
            if self._in_string and not self._leave_string():
                return False
            found = MARK.search(self._piece, self._at)
            if found is None:
                return False
            self._at = found.start()
            if found[0] != '"':
                return True
            self._at += 1
            self._begin_string()

    def _begin_string(self) -> None:
        # Quotes in prose around the JSON mean nothing.
        self._in_string, self._key = bool(self._open), ""
        if self._open and self._open[-1].place == "steps":
            raise ReplyError("an action is a JSON object, not a text")

    def _leave_string(self) -> bool:
        """Move behind the end of the string; False when it has not come yet. The string may be the name of a key."""
        start = self._at
        if self._escaped and start < len(self._piece):
            self._at, self._escaped = start + 1, False
        while (found := QUOTE.search(self._piece, self._at)) is not None:
            self._at = found.end()
            if found[0] == '"':
                self._in_string = False
                self._remember(start, self._at - 1)
                return True
            self._escaped = self._at == len(self._piece)
            self._at = min(self._at + 1, len(self._piece))
        self._at = len(self._piece)
        self._remember(start, self._at)
        return False

    def _remember(self, start: int, end: int) -> None:
        if len(self._key) < LONGEST_KEY:
            self._key += self._piece[start : min(end, start + LONGEST_KEY)]

    # ------------------------------------------------------------ structure

    def _mark(self, mark: str) -> Iterator[Action]:
        """What one mark means; yields the action that it completes."""
        match mark:
            case "{" | "[":
                self._begin(mark == "[")
            case "}" | "]":
                yield from self._end(mark == "]")
            case ":" if self._open and not self._open[-1].is_list and self._open[-1].key is None:
                self._name_key(self._open[-1])
            case "," if self._open:
                self._separate(self._open[-1])

    def _name_key(self, current: _Open) -> None:
        current.key = self._key
        if self._key not in NAMING:
            return
        if current.wraps:
            raise ReplyError(f"`{self._key}` must come before the list of actions in the same object")
        current.names_action = True

    def _separate(self, current: _Open) -> None:
        current.key = None
        current.commas += 1
        if current.place == "steps" and current.items < current.commas:
            raise ReplyError(f"item {current.commas} of the list is no action; an action is a JSON object")

    def _begin(self, is_list: bool) -> None:
        if len(self._open) == MOST_DEPTH:
            raise ReplyError(f"the answer is nested more than {MOST_DEPTH} levels deep")
        parent = self._open[-1] if self._open else None
        opened = _Open(len(self._pieces) - 1, self._at - 1, is_list, "list" if is_list else "action")
        if parent is not None:
            opened.place = self._place(parent, is_list)
            opened.group = self._group(parent)
        self._open.append(opened)

    def _place(self, parent: _Open, is_list: bool) -> Literal["action", "steps", "value"]:
        """What begins inside of a list or object."""
        if not parent.is_list:
            parent.wraps |= parent.place == "action" and parent.key in LISTS and not parent.names_action
            if not parent.wraps or parent.key not in LISTS:
                return "value"
            # A single object may stand where a list belongs.
            return "steps" if is_list else "action"
        if parent.place == "list":
            blank = not self._text_from(parent)[1:-1].strip()
            parent.place = "steps" if blank and not is_list else "value"
        if parent.place == "steps":
            if is_list:
                raise ReplyError("an action is a JSON object, not a list")
            parent.items += 1
            return "action"
        return "value"

    def _group(self, parent: _Open) -> int:
        """The parallel group of what begins: that of its parent, unless it is a new one."""
        if not parent.wraps or parent.is_list:
            return parent.group
        if parent.group and parent.key != "parallel":
            raise ReplyError(f"`parallel` holds single actions, not a `{parent.key}`")
        if parent.key == "parallel" and not parent.group:
            self._groups += 1
            return self._groups
        return parent.group

    def _end(self, is_list: bool) -> Iterator[Action]:
        if not self._open:
            return
        closed = self._open.pop()
        if closed.is_list != is_list:
            raise ReplyError(f"brackets do not match near {self._text_from(closed)[:SHOWN]!r}")
        if closed.place == "steps" and not closed.items:
            raise ReplyError("the list of actions is empty; give at least one action")
        if closed.place == "action" and not closed.wraps:
            yield as_action(_loads(self._text_from(closed)), closed.group, alone=not self._open)


def read_reply(text: str) -> list[Action]:
    """All actions of a complete answer, at least one. Raises ReplyError."""
    reader = ReplyReader()
    actions = list(reader.feed(text))
    reader.finish()
    return actions


def _loads(text: str) -> dict[str, Any]:
    """The object a text stands for; commas too many are forgiven, halves of characters are replaced."""
    try:
        loaded: dict[str, Any] = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        repaired = _without_trailing_commas(text)
        if repaired == text:
            near = text[max(0, error.pos - 30) : error.pos + 30]
            raise ReplyError(f"the JSON is broken near {near!r}: {error.msg[:1].lower()}{error.msg[1:]}") from None
        return _loads(repaired)
    except ValueError as error:
        raise ReplyError(f"the JSON holds a value that cannot be read: {error}") from None
    whole: dict[str, Any] = _whole(loaded) if HALF.search(text) else loaded
    return whole


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, outside of strings."""
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text, flags=re.DOTALL)
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
