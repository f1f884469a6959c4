"""A model's answer while it is being written to what it means so far, for whoever looks on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from koi_lang.runtime.playbook.action_parsing import ABOUT, KINDS, NAMING, Action, ReplyError
from koi_lang.runtime.playbook.framing import OPENING, closing_of
from koi_lang.runtime.playbook.reply_parser import ReplyReader

# Of a text, so much of its end is kept.
LONGEST_END = 400
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u[0-9a-fA-F]{0,3}\Z|[^u]|\Z)", re.DOTALL)
MEANT = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " "}
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
    """What is being written.

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
    """A text that grows.

    Attributes:
        begun: an escape of which the rest has not come.
    """

    key: str = ""
    length: int = 0
    end: str = ""
    begun: str = ""
    is_whole: bool = False

    def add(self, text: str) -> None:
        """Take in what follows."""
        self.length += len(text)
        self.end = (self.end + text)[-LONGEST_END:]

    def add_escaped(self, raw: str) -> None:
        """Take in what follows as it stands in JSON."""
        raw, self.begun = self.begun + raw, ""
        self.add(ESCAPE.sub(self._meant, raw) if "\\" in raw else raw)

    def _meant(self, escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if not code or code[0] == "u":
            self.begun = escape[0]
            return ""
        return MEANT.get(code, code)

    def words(self) -> str:
        """Its end, without words of which a part may be missing."""
        text = self.end.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = FIRST_WORD.sub("", text) if self.length > LONGEST_END else text
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


class PartialReply(ReplyReader):
    """Follows an answer piece by piece. What cannot be read as actions counts as prose."""

    def __init__(self) -> None:
        super().__init__()
        self._said, self._thought = _Text(), _Text()
        self._text = _Text()
        self._action: _Begun | None = None
        self._shown: _Begun | None = None
        self._outside = 0
        self._closing: re.Pattern[str] | None = None
        self._is_broken = False

    def follow(self, piece: str) -> None:
        """Take in the next piece."""
        if self._is_broken:
            self._said.add(piece)
            return
        self._outside = 0
        try:
            for _ in self.feed(piece):
                self._said = _Text()
        except ReplyError:
            self._is_broken = True
        if self._is_broken or not self._open:
            self._said.add(self._piece[self._outside : len(self._piece) - len(self._begun)])

    def think(self, piece: str) -> None:
        """Take in the next piece of thoughts that come beside the answer; nothing is read from them."""
        self._thought.add(piece)

    def preview(self) -> ReplyPreview | None:
        """What is being written now; None as long as nothing can be said about it."""
        if self._shown is None or self._is_broken or not self._open:
            prose = FENCE.sub("", self._said.words()).strip()
            if prose:
                return ReplyPreview("prose" if self._closing is None else "thought", text=prose)
        if self._shown is not None:
            return _to_preview(self._shown)
        thought = self._thought.words().strip()
        return ReplyPreview("thought", text=thought) if thought else None

    # ------------------------------------------------------------ what the reader comes across

    def _enter(self) -> bool:
        """Move to the next bracket outside of thoughts: what is shown need not be what will be carried out."""
        while True:
            looked_for = BEGIN if self._closing is None else self._closing
            found = looked_for.search(self._piece, self._at)
            if found is None:
                begun = TAG_BEGUN.search(self._piece, self._at)
                self._begun, self._at = begun[0] if begun else "", len(self._piece)
                return False
            if found[0] in "{[":
                self._at = found.start()
                return True
            self._at = self._outside = found.end()
            self._closing = closing_of(found) if self._closing is None else None
            self._said, self._shown = _Text(), None

    def _begin(self, is_list: bool) -> None:
        if not self._open:
            self._said.add(self._piece[self._outside : self._at - 1])
            self._shown = None
        super()._begin(is_list)
        if self._open[-1].place == "action":
            self._action = _Begun(len(self._open), self.count + 1)

    def _end(self, is_list: bool) -> Iterator[Action]:
        if len(self._open) == 1:
            self._outside = self._at
            if self._open[0].place == "list":
                self._said.add(self._text_from(self._open[0]))
        yield from super()._end(is_list)

    def _begin_string(self) -> None:
        super()._begin_string()
        if self._open:
            self._text = _Text(self._open[-1].key or "")

    def _remember(self, start: int, end: int) -> None:
        super()._remember(start, end)
        current, action = self._open[-1], self._action
        if action is None or (not current.is_list and current.key is None):
            return
        self._text.add_escaped(self._piece[start:end])
        self._text.is_whole = not self._in_string
        if len(self._open) == action.depth and self._text.key in NAMING and self._text.is_whole:
            self._name(action)
        elif self._text.key not in SILENT and self._text.length > action.telling.length:
            action.telling = self._text
        if action.name or action.telling.length:
            self._shown = action

    def _name(self, action: _Begun) -> None:
        """Take the name of an action from the text that has ended; `direct` and `delegate` are none."""
        name = self._text.end.strip()
        if name not in KINDS and (not action.name or self._text.key == "intent"):
            action.name = name


def _to_preview(action: _Begun) -> ReplyPreview:
    text = action.telling
    if text.key in THOUGHTS and not action.name:
        return ReplyPreview("thought", text=text.words(), is_whole=text.is_whole)
    return ReplyPreview("action", action.name, action.number, text.words(), text.is_whole)
