"""Expressions in data that a model is told: where it repeats them they are text, so that no data has them computed.

Only what stands between the brackets of a hole counts, whatever blanks and escapes are in it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from koi_lang.llm.messages import Message
from koi_lang.llm.transcript import MessageLog, Messages
from koi_lang.runtime.playbook.holes import all_holes, texts_in
from koi_lang.runtime.playbook.placeholders import PlaybookMessage
from koi_lang.system.interpolation import Rendered

# An expression that is not complete where its text ends or is cut off, and what marks it among the others.
BEGUN = re.compile(r"""(?:\$\{|\{\{)\s*([\w$.?'\[\]-]{1,200})(?=\\*+["…]|\Z)""")
MAX_START_CHARS, OPEN = 200, "…"
# Marks a whole text among expressions: where one ends that has braces in quotes depends on the escapes around it.
WHOLE = "\ufdd6"
QUOTES = re.compile("[\"'`]")
# Data is told as JSON, which may hold further JSON: what is written there with and without escapes is the same.
ESCAPED_BRACKET = re.compile(r"\\+u00(24|7[bBdD])")
ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf])?")
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FeedbackMessage(Message):
    """A message with feedback on an answer.

    Attributes:
        told: the expressions in what came in; others in its text are the model's own.
    """

    told: frozenset[str] = NOTHING


class ToldData:
    """The values known to a model when it writes an answer.

    Args:
        tools: what others have written before the playbook: MCP servers of their tools, files of the project.
        playbook: what its author wrote in it is no data.
    """

    def __init__(self, messages: Messages, tools: Mapping[str, Any], playbook: Rendered) -> None:
        self._messages = messages
        self._tools = tools
        self._playbook = playbook

    def holds(self, expression: str) -> bool:
        """Whether an expression stands in data, or begins like one that is not complete there."""
        key = _key(expression)
        if self.is_of_author(expression):
            return False
        known = _INDEXES.setdefault(self._messages.log, _Index())
        known.read(self._messages)
        texts = [*known.texts(len(self._messages)), *(each for each in self._of_tools if each.startswith(WHOLE))]
        if "}" in key and QUOTES.search(key) and any(f"{{{key}" in text for text in texts):
            return True
        begun = (f"{key[:length]}{OPEN}" for length in range(1, min(len(key), MAX_START_CHARS) + 1))
        return any(known.has(each, len(self._messages)) or each in self._of_tools for each in (key, *begun))

    def is_of_author(self, expression: str) -> bool:
        """Whether the author of the playbook has written an expression in it."""
        return _key(expression) in self._of_author

    def is_filled_in(self, expression: str) -> bool:
        """Whether the playbook has the value of an expression in its text."""
        return _key(expression) in self._filled_in

    @cached_property
    def _filled_in(self) -> frozenset[str]:
        return frozenset(_key(part.name) for part in self._playbook.parts if not isinstance(part, str))

    def is_of_tools(self, expression: str) -> bool:
        """Whether a server has written an expression in its tools, perhaps as the name of one."""
        return _key(expression) in self._of_tools

    @cached_property
    def _of_author(self) -> frozenset[str]:
        return expressions_of([part for part in self._playbook.parts if isinstance(part, str)])

    @cached_property
    def _of_tools(self) -> frozenset[str]:
        return expressions_in(json.dumps(self._tools, ensure_ascii=False, default=str)) if self._tools else NOTHING


class _Index:
    """The expressions in the messages of a log, each with the number of the first one that tells it."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._texts: list[str] = []
        self._count = 0

    def read(self, messages: Messages) -> None:
        """Read the new messages."""
        for number in range(self._count, len(messages)):
            for key in _told_by(messages[number]) - self._first.keys():
                self._first[key] = number
                if key.startswith(WHOLE):
                    self._texts.append(key)
        self._count = max(self._count, len(messages))

    def texts(self, count: int) -> list[str]:
        """The texts with expressions in one of the first messages."""
        return [text for text in self._texts if self._first[text] < count]

    def has(self, key: str, count: int) -> bool:
        """Whether one of the first messages tells an expression."""
        return self._first.get(key, count) < count


# Messages are read once, however many calls and answers there are.
_INDEXES: WeakKeyDictionary[MessageLog, _Index] = WeakKeyDictionary()


def _told_by(message: Message) -> frozenset[str]:
    if isinstance(message, FeedbackMessage):
        return message.told
    if isinstance(message, PlaybookMessage):
        return NOTHING  # its author wrote it; values stand in other messages
    return expressions_in(message.text) if message.role == "user" else NOTHING


def expressions_in(text: str) -> frozenset[str]:
    """The expressions of a text, in a form that does not change with blanks and escapes."""
    if "\\u00" in text:
        text = ESCAPED_BRACKET.sub(lambda escape: chr(int(escape[1], 16)), text)
    if "${" not in text and "{{" not in text:
        return NOTHING
    whole = {_key(hole[1] or hole[2]) for hole in all_holes(text)}
    texts = {f"{WHOLE}{_key(text)}"} if "}" in text and QUOTES.search(text) else NOTHING
    return frozenset(whole | texts | {_key(begun[1]) + OPEN for begun in BEGUN.finditer(text)})


def expressions_of(value: Any) -> frozenset[str]:
    """Those of all texts in a value."""
    return NOTHING.union(*map(expressions_in, texts_in(value)))


def _key(expression: str) -> str:
    if "\\" in expression:
        expression = ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else "", expression)
    if not expression.isascii():
        expression = unicodedata.normalize("NFKC", expression)
    key = "".join(expression.split())
    return key if key.isprintable() else "".join(filter(str.isprintable, key))
