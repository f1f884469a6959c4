"""Teams and queries: the members for an event, and sends to one or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, SendTimeoutError
from koi_lang.events import TimedOut
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Role, Team
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.concurrency.tasks import gather
from koi_lang.runtime.host import clip_text
from koi_lang.runtime.narrowing import narrowed_to, require_bounds, require_role
from koi_lang.runtime.replay.error_records import data_of
from koi_lang.runtime.replay.location import enter
from koi_lang.runtime.replay.ordering import LATE

if TYPE_CHECKING:
    from koi_lang.runtime.background_calls import BackgroundCall
    from koi_lang.runtime.ports import AgentPort, RunPort

# Of a name that nobody has.
MAX_SHOWN_CHARS = 60
Select = Literal["any", "all", ""]


@dataclass(frozen=True, slots=True)
class Query:
    """A question for agents of some teams, narrowed step by step: `.event("e").role(R).any()`.

    Attributes:
        bounds: the roles that what is sent is narrowed to.
    """

    run: RunPort
    teams: tuple[Team, ...]
    wanted: str = ""
    of_role: Role | None = None
    select: Select = ""
    bounds: tuple[Role, ...] = ()
    __koi_members__: ClassVar[Mapping[str, str]] = {
        "event": "event",
        "role": "role",
        "as": "bounded_by",
        "any": "any",
        "all": "all",
        "execute": "execute",
    }
    __koi_kind__: ClassVar[str] = "a choice of peers"

    def __repr__(self) -> str:
        event = f"event {self.wanted}" if self.wanted else ""
        role = f"role {self.of_role.name}" if self.of_role is not None else ""
        return f"[Team: {', '.join(part for part in (*(team.name for team in self.teams), event, role) if part)}]"

    def event(self, name: str) -> Query:
        """Only agents that handle an event."""
        return replace(self, wanted=name)

    def role(self, role: Role) -> Query:
        """Only agents of a role."""
        return replace(self, of_role=role)

    def bounded_by(self, role: Role) -> Query:
        """The query with its sends narrowed to a role. Raises AgentError for an invalid role."""
        return replace(self, bounds=(*self.bounds, require_role(role)))

    def any(self) -> Query:
        """The first of them."""
        return replace(self, select="any")

    def all(self) -> Query:
        """All of them, at the same time."""
        return replace(self, select="all")

    def candidates(self) -> list[AgentPort]:
        """The live agents that match, in declaration order, each once. Raises AgentError when there is none."""
        found = list(dict.fromkeys(self._matching()))
        if not found:
            raise AgentError(self._nobody())
        return found

    def _matching(self) -> Iterable[AgentPort]:
        for team in self.teams:
            for member in team.members().values():
                if not isinstance(member, str) and self.wanted in member.about.handlers and self._has_role(member):
                    yield self.run.agent(member)

    def _has_role(self, member: type[Any]) -> bool:
        return self.of_role is None or member.about.role().name == self.of_role.name

    def _nobody(self) -> str:
        where = ", ".join(f"`{team.name}`" for team in self.teams)
        among = f"no agent of {where}" if where else "there is no team, so nobody"
        filtered = f" with the role `{self.of_role.name}`" if self.of_role else ""
        return f"{among}{filtered} handles `{self.wanted}`"

    async def execute(self, payload: Any = undefined) -> Any:
        """Send the payload; one result for `any`, a list in declaration order for `all`."""
        if not self.select:
            raise AgentError(f"a send of `{self.wanted}` must say whom it is for", help="add `.any()` or `.all()`.")
        require_bounds("delegate", f"sending `{self.wanted}`")
        found = self.candidates()
        with narrowed_to(*self.bounds):
            if self.select == "any":
                return await found[0].handle(self.wanted, payload)
            return await gather(agent.handle(self.wanted, payload) for agent in found)


def peers_of(run: RunPort, agent: AgentPort | None, team: Team | None = None) -> Query:
    """A query over the teams an agent uses, else over the first that lists it; or over one team it can reach.

    Raises:
        AgentError: it cannot reach that team.
    """
    reachable = _teams_of(run, agent)
    if team is None:
        return Query(run, reachable)
    if agent is not None and team not in reachable:
        known = ", ".join(f"`{other.name}`" for other in reachable) or "none"
        help = f"write `uses team {team.name}` in `{agent.name}`; its teams are: {known}."
        raise AgentError(f"`{agent.name}` has no access to the team `{team.name}`", help=help)
    return Query(run, (team,))


def _teams_of(run: RunPort, agent: AgentPort | None) -> tuple[Team, ...]:
    if agent is None:
        return ()
    return tuple(agent.about.teams()) or tuple(team for team in run.teams() if team.lists(type(agent)))[:1]


def message_targets(run: RunPort, agent: AgentPort) -> dict[str, str]:
    """The agents that an agent may tell something, by the keys of its teams: their names, without its own."""
    found: dict[str, str] = {}
    for team in peers_of(run, agent).teams:
        for key, member in team.members().items():
            if not isinstance(member, str) and member is not type(agent) and member.about.handlers:
                found.setdefault(key, member.about.name)
    return found


def message_target(run: RunPort, agent: AgentPort, wanted: str) -> str:
    """The name of the agent that a key or a name means, which may also be one that has told the agent something.

    Raises:
        AgentError: it is the agent itself, or nobody that it may tell anything.
    """
    targets = message_targets(run, agent)
    names = {**targets, **{name: name for name in (*targets.values(), *run.steering.senders_to(agent.name))}}
    meant = next((name for key, name in names.items() if key.lower() == wanted.strip().lower()), None)
    if meant is not None and meant != agent.name:
        return meant
    if wanted.strip().lower() == agent.name.lower():
        raise AgentError("an agent cannot tell itself something", help="Write it into the state, or go on.")
    message = f"`{agent.name}` can tell `{clip_text(wanted, MAX_SHOWN_CHARS)}` nothing: there is nobody of that name"
    raise AgentError(message, help=suggestion(wanted, list(names), "member"))


def note_result(agent: AgentPort, member: type[Any], result: Any) -> None:
    """Have the phases of an agent follow what a member of its teams has given."""
    if agent.phases is not None:
        teams = peers_of(agent.run, agent).teams
        keys = [key for team in teams for key, other in team.members().items() if other is member]
        agent.phases.note_result(list(dict.fromkeys((*keys, member.about.name))), result)


def query(
    target: Any, event: str, *, role: Role | None = None, select: Select = "", bounds: Sequence[Role] = ()
) -> Query:
    """The members for `send target.event(…).role(…).any()`. Raises AgentError when the target is no team."""
    if not isinstance(target, Query):
        raise AgentError(f"an event can be sent to `peers` or to a team, not to `{target}`")
    asked = Query(target.run, target.teams, event, role or target.of_role, select or target.select)
    return replace(asked, bounds=(*target.bounds, *map(require_role, bounds)))


async def send(sender: AgentPort | None, query: Query, payload: Any, *, timeout_s: float | None = None) -> Any:
    """`await send …(payload) timeout …` of a program.

    Raises:
        SendTimeoutError: no answer in time; the handler was cancelled.
        AgentError: nobody handles the event.
    """
    if timeout_s is None:
        result = await query.execute(payload)
        if sender is not None and sender.phases is not None and query.select == "any":
            note_result(sender, type(query.candidates()[0]), result)
        return result
    name = sender.name if sender is not None else "a skill"
    late = SendTimeoutError(f"`{name}` got no answer to `{query.wanted}` within {timeout_s:g} s")
    with enter("timeout"):
        return await query.run.recorder.with_recorded_timeout(_in_time(query, payload, timeout_s, late))


def start(sender: AgentPort | None, query: Query, payload: Any, *, timeout_s: float | None = None) -> BackgroundCall:
    """`start …(payload) timeout …` of a program: a call that goes on beside the code that begins it.

    Raises:
        AgentError: nobody handles the event, or too many calls go on.
    """
    if query.select:
        query.candidates()
    work = send(sender, query, payload, timeout_s=timeout_s)
    started: BackgroundCall = query.run.calls.start(work, query.wanted, "" if sender is None else sender.name)
    return started


async def _in_time(query: Query, payload: Any, timeout_s: float, late: SendTimeoutError) -> Any:
    """The answer to a send. Raises SendTimeoutError when it comes too late."""
    async with CancelScope(query.run.recorded.time_limit(timeout_s)) as scope:
        return await query.execute(payload)
    await query.run.recorder.wait_for_slot(LATE)
    query.run.events.emit(TimedOut(data_of(late)))
    raise late from scope.caught
