"""Texts for people that a model is writing, told as events while they grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from koi_lang.events import OutputDelta
from koi_lang.runtime.playbook.action_parsing import ABOUT, KINDS, NAMING

# Actions that say something to people, and the field in which they do; any text that is returned may be for them.
SAYING = {"print": "message", "prompt_user": "question"}
RETURN = "return"
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
