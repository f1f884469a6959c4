"""The context of the cursor in a text that is being typed: the declaration around it, and the region."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from koi_lang.compiler.syntax_errors.scanner import scan
from koi_lang.source import Span

DECLARATION = re.compile(
    r"^(?:export[ \t]+)?(?:import|role|team|agent|skill|mcp|prompt|run|test|eval|type)\b", re.MULTILINE | re.IGNORECASE
)
# Of a declaration longer than this only the end is looked at.
MAX_CHARS_READ = 60_000
AGENT = re.compile(r"\bagent\s+(\w+)\s*:\s*(\w+)", re.IGNORECASE)
HANDLER = re.compile(r"\bon\s+(\w+)", re.IGNORECASE)
# A text that a model reads is open at the end of this.
PLAYBOOK_TEXT = re.compile(
    r"\b(?:playbook|prompt\s+\w+\s*(?:\([^)]*\))?\s*=|template\s*:)[^\"']*(?:\"[^\"\n]*\"\s*\+\s*)*$"
)
Region = Literal["top", "item", "code", "text", "prose"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where something is typed.

    Attributes:
        before: the text of the declaration up to the cursor.
        region: between declarations, between the items of an agent or skill, in code, in a text, or in one that a
            model reads.
        agent: the name of the agent around it, and `event` that of its handler; empty for none.
    """

    before: str
    region: Region
    agent: str = ""
    event: str = ""

    @property
    def line(self) -> str:
        """The line up to the cursor."""
        return self.before[self.before.rfind("\n") + 1 :]


def cursor_at(text: str, offset: int) -> Cursor:
    """The cursor at an offset of any text."""
    least = max(0, offset - MAX_CHARS_READ)
    starts = [match.start() for match in DECLARATION.finditer(text, least, offset)]
    before = text[starts[-1] if starts else least : offset]
    agent, events = AGENT.search(before), HANDLER.findall(before)
    return Cursor(before, _region(before), agent[1] if agent else "", events[-1] if agent and events else "")


def _region(before: str) -> Region:
    """The region at the end of a declaration's beginning."""
    found = scan(before, Span(0, len(before)))
    opened = [found.pieces[index].text for index in found.unclosed]
    unclosed = next((piece for piece in found.pieces if piece.kind == "unclosed"), None)
    if unclosed is not None:
        return "prose" if PLAYBOOK_TEXT.search(before[: unclosed.span.start]) else "text"
    if not opened:
        return "top"
    if opened[-1] == "`":
        return "text"
    is_body = len(opened) == 1 and re.match(r"\s*(?:agent|skill)\b", before, re.IGNORECASE) is not None
    return "item" if is_body else "code"
