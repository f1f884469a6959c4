"""What servers offer to the lines of a prompt; many tools are only named, so that they take little of its room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.runtime.mcp.text import one_line
from koi_lang.runtime.mcp.tools import Tool

MOST_IN_FULL = 40
# Characters for the names of tools that are not described in full; with all around them about 2,000 tokens.
ROOM = 7000
MOST_TOLD = 1000
LEAST_SAID = 20


@dataclass(frozen=True, slots=True)
class Offer:
    """What one server has, or why it has nothing now.

    Attributes:
        problem: why it cannot be used; empty when it can.
        resources: whether it has documents to read; `prompts` likewise.
    """

    server: str
    tools: Sequence[Tool] = ()
    problem: str = ""
    resources: bool = False
    prompts: bool = False


def as_data(offers: Sequence[Offer], members: Mapping[str, str]) -> dict[str, Any]:
    """What prompts need of some offers, as JSON, so that a journal can keep it.

    Args:
        members: what there is to say of tools that are members of a team, by address.
    """
    return {
        "lines": lines(offers),
        "resources": any(offer.resources for offer in offers),
        "prompts": any(offer.prompts for offer in offers),
        "members": dict(members),
    }


def lines(offers: Sequence[Offer]) -> list[str]:
    """A line for each tool, or a few for the names of many, and one for each server that cannot be used."""
    if sum(len(offer.tools) for offer in offers) <= MOST_IN_FULL:
        return [line for offer in offers for line in _in_full(offer)]
    total = sum(len(offer.tools) for offer in offers)
    return [line for offer in offers for line in _in_short(offer, ROOM * len(offer.tools) // total)]


def _in_full(offer: Offer) -> list[str]:
    if offer.problem:
        return [f"- {offer.server} cannot be used now: {one_line(offer.problem, MOST_TOLD)}"]
    return [f"- {tool.line}" for tool in offer.tools] or [f"- {offer.server} offers no tools."]


def _in_short(offer: Offer, room: int) -> list[str]:
    """The names of the tools of a server, with as much of their descriptions as there is room for."""
    if not offer.tools:
        return _in_full(offer)
    head = f"### {offer.server}: {len(offer.tools)} tools; get_mcp_tool_info gives the parameters of one, or finds some"
    names = [one_line(tool.name, 80) for tool in offer.tools]
    said = (room - sum(len(name) + len('- : ""\n') for name in names)) // len(names)
    if said >= LEAST_SAID:
        described = zip(names, offer.tools, strict=True)
        return [head, *(f"- {name}: {one_line(tool.description, said)}" for name, tool in described)]
    return [head, ", ".join(_as_many(names, room))]


def _as_many(names: Sequence[str], room: int) -> Iterator[str]:
    """The names that there is room for, and how many are left out."""
    for number, name in enumerate(names):
        room -= len(name) + 2
        if room < 0:
            yield f"and {len(names) - number} more, which get_mcp_tool_info finds by a word"
            return
        yield name


def found(tools: Sequence[Tool], words: str) -> list[Tool]:
    """The tools that a word or several fit: first those with all of them in their name, then in their description."""
    wanted = words.lower().split()
    named = [tool for tool in tools if all(word in tool.name.lower() for word in wanted)]
    described = [tool for tool in tools if all(word in f"{tool.name} {tool.description}".lower() for word in wanted)]
    return [*named, *(tool for tool in described if tool not in named)]
