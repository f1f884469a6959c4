"""Actions offered as native tools, and the texts that calls of them stand for.

An answer is one text of JSON actions, whichever way it came: a call becomes the action that it stands for, and the
action becomes the call again when the conversation is sent anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from koi_lang.llm.images import Image

# Actions that carry out others, as they begin where a tool takes them as they are.
PLANS = re.compile(r'\{\s*"(?:actions|batch|parallel)"')
# An action by its name.
NAMED = re.compile(r'\{"intent":("(?:[^"\\]|\\.)*+")(?=[,}])')
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME_CHARS = 64
# A name as the templates of some models have them write it: `functions.print`, `functions.print:0`,
# `print<|channel|>commentary`, `commentary to=functions.print`.
DECORATED = re.compile(
    r"\s*+(?:[^=]*+(?<=\bto)=)?(?:(?:functions?|tools?|default_api)[./:])?(?P<name>[A-Za-z0-9_-]++)(?::\d+|\(\)|<\|.*)?\s*+",
    re.DOTALL,
)
# Between the parts of a name, as in `Skill__function`.
TOOL_MARK = "__"


@dataclass(frozen=True, slots=True)
class NativeTool:
    """Something that a model may call.

    Attributes:
        name: up to 64 letters, digits, `_` and `-`.
        parameters: JSON Schema of an object.
        opening: the text of the action that a call stands for, up to where its arguments belong; empty where they are
            that text.
        is_nested: whether the arguments are the value that `opening` ends before; else their fields go on with its
            object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    opening: str = ""
    is_nested: bool = False

    def arguments_in(self, text: str) -> str:
        """The arguments of the call that an action stands for, whose text begins with `opening`."""
        rest = text[len(self.opening) :]
        if self.is_nested:
            return rest.removesuffix("}").strip()
        return "{" + rest.removeprefix(",").lstrip() if self.opening else rest


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; `arguments` are JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call, as the model gets it."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


@dataclass(frozen=True)
class ToolSet:
    """Tools that are offered together.

    Attributes:
        control: the actions that carry out others, for which there is no tool; plans may hold them.
        unlisted: tools that are understood, in plans, too, and not offered: there are too many, what they take is
            not known in this process, or they are not permitted.
        one_by_one: whether an answer is to call no more than one.
    """

    tools: tuple[NativeTool, ...]
    control: tuple[str, ...] = ()
    unlisted: tuple[NativeTool, ...] = ()
    one_by_one: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, NativeTool]:
        """The tools by their names, also those that are not offered."""
        return {tool.name: tool for tool in (*self.tools, *self.unlisted)}

    @cached_property
    def _by_opening(self) -> Mapping[str, NativeTool]:
        """Where one begins as another one does, the longer one first."""
        return {tool.opening: tool for tool in sorted(self.tools, key=lambda tool: -len(tool.opening))}

    def call_of(self, action: str) -> ToolCall | None:
        """The call that the text of an action stands for; None where it could not have been made by one.

        A model may have called what it was not offered.
        """
        for opening, tool in self._by_opening.items():
            if action.startswith(opening) if opening else PLANS.match(action):
                return ToolCall(tool.name, tool.arguments_in(action))
        found = NAMED.match(action)
        return None if found is None else _undeclared_call(found, action)

    def calls_of(self, actions: Iterable[str]) -> tuple[ToolCall, ...]:
        """The calls that several texts stand for; none where one of them could not have been made by a call."""
        calls = [self.call_of(action) for action in actions]
        return tuple(call for call in calls if call is not None) if None not in calls else ()


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools of a request to models that call tools.

    Attributes:
        system: the system text for them.
    """

    system: str
    set: ToolSet


def plain_name(name: str) -> str:
    """The name of a tool without the words of a template around it."""
    found = DECORATED.fullmatch(name)
    return name if found is None else found["name"]


def fit_name(name: str) -> str:
    """A name of which providers take every character."""
    return NOT_IN_NAMES.sub("_", name)


def _undeclared_call(found: re.Match[str], action: str) -> ToolCall:
    name = fit_name(json.loads(found[1]))[:MAX_NAME_CHARS] or "_"
    return ToolCall(name, NativeTool(name, "", {}, found[0]).arguments_in(action))
