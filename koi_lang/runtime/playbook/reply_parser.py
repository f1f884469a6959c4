"""A model's answer to the steps it asks for, handed out while the answer is still being written.

Several objects in a row, lists, `batch`, `actions` and `parallel` are understood. An answer that begins with JSON is
read as it arrives; the reader looks at every character once, however the answer is cut into pieces. From the first
character on that is neither JSON nor blank the rest is kept until the answer has ended: what of it is meant is known
then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from koi_lang.runtime.playbook.action_parsing import (
    CUT_FORM,
    LISTS,
    MIXED_FORM,
    NAMING,
    NO_ACTION,
    OPEN_FORM,
    Action,
    ReplyError,
    as_action,
)
from koi_lang.runtime.playbook.framing import BLANK, frame
from koi_lang.runtime.playbook.json_repair import loads
from koi_lang.runtime.playbook.result_keys import Shapes

# Everything that matters for finding where objects begin and end.
MARK = re.compile(r'["{}\[\],:]')
QUOTE = re.compile(r'["\\]')
SHOWN = 200
# Longer than any key that matters.
MAX_KEY_CHARS = 64
MAX_DEPTH = 100
# A list of actions begins; a list of anything else is no JSON that is meant. The second form may become the first.
LIST = re.compile(r"\[\s{0,100}\{")
LIST_BEGUN = re.compile(r"\[\s{0,100}\Z")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u[0-9a-fA-F]{0,3}\Z|[^u]|\Z)", re.DOTALL)
MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
CUT = "the answer reached its limit of tokens, `max_tokens`"
LESS = "write less at a time: shorter texts, over several answers"
REPEATS = (
    "the answer repeated itself without an end, and was not read any longer; write each action once, and end there"
)
HELP_FOR_CUT = "Raise `max_tokens` of the agent, or have the playbook ask for less at a time."
MIXED = "text and JSON are mixed, and JSON that is quoted, or given as an example, is not meant"

# Where a value begins; where what may become its beginning does; or where something else does, which is kept whole.
FindValue = Callable[[str, int], tuple[int, Literal["value", "begun", "rest"]]]


class ReplyListener(Protocol):
    """Follows the objects of an answer while they are being written, also those that turn out not to be actions.

    Keys are those of the object around something, long ones without their end; empty in lists, and outside of objects.
    """

    def object_begun(self, key: str, *, is_action: bool) -> None:
        """An object or list begins. An action may still turn out to hold a list of actions and be none itself."""

    def string_delta(self, key: str, text: str) -> None:
        """More of a text, without escapes; halves of a character may come one by one. The first delta may be empty."""

    def string_ended(self, key: str) -> None:
        """The text is complete."""

    def object_ended(self) -> None:
        """The innermost object or list is complete."""

    def list_without_actions(self, text: str) -> None:
        """A list outside of everything has ended without an action, so it is prose, such as `[1]`."""


@dataclass(slots=True)
class _Open:
    """An object or list that has begun.

    Attributes:
        piece: in which piece of the answer it begins, and `start` where in that piece.
        place: what it stands for: an `action` or what wraps a list of them, such a list (`steps`), a `list` outside of
            everything whose first item has not come, or any other `value`.
        wraps: whether an object was seen to hold a list of actions, so that it is none itself.
        names_action: whether a key has said that the object is an action.
        named: the keys that did, and `names_twice` whether one of them came again.
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
    named: tuple[str, ...] = ()
    names_twice: bool = False
    key: str | None = None
    items: int = 0
    commas: int = 0


class ReplyReader:
    """Takes an answer piece by piece and gives every action once its object is complete and known to be meant.

    Args:
        results: the keys that a result of the playbook may have; see `as_action`.
        listener: is told what is on its way.
        find: finds the values of an answer, in a piece from a place on.

    Attributes:
        count: how many actions have been complete.
        values: how many JSON values have begun; an action stands in the last one.
    """

    def __init__(
        self, results: Shapes = (), *, listener: ReplyListener | None = None, find: FindValue | None = None
    ) -> None:
        self.count = self.values = 0
        self._listener, self._find = listener, find or find_value
        self._half_escape = ""
        self._results = results
        self._pieces: list[str] = []
        self._piece, self._at = "", 0
        self._in_string = self._escaped = False
        self._key = ""
        self._open: list[_Open] = []
        self._groups = 0
        self._begun = ""
        self._rest: list[str] = []

    @property
    def unread(self) -> str:
        """The unread rest of the last piece."""
        return self._piece[self._at :]

    def feed(self, piece: str) -> Iterator[Action]:
        """The actions that are complete with this piece. Raises ReplyError."""
        if self._rest:
            self._rest.append(piece)
            return
        if not self._open:
            self._pieces.clear()
            piece, self._begun = self._begun + piece, ""
        self._pieces.append(piece)
        self._piece, self._at = piece, 0
        while self._advance():
            mark = piece[self._at]
            self._at += 1
            for action in self._mark(mark):
                self.count += 1
                yield action

    def finish(self, *, is_cut: bool = False, is_endless: bool = False) -> Iterator[Action]:
        """The actions that are known to be meant now that the answer has ended.

        Args:
            is_cut: whether it has ended at its limit of tokens, so that what would follow is not known.
            is_endless: whether it repeated itself, and was not read to its end.

        Raises:
            ReplyError: the answer holds no action, stops in the middle of one, or mixes them with text.
        """
        rest = unended = ""
        if self._open:
            self._at = len(self._piece)
            unended = self._text_from(self._open[0])
        else:
            rest, self._rest, self._begun = "".join(self._rest) or self._begun, [], ""
        framed = frame(rest)
        if is_endless and (unended or framed.unended or framed.values or not self.count):
            raise ReplyError(REPEATS)
        if unended := unended or framed.unended:
            seen = unended[:SHOWN]
            if is_cut:
                raise ReplyError(f"{CUT}, in the middle of {seen!r}; {LESS}", help=HELP_FOR_CUT, form=CUT_FORM)
            raise ReplyError(f"the answer stops in the middle of {seen!r}", form=OPEN_FORM)
        if framed.values and (not framed.is_meant or (framed.has_prose and self.count)):
            raise ReplyError(MIXED, form=MIXED_FORM)
        if is_cut and (framed.values or not self.count):
            what = "so that it is not known what of it is meant" if framed.values else "before it held an action"
            raise ReplyError(f"{CUT}, {what}; {LESS}", help=HELP_FOR_CUT, form=CUT_FORM)
        for value in framed.values:
            yield from self._read_value(value)
        if not self.count:
            seen = rest.strip()[:SHOWN]
            raise ReplyError(f"the answer holds no action: {seen!r}" if seen else "the answer is empty", form=NO_ACTION)

    def _read_value(self, text: str) -> Iterator[Action]:
        """The actions in one JSON text."""
        yield from self.feed(text)
        if self._open or self._rest:
            raise ReplyError(f"brackets do not match near {text[:SHOWN]!r}")

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
            if not self._open and not self._enter():
                return False
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

    def _enter(self) -> bool:
        """Move to the beginning of the next value; False when it has not arrived, or when it is no value."""
        self._at, found = self._find(self._piece, self._at)
        if found == "begun":
            self._begun = self.unread
        elif found == "rest":
            self._rest.append(self.unread)
        return found == "value"

    def _begin_string(self) -> None:
        # Quotes in prose around the JSON mean nothing.
        self._in_string = bool(self._open)
        self._key = ""
        self._half_escape = ""
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
        """Take in a part of a string, which may be the name of a key."""
        if len(self._key) < MAX_KEY_CHARS:
            self._key += self._piece[start : min(end, start + MAX_KEY_CHARS - len(self._key))]
        if self._listener is None:
            return
        current = self._open[-1]
        if current.is_list or current.key is not None:
            key, text = current.key or "", self._piece[start:end]
            if self._half_escape or "\\" in text:
                text, self._half_escape = _unescape(self._half_escape + text)
            self._listener.string_delta(key, text)
            if not self._in_string:
                self._listener.string_ended(key)

    # ------------------------------------------------------------ structure

    def _mark(self, mark: str) -> Iterator[Action]:
        """Process one mark; yields the action that it completes."""
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
        current.key = key = _as_key(self._key)
        if key not in NAMING:
            return
        current.names_twice |= key in current.named
        current.named = (*current.named, key)
        if current.wraps:
            raise ReplyError(f"`{self._key}` must come before the list of actions in the same object")
        current.names_action = True

    def _separate(self, current: _Open) -> None:
        current.key = None
        current.commas += 1
        if current.place == "steps" and current.items < current.commas:
            raise ReplyError(f"item {current.commas} of the list is no action; an action is a JSON object")

    def _begin(self, is_list: bool) -> None:
        if len(self._open) == MAX_DEPTH:
            raise ReplyError(f"the answer is nested more than {MAX_DEPTH} levels deep")
        parent = self._open[-1] if self._open else None
        self.values += parent is None
        opened = _Open(len(self._pieces) - 1, self._at - 1, is_list, "list" if is_list else "action")
        if parent is not None:
            opened.place = self._place(parent, is_list)
            opened.group = self._group(parent)
        self._open.append(opened)
        if self._listener is not None:
            key = parent.key if parent is not None else None
            self._listener.object_begun(key or "", is_action=opened.place == "action")

    def _place(self, parent: _Open, is_list: bool) -> Literal["action", "steps", "value"]:
        """The kind of value that begins inside of a list or object."""
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
        """The parallel group of a new value: that of its parent, unless it begins another one."""
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
        if self._listener is not None:
            self._listener.object_ended()
            if closed.place == "list":
                self._listener.list_without_actions(self._text_from(closed))
        if closed.is_list != is_list:
            raise ReplyError(f"brackets do not match near {self._text_from(closed)[:SHOWN]!r}")
        if closed.place == "steps" and not closed.items:
            raise ReplyError("the list of actions is empty; give at least one action")
        if closed.place == "action" and not closed.wraps:
            yield self._read_action(self._text_from(closed), closed)

    def _read_action(self, text: str, closed: _Open) -> Action:
        """An action; of keys that name it twice the first ones count: a call of a tool begins with its name."""
        try:
            value = loads(text, keep_first=NAMING if closed.names_twice else ())
        except ValueError as error:
            raise ReplyError(str(error)) from None
        return as_action(value, closed.group, results=None if self._open else self._results)


def _unescape(raw: str) -> tuple[str, str]:
    """A part of a JSON string without escapes, and the beginning of one at its end."""
    half = ""

    def mean(escape: re.Match[str]) -> str:
        nonlocal half
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        half = escape[0] if not code or code[0] == "u" else ""
        return "" if half else MEANT.get(code, code)

    return ESCAPE.sub(mean, raw), half


def _as_key(raw: str) -> str:
    """A key without escapes; halves of characters are joined."""
    if "\\" not in raw:
        return raw
    return _unescape(raw)[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def find_value(piece: str, at: int) -> tuple[int, Literal["value", "begun", "rest"]]:
    """Where a value begins that is meant as it stands: nothing but blanks may come before it."""
    blank = BLANK.match(piece, at)
    start = blank.end() if blank is not None else at
    if piece.startswith("{", start) or LIST.match(piece, start):
        return start, "value"
    return start, "begun" if start == len(piece) or LIST_BEGUN.match(piece, start) else "rest"


def read_reply(text: str, results: Shapes = ()) -> list[Action]:
    """All actions of a complete answer, at least one. Raises ReplyError."""
    reader = ReplyReader(results)
    return [*reader.feed(text), *reader.finish()]
