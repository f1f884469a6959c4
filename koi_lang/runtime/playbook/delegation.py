"""Who a delegate action is for: the members an agent can reach, and the one an intent names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.runtime.agents.agent import Agent


@dataclass(frozen=True, slots=True)
class Reachable:
    """A team member under its key."""

    key: str
    agent: type[Agent]

    def is_called(self, name: str) -> bool:
        """Whether a name means this member: its key or its agent's name, in any letter case."""
        return name.lower() in (self.key.lower(), self.agent.about.name.lower())


def reachable(agent: Agent) -> list[Reachable]:
    """The members of all teams of an agent that have handlers, each agent once, without itself."""
    found: dict[type[Agent], Reachable] = {}
    for member in _members(agent):
        if member.agent is not type(agent) and member.agent.about.handlers:
            found.setdefault(member.agent, member)
    return list(found.values())


def _members(agent: Agent) -> Iterator[Reachable]:
    for team in agent.peers.teams:
        for key, member in team.members().items():
            if not isinstance(member, str):
                yield Reachable(key, member)


def resolve(agent: Agent, intent: str) -> tuple[type[Agent], str]:
    """The member and event that an intent names: `member::event`, `member.event`, or an event one of them handles.

    Raises:
        AgentError: nobody is meant; the message lists whom the agent can reach.
    """
    members = reachable(agent)
    for separator in ("::", "."):
        name, found, event = intent.partition(separator)
        named = next((member for member in members if found and member.is_called(name)), None)
        if named is not None:
            return named.agent, _event(named, event)
    for member in members:
        for event in member.agent.about.handlers:
            if _letters(event) == _letters(intent):
                return member.agent, event
    known = [f"{member.key}::{event}" for member in members for event in member.agent.about.handlers]
    raise AgentError(f"nobody `{agent.name}` can reach handles `{intent}`", help=suggestion(intent, known, "target"))


def _event(member: Reachable, wanted: str) -> str:
    handlers = list(member.agent.about.handlers)
    found = next((event for event in handlers if _letters(event) == _letters(wanted)), None)
    if found is None:
        raise AgentError(f"`{member.key}` does not handle `{wanted}`", help=suggestion(wanted, handlers, "event"))
    return found


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
