"""A model's answer to the steps it asks for, handed out while the answer is still being written.

Code fences, prose around the JSON, several objects in a row, lists, `batch`, `actions` and `parallel` are understood.
The reader looks at every character once, however the answer is cut into pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import KoiError

KINDS = ("direct", "delegate")
LISTS = ("batch", "actions", "parallel")
NAMING = ("intent", "actionType", "type")
# Everything that matters for finding where objects begin and end.
MARK = re.compile(r'["{}\[\],:]')
QUOTE = re.compile(r'["\\]')
SHOWN = 200
# Longer than any key that matters.
LONGEST_KEY = 32


class ReplyError(KoiError):
    """An answer cannot be read as actions; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a model asks for.

    Attributes:
        intent: name of an action, or who it is delegated to.
        delegated: whether a team member is to do it.
        data: its fields; for `return` and delegates the payload stands under `data`.
        id: what the model calls it, empty if nothing.
        group: number of the parallel group it belongs to; 0 for none.
    """

    intent: str
    delegated: bool
    data: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    group: int = 0


@dataclass(slots=True)
class _Open:
    """An object or list that has begun.

    Attributes:
        piece: in which piece of the answer it begins, and `start` where in that piece.
        is_list: whether it is a list.
        holds_steps: whether it is a list of actions, or an object that only wraps such a list.
        names_action: whether a key has said that the object is an action.
        group: the parallel group that actions inside belong to.
        key: the last key; None while a key is expected.
    """

    piece: int
    start: int
    is_list: bool
    holds_steps: bool
    group: int = 0
    names_action: bool = False
    key: str | None = None
    count: int = 0


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
        if self._open:
            raise ReplyError(f"the answer stops in the middle of {self._text_from(self._open[0])[:SHOWN]!r}")
        if not self.count:
            raise ReplyError(f"the answer holds no JSON object: {self._prose.strip()!r}")

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
            # Quotes in prose around the JSON mean nothing.
            self._in_string, self._key = bool(self._open), ""

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
                self._open[-1].key = None

    def _name_key(self, current: _Open) -> None:
        current.key = self._key
        current.names_action |= self._key in NAMING

    def _begin(self, is_list: bool) -> None:
        parent = self._open[-1] if self._open else None
        opened = _Open(len(self._pieces) - 1, self._at - 1, is_list, is_list and parent is None)
        if parent is not None:
            opened.group = parent.group
            if parent.holds_steps and parent.is_list:
                parent.count += 1
            elif not parent.is_list and self._is_wrapper(parent):
                parent.holds_steps = opened.holds_steps = True
                if parent.key == "parallel":
                    self._groups += 1
                    opened.group = self._groups
                if not is_list:
                    # A single object where a list belongs.
                    opened.holds_steps = False
        self._open.append(opened)

    def _is_wrapper(self, opened: _Open) -> bool:
        """Whether the value about to begin is the list of actions of an object that is none itself."""
        if opened.key not in LISTS or opened.names_action:
            return False
        depth = self._open.index(opened)
        return depth == 0 or (self._open[depth - 1].is_list and self._open[depth - 1].holds_steps)

    def _end(self, is_list: bool) -> Iterator[Action]:
        if not self._open:
            return
        closed = self._open.pop()
        if closed.is_list != is_list:
            raise ReplyError(f"brackets do not match near {self._text_from(closed)[:SHOWN]!r}")
        if closed.is_list:
            if closed.holds_steps and not closed.count:
                raise ReplyError("the list of actions is empty; give at least one action")
            return
        if not closed.holds_steps and self._stands_for_action():
            yield self._action(closed)

    def _stands_for_action(self) -> bool:
        """Whether the object that was just closed is an item of a list of actions, or stands alone."""
        if not self._open:
            return True
        parent = self._open[-1]
        return parent.holds_steps and (parent.is_list or parent.key in LISTS)

    def _action(self, closed: _Open) -> Action:
        value = _loads(self._text_from(closed))
        return as_action(value, closed.group)


def read_reply(text: str) -> list[Action]:
    """All actions of a complete answer, at least one. Raises ReplyError."""
    reader = ReplyReader()
    actions = list(reader.feed(text))
    reader.finish()
    return actions


def _loads(text: str) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        repaired = _without_trailing_commas(text)
        if repaired == text:
            near = text[max(0, error.pos - 30) : error.pos + 30]
            raise ReplyError(f"the JSON is broken near {near!r}: {error.msg[:1].lower()}{error.msg[1:]}") from None
        return _loads(repaired)
    return loaded


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, outside of strings."""
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text, flags=re.DOTALL)
    return "".join(piece if at % 2 else re.sub(r",(\s*[}\]])", r"\1", piece) for at, piece in enumerate(pieces))


def as_action(value: Any, group: int = 0) -> Action:
    """One JSON object as an action; an object that names no action is the result of the playbook.

    Raises:
        ReplyError: says which field, what was expected and what came.
    """
    if not isinstance(value, dict):
        raise ReplyError(f"an action is a JSON object, not {json.dumps(value)[:80]}")
    if not value:
        raise ReplyError("the object is empty; name an `intent`")
    kind, intent = value.get("actionType"), value.get("intent", value.get("type"))
    if kind not in KINDS and isinstance(kind, str):
        intent, kind = intent or kind, "direct"
    if intent is None and kind is None:
        return Action("return", False, {"data": value}, "", group)
    if not isinstance(intent, str) or not intent:
        raise ReplyError(f"`intent` must be the name of an action, not {json.dumps(intent)}")
    fields = {key: item for key, item in value.items() if key not in (*NAMING, "id")}
    delegated = kind == "delegate"
    if delegated and "data" not in fields:
        fields = {"data": {**fields, **({"id": value["id"]} if "id" in value else {})}}
    return Action(intent, delegated, fields if delegated else _flat(intent, fields), str(value.get("id", "")), group)


def _flat(intent: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields under `data` are fields of the action too; for `return`, `data` is the result itself."""
    data = fields.get("data")
    return {**data, **fields} if intent != "return" and isinstance(data, dict) else fields
