"""A preview of an answer while it is being written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from koi_lang.runtime.playbook.action_parsing import ABOUT, KINDS, NAMING, ReplyError
from koi_lang.runtime.playbook.framing import OPENING, closing_of
from koi_lang.runtime.playbook.reply_parser import ReplyReader

# Of a text, so much of its end is kept.
MAX_END_CHARS = 400
# Controls that some terminals obey, as what is shown in their place.
SHOWN_AS = str.maketrans("\b\f", "  ")
THOUGHTS = frozenset({"thought", "thoughts", "thinking", "reasoning"})
# What these hold does not tell what an action is done to.
SILENT = frozenset({*NAMING, *ABOUT, "id", "description"})
# Words end at blanks, and at characters of scripts that are written without blanks.
ENDS_WORD = r"\s\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
FIRST_WORD = re.compile(rf"\A[^{ENDS_WORD}]*")
LAST_WORD = re.compile(rf"(?<![^{ENDS_WORD}])[^{ENDS_WORD}]+\Z")
FENCE = re.compile(r"```\w*\s*")
# A thought, or JSON; and what may become the tag of a thought.
BEGIN = re.compile(rf"{OPENING}|[{{\[]", re.IGNORECASE)
TAG_BEGUN = re.compile(r"<[^<>{\[]{0,40}\Z")


@dataclass(frozen=True, slots=True)
class ReplyPreview:
    """The text that is being written.

    Attributes:
        kind: an action, what the model thinks before its actions or between tags, or text that is neither.
        name: of the action; empty while it has not come.
        count: which action of the answer it is, from 1.
        text: the end of what tells most, in whole words: half a word may be half a secret.
        is_whole: whether that text has ended.
    """

    kind: Literal["action", "thought", "prose"]
    name: str = ""
    count: int = 0
    text: str = ""
    is_whole: bool = False


@dataclass(slots=True)
class _Text:
    """A text that grows."""

    key: str = ""
    length: int = 0
    end: str = ""
    is_whole: bool = False

    def add(self, text: str) -> None:
        """Add the next piece."""
        self.length += len(text)
        self.end = (self.end + text)[-MAX_END_CHARS:]

    def words(self) -> str:
        """Its end, without words of which a part may be missing."""
        text = self.end.encode("utf-16", "surrogatepass").decode("utf-16", "replace").translate(SHOWN_AS)
        text = FIRST_WORD.sub("", text) if self.length > MAX_END_CHARS else text
        return text if self.is_whole else LAST_WORD.sub("", text)


@dataclass(slots=True)
class _Begun:
    """An action that is being written.

    Attributes:
        depth: how many objects and lists are open in it, itself included.
        number: which action of the answer it is.
    """

    depth: int
    number: int
    name: str = ""
    telling: _Text = field(default_factory=_Text)


class PartialReply:
    """Follows an answer piece by piece, as listener of a reader; unreadable parts count as prose."""

    def __init__(self) -> None:
        self._reader = ReplyReader(listener=self, find=self._find_value)
        self._depth = 0
        self._said, self._thought = _Text(), _Text()
        self._text: _Text | None = None
        self._action: _Begun | None = None
        self._shown: _Begun | None = None
        self._closing: re.Pattern[str] | None = None
        self._is_broken = False

    def follow(self, piece: str) -> None:
        """Take in the next piece."""
        if self._is_broken:
            self._said.add(piece)
            return
        try:
            for _ in self._reader.feed(piece):
                self._said = _Text()
        except ReplyError:
            self._is_broken = True
            self._said.add(self._reader.unread)

    def think(self, piece: str) -> None:
        """Take in the next piece of thoughts that come beside the answer; nothing is read from them."""
        self._thought.add(piece)

    def preview(self) -> ReplyPreview | None:
        """The current preview; None while nothing is certain."""
        if self._shown is None or self._is_broken or not self._depth:
            prose = FENCE.sub("", self._said.words()).strip()
            if prose:
                return ReplyPreview("prose" if self._closing is None else "thought", text=prose)
        if self._shown is not None:
            return _to_preview(self._shown)
        thought = self._thought.words().strip()
        return ReplyPreview("thought", text=thought) if thought else None

    def _find_value(self, piece: str, at: int) -> tuple[int, Literal["value", "begun"]]:
        """The next bracket outside of thoughts; a preview may differ from the action in the end."""
        while True:
            found = (BEGIN if self._closing is None else self._closing).search(piece, at)
            if found is None:
                begun = TAG_BEGUN.search(piece, at)
                end = len(piece) if begun is None else begun.start()
                self._said.add(piece[at:end])
                return end, "begun"
            if found[0] in "{[":
                self._said.add(piece[at : found.start()])
                return found.start(), "value"
            at = found.end()
            self._closing = closing_of(found) if self._closing is None else None
            self._said, self._shown = _Text(), None

    # ------------------------------------------------------------ what the reader comes across

    def object_begun(self, key: str, *, is_action: bool) -> None:
        """An object or list begins; outside of everything, it ends the earlier preview."""
        self._depth += 1
        if self._depth == 1:
            self._shown = None
        if is_action:
            self._action = _Begun(self._depth, self._reader.count + 1)

    def string_delta(self, key: str, text: str) -> None:
        """A text grows; the longest one of an action is shown."""
        action = self._action
        if action is None:
            return
        self._text = self._text or _Text(key)
        self._text.add(text)
        if key not in SILENT and self._text.length > action.telling.length:
            action.telling = self._text
        self._show(action)

    def string_ended(self, key: str) -> None:
        """A text is complete; it may be the name of an action."""
        action, text, self._text = self._action, self._text, None
        if action is None or text is None:
            return
        text.is_whole = True
        if self._depth == action.depth and key in NAMING:
            self._name(action, text)
        self._show(action)

    def object_ended(self) -> None:
        """Something ends."""
        self._depth -= 1

    def list_without_actions(self, text: str) -> None:
        """A list is part of the prose around it."""
        self._said.add(text)

    def _show(self, action: _Begun) -> None:
        if action.name or action.telling.length:
            self._shown = action

    def _name(self, action: _Begun, text: _Text) -> None:
        """Take the name of an action from a text; `direct` and `delegate` are none."""
        name = text.end.strip()
        if name not in KINDS and (not action.name or text.key == "intent"):
            action.name = name


def _to_preview(action: _Begun) -> ReplyPreview:
    text = action.telling
    if text.key in THOUGHTS and not action.name:
        return ReplyPreview("thought", text=text.words(), is_whole=text.is_whole)
    return ReplyPreview("action", action.name, action.number, text.words(), text.is_whole)
