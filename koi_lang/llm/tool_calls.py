"""Native calls of tools, as they arrive, turned into the text of the actions that they stand for."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koi_lang.llm.tools import NativeTool, plain_name

MARK = re.compile(r'["{}\[\]]')
QUOTE = re.compile(r'["\\]')
SHOWN = 200


@dataclass(slots=True)
class JsonEnd:
    """Finds where a JSON object that arrives piece by piece ends; every character is looked at once.

    Attributes:
        has_begun: whether any character of it has come.
        has_ended: whether it is complete.
    """

    has_begun: bool = False
    has_ended: bool = False
    _depth: int = 0
    _in_string: bool = False
    _is_escaped: bool = False

    def find(self, piece: str) -> int:
        """How many characters of the next piece belong to the object."""
        at = 0
        while at < len(piece) and not self.has_ended:
            at = self._skip_string(piece, at) if self._in_string else self._next_mark(piece, at)
        return at

    def _next_mark(self, piece: str, at: int) -> int:
        found = MARK.search(piece, at)
        self.has_begun |= bool(piece[at : len(piece) if found is None else found.end()].strip())
        if found is None:
            return len(piece)
        self._in_string = found[0] == '"'
        self._depth += (found[0] in "{[") - (found[0] in "}]")
        self.has_ended = self._depth <= 0 and not self._in_string
        return found.end()

    def _skip_string(self, piece: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped, at = False, at + 1
        found = QUOTE.search(piece, at)
        if found is None:
            return len(piece)
        if found[0] == '"':
            self._in_string = False
            self.has_ended = self._depth <= 0
            return found.end()
        self._is_escaped = found.end() == len(piece)
        return min(found.end() + 1, len(piece))


@dataclass(slots=True)
class CallText:
    """One call as the text of an action.

    Attributes:
        id: as the provider says it; nothing relies on it.
        is_broken: whether its arguments are no single JSON value; what follows it in the answer is not read.
    """

    tool: NativeTool
    id: str = ""
    is_broken: bool = False
    _end: JsonEnd = field(default_factory=JsonEnd)
    _other: str = ""
    _has_opened: bool = False
    _waits_for_field: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are."""
        return self._end.has_ended

    @property
    def has_arguments(self) -> bool:
        """Whether anything of them has been read."""
        return self._end.has_begun or bool(self._other)

    def add(self, arguments: str) -> str:
        """Add arguments; returns the new text. Incomplete objects are held back."""
        if not self._end.has_begun:
            arguments = arguments.lstrip() if not self._other else arguments
            if self._other or not arguments.startswith("{"):
                self._other += arguments
                return ""
        return "" if self.is_broken else self._add_fields(arguments)

    def _add_fields(self, arguments: str) -> str:
        taken = arguments[: self._end.find(arguments)]
        rest = arguments[len(taken) :].strip()
        text = self._write(taken)
        if rest:
            self.is_broken = True
            text += json.dumps(rest[:SHOWN])  # a text beside actions is refused
        return text

    def finish(self) -> str:
        """The end of its text, once nothing more of it comes."""
        text = "" if self._end.has_begun or self.is_broken else self._add_fields(_as_object(self._other))
        self.is_broken |= not self._end.has_ended
        return text

    def _write(self, taken: str) -> str:
        """A part of the arguments where it belongs; the fields of an action follow its name."""
        text = ""
        if not self._has_opened:
            self._has_opened = True
            self._waits_for_field = bool(self.tool.opening) and not self.tool.is_nested
            text, taken = self.tool.opening, taken.lstrip()[self._waits_for_field :]
        if self._waits_for_field and (taken := taken.lstrip()):
            self._waits_for_field = False
            text += "" if taken.startswith("}") else ","
        is_end = bool(taken) and self._end.has_ended and self.tool.is_nested
        return text + taken + "}" * is_end


def _as_object(arguments: str) -> str:
    """Arguments that are no object as one: none at all, JSON within JSON, or a single value; else as they are."""
    try:
        value = json.loads(arguments.strip() or "null")
        if isinstance(value, str):
            value = json.loads(value)
    except (ValueError, RecursionError):
        return "{" + arguments
    fields = {} if value is None else value if isinstance(value, dict) else {"data": value}
    return json.dumps(fields, ensure_ascii=False)


class CallWriter:
    """The calls of an answer, in the order in which they began, as one text.

    A call that begins before the one in front of it is complete is kept until that one is.

    Args:
        tools: those that were offered, by name. A name that is not among them is taken for that of an action.
    """

    def __init__(self, tools: Mapping[str, NativeTool]) -> None:
        self._tools = tools
        self._calls: dict[object, CallText] = {}
        self._kept: dict[object, list[str]] = {}
        # Keys of calls that are not written to their end, in the order in which they began.
        self._order = deque[object]()
        self.has_called = False

    def call(self, key: object, name: str, id: str = "") -> None:
        """Begin a call; `key` identifies its pieces."""
        self.has_called = True
        self._calls[key] = CallText(self._tool(name), id)
        self._kept[key] = []
        self._order.append(key)

    def add_name(self, key: object, name: str) -> None:
        """More of the name of a call, or that name again: many servers repeat it with each piece of the arguments."""
        call = self._calls[key]
        known = call.tool.name
        if plain_name(name) == known or call.has_arguments or "".join(self._kept[key]).strip():
            return
        whole = known + name
        if whole in self._tools or known not in self._tools:
            call.tool = self._tool(name if name in self._tools and whole not in self._tools else whole)

    def _tool(self, name: str) -> NativeTool:
        """The tool of a name, with words of a template around it or without; else an action that was not offered."""
        plain = name if name in self._tools else plain_name(name)
        return self._tools.get(plain) or make_undeclared(plain)

    def get(self, key: object) -> CallText | None:
        """The call of a key; None where none has begun."""
        return self._calls.get(key)

    def add(self, key: object, arguments: str) -> str:
        """More of the arguments of a call; gives the text that can be read now."""
        self._kept[key].append(arguments)
        return "".join(self._write())

    def finish(self) -> str:
        """The text of all calls that are left, once nothing more of the answer comes."""
        return "".join(self._write(is_end=True))

    def _write(self, *, is_end: bool = False) -> Iterator[str]:
        """The held-back text of the calls, up to the first open one."""
        while self._order:
            call, pieces = self._calls[self._order[0]], self._kept[self._order[0]]
            yield from map(call.add, pieces)
            pieces.clear()
            is_over = is_end or (call.is_complete and len(self._order) > 1)
            if is_over:
                yield call.finish()
            if call.is_broken or not is_over:
                return
            self._order.popleft()


def make_undeclared(name: str) -> NativeTool:
    """The tool for a name that was not offered: an action."""
    return NativeTool(name, "", {}, '{"intent":' + json.dumps(name, ensure_ascii=False))
