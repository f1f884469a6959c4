"""Delegation: the members that an agent can reach, the one that an intent names, and its call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.runtime.actions.registered import ActionContext, ActionFunction, ActionKind
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.agents.team import note_result, peers_of
from koi_lang.runtime.budget.limits import BudgetAccount
from koi_lang.runtime.context import delegating
from koi_lang.runtime.guards.write_quota import count_written, no_quota
from koi_lang.runtime.mcp.remote import RemoteAgent
from koi_lang.runtime.routing.lexical import MeaningScores, Route, RouteMatch, rank
from koi_lang.runtime.schema import Schema

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort, CallPort

# Words that fit so well are a name, perhaps with a slip, or all of the event's name and six tenths of the intent;
# nobody is asked what they mean.
SURE = 0.8
# The fields of what is delegated; what goes on in the background gives a call at once.
PAYLOAD = {
    "type": "object",
    "properties": {"data": {}, "background": {"type": "boolean"}},
    "required": ["data"],
}
# Agent and event of everything that is being carried out around the current code; parallel branches have their own.
_under_way: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("koi_under_way", default=())


class NobodyError(AgentError):
    """An intent names nobody that an agent can reach."""


@dataclass(frozen=True, slots=True)
class Delegate:
    """A team member under its key."""

    key: str
    agent: type[Agent]

    @property
    def events(self) -> list[str]:
        """The events it handles."""
        return list(self.agent.about.handlers)


def reachable(agent: AgentPort) -> list[Delegate]:
    """The members of all teams of an agent that have handlers, each agent once, without itself."""
    found: dict[type[Agent], Delegate] = {}
    for member in _members(agent):
        found.setdefault(member.agent, member)
    return list(found.values())


def remote_tools(agent: AgentPort) -> dict[str, tuple[Mcp, str]]:
    """The members that are tools of MCP servers, by address: the server and the name of the tool."""
    return {
        member.agent.about.name: member.agent.origin
        for member in _members(agent)
        if issubclass(member.agent, RemoteAgent)
    }


def _members(agent: AgentPort) -> Iterator[Delegate]:
    """The members under all their keys."""
    for team in peers_of(agent.run, agent).teams:
        for key, member in team.members().items():
            if not isinstance(member, str) and member is not type(agent) and member.about.handlers:
                yield Delegate(key, member)


async def resolve(agent: AgentPort, intent: str, spending: BudgetAccount) -> tuple[type[Agent], str]:
    """The member and event that an intent names.

    A qualified name (`member::event`, `member.event`) reaches that member and no other. Otherwise the first member
    that handles an event of that name, in any spelling of words; then the one whose event or description is nearest
    to the intent: in meaning where a model for embeddings is configured and no words fit plainly, else in words.

    Args:
        spending: what that model takes is counted there.

    Raises:
        AgentError: nobody is meant; the message lists whom the agent can reach.
        LimitReachedError: the budget does not allow to ask that model.
    """
    members = reachable(agent)
    search = _DelegateSearch(agent, spending)
    named = _split_qualified(list(_members(agent)), intent)
    if named is not None:
        return named[0].agent, await _event_of(*named, search)
    for member in members:
        event = _same(member.events, intent)
        if event is not None:
            return member.agent, event
    liked = await search.best(members, intent) if "::" not in intent else None
    if liked is not None:
        return liked
    known = [f"{member.key}::{event}" for member in members for event in member.events]
    raise NobodyError(f"nobody `{agent.name}` can reach handles `{intent}`", help=suggestion(intent, known, "target"))


def payload_schema(agent: AgentPort, intent: str) -> Schema:
    """The payload schema of a plainly named event; empty (anything) for other names."""
    named = _split_qualified(list(_members(agent)), intent)
    meant = [(member, intent) for member in reachable(agent)] if named is None else [named]
    events = ((member, _same(member.events, wanted)) for member, wanted in meant)
    found = next(((member, event) for member, event in events if event is not None), None)
    return {} if found is None else found[0].agent.about.handlers[found[1]].schema


def lift_background(agent: AgentPort, intent: str, payload: Any) -> dict[str, Any]:
    """The fields of a delegation whose `background` stands among those of the payload, which declares none."""
    if isinstance(payload, dict) and isinstance(payload.get("background"), bool):
        declared = payload_schema(agent, intent).get("properties", {})
        if declared and "background" not in declared:
            rest = {name: value for name, value in payload.items() if name != "background"}
            return {"data": rest, "background": payload["background"]}
    return {"data": payload}


@dataclass(frozen=True, slots=True)
class _DelegateSearch:
    """A search by likeness on behalf of an agent."""

    agent: AgentPort
    spending: BudgetAccount

    async def best(self, members: Sequence[Delegate], intent: str) -> tuple[type[Agent], str] | None:
        """The event of some members that is most like an intent; None where none is."""
        offered = [(offer, member.agent) for member in members for offer in _offers(member)]
        match = await self._nearest(intent, [offer for offer, _ in offered])
        if match is None:
            return None
        return next(agent for offer, agent in offered if offer is match.offer), match.offer.event

    async def _nearest(self, intent: str, offers: Sequence[Route]) -> RouteMatch | None:
        in_words = rank(intent, offers, limit=1)
        if in_words and in_words[0].score >= SURE:
            return in_words[0]
        meaning = self.agent.run.meaning
        matches = await meaning.rank(self.agent, intent, offers, self.spending)
        found = next(iter(matches + in_words), None)
        return found or await meaning.choose(self.agent, intent, offers, self.spending)


@dataclass(frozen=True, slots=True)
class MemberScore:
    """How near an event of a member is to an intent, from 0 to 1.

    Attributes:
        name: `member::event`.
        words: by what both say; `THRESHOLD` makes a match.
        meaning: by a model for embeddings; None where none is configured.
    """

    name: str
    words: float
    meaning: float | None


async def score_members(agent: AgentPort, intent: str) -> tuple[list[MemberScore], MeaningScores | None]:
    """Every event that an agent can reach with its scores, and those of the embedding model if there is one."""
    offers = [offer for member in reachable(agent) for offer in _offers(member)]
    meaning = await agent.run.meaning.score(agent, intent, offers) if offers else None
    near = {} if meaning is None else meaning.by_name
    matches = rank(intent, offers, limit=None, min_score=0.0)
    return [MemberScore(each.offer.name, each.score, near.get(each.offer.name)) for each in matches], meaning


def _split_qualified(members: Sequence[Delegate], intent: str) -> tuple[Delegate, str] | None:
    """The member at the beginning of a qualified name, and the rest of the name."""
    for separator in ("::", "."):
        name, found, wanted = intent.partition(separator)
        member = _find_member(members, name) if found else None
        if member is not None:
            return member, wanted
    return None


async def _event_of(member: Delegate, wanted: str, search: _DelegateSearch) -> str:
    """The event of a member that is wanted. Raises AgentError."""
    event = _same(member.events, wanted)
    if event is not None:
        return event
    liked = await search.best([member], wanted)
    if liked is None:
        help = suggestion(wanted, member.events, "event")
        raise AgentError(f"`{member.key}` does not handle `{wanted}`", help=help)
    return liked[1]


def _find_member(members: Sequence[Delegate], name: str) -> Delegate | None:
    """The member of a name: its key, else the name of its agent, in any letter case."""
    wanted = name.strip().lower()
    by_key = [member for member in members if member.key.lower() == wanted]
    by_name = [member for member in members if member.agent.about.name.lower() == wanted]
    return next(iter(by_key + by_name), None)


def _offers(member: Delegate) -> list[Route]:
    about = member.agent.about
    return [
        Route(
            member.key, handler.event, handler.affordance or about.playbooks.get(handler.event, "") or about.affordance
        )
        for handler in about.handlers.values()
    ]


def _same(events: Sequence[str], wanted: str) -> str | None:
    """The event of a name; where none is spelt just so, letter case and marks between words do not count."""
    if wanted in events:
        return wanted
    return next((event for event in events if _letters(event) == _letters(wanted)), None)


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


# ---------------------------------------------------------------- as an action


def as_unresolved(intent: str) -> ActionKind:
    """The action of handing something to a team member, before it is known to which one."""
    return _delegate_kind(intent, _call_nobody)


async def resolve_kind(call: CallPort, intent: str) -> ActionKind:
    """The action of handing something to the member that an intent names. Raises as `resolve` does.

    Raises:
        AgentError: that member is being asked the same already, around the current code.
    """
    agent = call.agent
    member, event = await resolve(agent, intent, call.spending)
    name = member.about.name
    around = (*_under_way.get(), (agent.name, call.event))
    if (name, event) in around:
        raise AgentError(f"Infinite loop detected: `{name}.{event}` is already being carried out")
    key = next((other.key for other in reachable(agent) if other.agent is member), name)
    return _delegate_kind(f"{key}::{event}", partial(_call_member, member, event))


def _delegate_kind(name: str, function: ActionFunction) -> ActionKind:
    return ActionKind(name, "delegate", "", PAYLOAD, function, inside=True)


async def _call_nobody(context: ActionContext, data: Any, background: bool = False) -> Any:
    raise AssertionError("nobody was looked for who could do it")


async def _call_member(
    member: type[Any], event: str, context: ActionContext, data: Any, background: bool = False
) -> Any:
    """Have a member handle an event, with fresh memory; in the background that gives the id of the call."""
    call = context.execution
    assert call is not None, "code sends what it delegates"
    around = (*_under_way.get(), (context.agent.name, call.event), (member.about.name, event))
    token, under_way = delegating.set(call), _under_way.set(around)
    count_written(data)
    try:
        if background:
            started = context.run.calls.start(
                _carry_out(context, member, event, data), f"{member.about.name}.{event}", context.agent.name, tells=True
            )
            return {"call": started.id, "state": started.call_state}
        value = await _carry_out(context, member, event, data)
    finally:
        _under_way.reset(under_way)
        delegating.reset(token)
    count_written(value)
    return value


async def _carry_out(context: ActionContext, member: type[Any], event: str, data: Any) -> Any:
    with no_quota():
        result = await context.run.call(member, event, data)
    note_result(context.agent, member, result)
    return result
