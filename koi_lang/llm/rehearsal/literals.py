"""Objects and lists as people write them in prose turned into values with references in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

CONSTANTS = {"true": True, "false": False, "null": None}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.S)
_KEY = re.compile(r"[A-Za-z_$][\w$-]*")
_BARE = re.compile(r"[^,{}\[\]\n]+")
_TEMPLATE = re.compile(r"\{\{([^{}]+)\}\}|\$\{([^{}]+)\}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Reference:
    """Words that stand for a value: `args.n`, `the answer`."""

    words: str


def read_literal(text: str) -> Any:
    """A value in JSON, or in the looser form of code: bare keys, shorthand, references, trailing commas.

    Raises:
        ValueError: the text is something else.
    """
    reader = _LiteralReader(text)
    value = reader.value()
    reader.skip()
    if reader.at != len(text):
        raise ValueError(f"unexpected text at {reader.at}")
    return value


class _LiteralReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def eat(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        self.skip()
        found = pattern.match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found.group()

    def value(self) -> Any:
        self.skip()
        if found := _TEMPLATE.match(self.text, self.at):
            self.at = found.end()
            return Reference(next(filter(None, found.groups())).strip())
        if self.eat("{"):
            return self.members()
        if self.eat("["):
            return self.items()
        if quoted := self.match(_STRING):
            return _unquote(quoted)
        return _bare(self.match(_BARE).strip())

    def members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self.eat("}"):
            key, value = self.member()
            members[key] = value
            if not self.eat(",") and self.peek() != "}":
                raise ValueError(f"expected a comma at {self.at}")
        return members

    def member(self) -> tuple[str, Any]:
        quoted = self.match(_STRING)
        key = _unquote(quoted) if quoted else self.match(_KEY)
        if not key:
            raise ValueError(f"expected a key at {self.at}")
        return (key, self.value()) if self.eat(":") else (key, Reference(key))

    def items(self) -> list[Any]:
        items: list[Any] = []
        while not self.eat("]"):
            items.append(self.value())
            if not self.eat(",") and self.peek() != "]":
                raise ValueError(f"expected a comma at {self.at}")
        return items


def _unquote(quoted: str) -> str:
    if quoted[0] == "'":
        quoted = '"' + quoted[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    return str(json.loads(quoted, strict=False))


def _bare(words: str) -> Any:
    if not words:
        raise ValueError("a value is missing")
    if words in CONSTANTS:
        return CONSTANTS[words]
    return json.loads(words) if _NUMBER.fullmatch(words) else Reference(_inner(words))


def _inner(words: str) -> str:
    """`<answer>` is the word inside."""
    return words[1:-1] if words.startswith("<") and words.endswith(">") else words
