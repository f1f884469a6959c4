"""Tools of servers as lines of a prompt: whole while there is room, else only their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.runtime.mcp.safe_text import one_line, quote_text
from koi_lang.runtime.mcp.tools import Tool

# Characters for all that prompts say of tools: with its heading about 5,000 tokens.
ROOM = 19_800
MAX_PROBLEM_CHARS = 1000
MIN_DESCRIPTION_CHARS = 20


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """The tools of one server, or the reason why it has none now.

    Attributes:
        problem: why it cannot be used; empty when it can.
        resources: whether it has documents to read; `prompts` likewise.
    """

    server: str
    tools: Sequence[Tool] = ()
    problem: str = ""
    resources: bool = False
    prompts: bool = False


@dataclass(frozen=True, slots=True)
class MemberTool:
    """A tool that is a member of a team; without the tool, why it cannot be used."""

    tool: Tool | None
    problem: str = ""


def as_data(offers: Sequence[ServerCatalog], members: Mapping[str, MemberTool]) -> dict[str, Any]:
    """The parts of some offers for prompts, as JSON for the journal.

    Args:
        members: tools that are members of a team, by address.
    """
    room = ROOM // max(1, len(members))
    return {
        "lines": lines(offers),
        "problems": [line for offer in offers if offer.problem for line in _lines_of(offer, ROOM)],
        "names": {offer.server: [tool.name for tool in offer.tools] for offer in offers if offer.tools},
        "resources": any(offer.resources for offer in offers),
        "prompts": any(offer.prompts for offer in offers),
        "members": {address: _of_member(member, room) for address, member in members.items()},
    }


def _of_member(member: MemberTool, room: int) -> str:
    """The parameters of a tool and its description."""
    tool = member.tool
    if tool is None:
        return f"() {quote_text(member.problem or 'the server has no such tool')}"
    fitting = tool.line if len(tool.line) <= room else tool.short_line
    return fitting.removeprefix(f"{tool.server}.{one_line(tool.name)}")


def lines(offers: Sequence[ServerCatalog]) -> list[str]:
    """A line for each tool that there is room for, a few for the names of the others, and one for each problem.

    Servers share the room evenly; what one does not need is for the others.
    """
    by_server: dict[int, list[str]] = {}
    left = ROOM
    for number in sorted(range(len(offers)), key=lambda number: _full_length(offers[number])):
        by_server[number] = _lines_of(offers[number], left // (len(offers) - len(by_server)))
        left -= sum(len(line) + 1 for line in by_server[number])
    return [line for number in range(len(offers)) for line in by_server[number]]


def _full_length(offer: ServerCatalog) -> int:
    return sum(len(tool.line) + len("- \n") for tool in offer.tools)


def _lines_of(offer: ServerCatalog, room: int) -> list[str]:
    if offer.problem:
        return [f"- {offer.server} cannot be used now: {one_line(offer.problem, MAX_PROBLEM_CHARS)}"]
    if not offer.tools:
        return [f"- {offer.server} offers no tools."]
    if _full_length(offer) <= room:
        return [f"- {tool.line}" for tool in offer.tools]
    return _choose_tools(offer, room)


def _choose_tools(offer: ServerCatalog, room: int) -> list[str]:
    """The shortest tools of a server in full, and the names of all others."""
    head = f"### {offer.server}: {len(offer.tools)} tools; get_mcp_tool_info gives the schema of one, or finds some"
    left = room - len(head) - 1 - sum(map(_room_of_name, offer.tools))
    whole, left = _whole(offer.tools, left)
    rest = [tool for tool in offer.tools if tool.name not in whole]
    lines = [f"- {whole[tool.name]}" for tool in offer.tools if tool.name in whole]
    return [head, *lines, *(_name_tools(rest, left + sum(map(_room_of_name, rest))))]


def _whole(tools: Sequence[Tool], left: int) -> tuple[dict[str, str], int]:
    """Lines with whole schemas, shortest first while there is room, and the room that is left.

    Descriptions are made whole when no more tools fit.
    """
    lines: dict[str, str] = {}
    for tool in sorted(tools, key=lambda tool: len(tool.short_line)):
        more = len(tool.short_line) + len("- \n") - _room_of_name(tool)
        if more > left:
            break
        lines[tool.name], left = tool.short_line, left - more
    for tool in sorted(tools, key=lambda tool: len(tool.line)):
        more = len(tool.line) - len(tool.short_line)
        if tool.name in lines and more <= left:
            lines[tool.name], left = tool.line, left - more
    return lines, left


def _name_tools(tools: Sequence[Tool], room: int) -> list[str]:
    """The names of tools, with as much of their descriptions as there is room for."""
    names = [_name(tool) for tool in tools]
    said = (room - sum(len(name) + len("- : \n") for name in names)) // max(1, len(names))
    if said >= MIN_DESCRIPTION_CHARS:
        described = zip(names, tools, strict=True)
        return [f"- {name}: {one_line(tool.description, said)}" for name, tool in described]
    return [", ".join(_as_many(names, room))] if names else []


def _name(tool: Tool) -> str:
    return one_line(tool.name, 80)


def _room_of_name(tool: Tool) -> int:
    return len(_name(tool)) + len(", ")


def _as_many(names: Sequence[str], room: int) -> Iterator[str]:
    """The names that there is room for, and how many are left out."""
    rest = f"and {len(names)} more, which get_mcp_tool_info finds by a word"
    left = room if sum(len(name) + 2 for name in names) <= room else room - len(rest)
    for number, name in enumerate(names):
        left -= len(name) + 2
        if left < 0:
            yield rest.replace(str(len(names)), str(len(names) - number))
            return
        yield name


def search_tools(tools: Sequence[Tool], words: str) -> list[Tool]:
    """The tools that a word or several fit: first those with all of them in their name, then in their description."""
    wanted = words.lower().split()
    named = [tool for tool in tools if all(word in tool.name.lower() for word in wanted)]
    described = [tool for tool in tools if all(word in f"{tool.name} {tool.description}".lower() for word in wanted)]
    return [*named, *(tool for tool in described if tool not in named)]
