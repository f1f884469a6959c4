"""Texts for people, and results of declared types, that a model is writing, told as events while they grow."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

from koi_lang.events import OutputDelta, PartialResult
from koi_lang.runtime.playbook.action_parsing import ABOUT, KINDS, NAMING
from koi_lang.runtime.playbook.framing import THOUGHT, without_thoughts
from koi_lang.runtime.playbook.json_repair import parse_beginning

# Actions that say something to people, and the field in which they do; any text that is returned may be for them.
SAYING = {"print": "message", "prompt_user": "question"}
RETURN = "return"
# Where a result begins: in an answer that is nothing else, and in an action. No text in JSON looks like that, since it
# holds no quotation mark as it is.
ALONE = re.compile(r"(?=\{)")
RETURNED = re.compile(r"""[{,]\s*"intent"\s*:\s*"return"\s*,(?:[^{}\[\]]*,)?\s*"data"\s*:\s*(?=[{\[])""")
# The first field of an object that an answer begins with, in a fence or not.
FIRST_FIELD = re.compile(r"""\s*(?:```\w*\s*)?(?=\{\s*"([^"\\]*)"\s*:)""")
# A result is told again when so many characters have come, and more by that share of it.
MIN_NEWS_CHARS, NEWS_SHARE = 24, 20
# Of an action before its result.
MAX_HEAD_CHARS = 1000
FIRST_HALVES = range(0xD800, 0xDC00)


@dataclass(slots=True)
class _WrittenText:
    """A text of an action, counted from 1 within the answer."""

    key: str
    number: int
    waiting: str = ""


@dataclass(slots=True)
class _WrittenAction:
    """An action that is being written, and its texts before its name has come.

    Attributes:
        depth: how many objects and lists are open in it, itself included.
    """

    depth: int
    name: str = ""
    early: list[_WrittenText] = field(default_factory=list)


class WrittenResult:
    """Tells a result of a declared type while it grows: the part of it that has arrived.

    Args:
        emit: is told each part.
        is_alone: whether the answer is the result, and not the action that returns it.
        wrapper: the field of an answer that holds the result; empty where that is the answer.
        names: fields of the result.
        protocol: fields of actions that are none of the result: an answer with one of them is an action all the same.
    """

    def __init__(
        self,
        emit: Callable[[PartialResult], None],
        *,
        is_alone: bool,
        wrapper: str = "",
        names: Container[str] = (),
        protocol: Container[str] = (),
    ) -> None:
        self._emit = emit
        self._begin = ALONE if is_alone else RETURNED
        self._wrapper = wrapper
        self._names = names
        self._protocol = protocol
        self._text = ""
        self._start = -1
        self._next = 0
        self._last: Any = None

    def add(self, piece: str) -> None:
        """Add the next piece of the answer."""
        self._text += piece
        if self._start < 0 and any(sign in piece for sign in "{[:"):
            if self._begin is ALONE:
                self._text = without_thoughts(self._text)
            is_thought = self._begin is ALONE and THOUGHT.match(self._text) is not None
            found = self._begin.search(self._text, max(0, len(self._text) - len(piece) - MAX_HEAD_CHARS))
            if found is None and len(self._text) <= MAX_HEAD_CHARS:
                first = FIRST_FIELD.match(self._text)  # the result may stand there without its action
                found = first if first is not None and first[1] in self._names else None
            self._start = -1 if found is None or is_thought else found.end()
        if self._start < 0 or len(self._text) < self._next:
            return
        written = self._text[self._start :]
        self._next = len(self._text) + max(MIN_NEWS_CHARS, len(written) // NEWS_SHARE)
        value = parse_beginning(written)
        if isinstance(value, dict) and any(name in self._protocol for name in value):
            value = value.get("data", value.get("result")) if value.get("intent") == RETURN else None
        if self._wrapper and not isinstance(value, list):
            value = value.get(self._wrapper) if isinstance(value, dict) else None
        if isinstance(value, (dict, list)) and value and value != self._last:
            self._last = value
            self._emit(PartialResult(value))


class WrittenTexts:
    """Tells the texts for people in an answer, as listener of its reader.

    What is told need not be said: a condition may not hold, a permission may be lacking, `${…}` is not computed yet.

    Args:
        emit: is told each piece.
    """

    def __init__(self, emit: Callable[[OutputDelta], None]) -> None:
        self._emit = emit
        self._actions: list[_WrittenAction | None] = []
        self._text: _WrittenText | None = None
        self._name = ""
        self._count = 0

    def object_begun(self, key: str, *, is_action: bool) -> None:
        """An object or list begins; one without an action is part of the one around it."""
        around = self._actions[-1] if self._actions else None
        self._actions.append(_WrittenAction(len(self._actions) + 1) if is_action else around)

    def string_delta(self, key: str, text: str) -> None:
        """More of a text, which is told where its action is known."""
        action = self._actions[-1] if self._actions else None
        if action is None:
            return
        if self._is_at_top(action) and key in NAMING:
            self._name += text
            return
        if self._text is None:
            self._count += 1
            self._text = _WrittenText(key, self._count)
            if not action.name:
                action.early.append(self._text)
        self._text.waiting += text
        if action.name:
            self._tell(action, self._text, is_whole=False)

    def string_ended(self, key: str) -> None:
        """A text is complete; it may be the name of the action."""
        action, text, self._text = self._actions[-1] if self._actions else None, self._text, None
        name, self._name = self._name.strip(), ""
        if action is None:
            return
        if name and name not in KINDS and self._is_at_top(action):
            action.name = name
            for early in action.early:
                self._tell(action, early, is_whole=True)
        elif text is not None and action.name:
            self._tell(action, text, is_whole=True)

    def object_ended(self) -> None:
        """The innermost object or list is complete."""
        self._actions.pop()

    def list_without_actions(self, text: str) -> None:
        """Prose is for nobody."""

    def _is_at_top(self, action: _WrittenAction) -> bool:
        return len(self._actions) == action.depth

    def _tell(self, action: _WrittenAction, text: _WrittenText, *, is_whole: bool) -> None:
        """Report the new part of a text, half a character only at its end."""
        is_said = text.key not in ABOUT if action.name == RETURN else SAYING.get(action.name) == text.key
        has_half = not is_whole and text.waiting and ord(text.waiting[-1]) in FIRST_HALVES
        piece, text.waiting = (text.waiting[:-1], text.waiting[-1]) if has_half else (text.waiting, "")
        if is_said and piece:
            whole = piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self._emit(OutputDelta(action.name, text.key, text.number, whole))
