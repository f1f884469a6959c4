"""Members that are agents of other programs, reached over the network or in a process."""

from __future__ import annotations

from collections.abc import Mapping
from types import new_class
from typing import TYPE_CHECKING, Any

from koi_lang.agent_address import COMMAND, AgentAddress, CommandAddress, parse_address, parse_command
from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined
from koi_lang.lazy import lazy_module
from koi_lang.runtime.a2a.replies import ASKING, DONE, WHY, Reply
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler, Role
from koi_lang.runtime.guards.policy import Access
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.narrowing import bounds
from koi_lang.runtime.replay.calls import Effect

if TYPE_CHECKING:
    from koi_lang.runtime.a2a import client
    from koi_lang.runtime.acp import asking
    from koi_lang.runtime.guards import file_access, hosts
    from koi_lang.settings import project
else:
    asking = lazy_module("koi_lang.runtime.acp.asking")
    client = lazy_module("koi_lang.runtime.a2a.client")
    file_access = lazy_module("koi_lang.runtime.guards.file_access")
    hosts = lazy_module("koi_lang.runtime.guards.hosts")
    project = lazy_module("koi_lang.settings.project")

EVENT = "ask"
ROLE, PROCESS_ROLE = Role("a2a", ("web_access",)), Role("acp", ("execute",))
SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"message": {"type": "string"}}},
    ]
}
# How often an agent may ask back in one task.
MAX_QUESTIONS = 20


class AgentAtHost(Agent, koi_name="a2a"):
    """An agent of another program in the place of an agent; subclasses are the members of teams.

    Attributes:
        origin: its address.
    """

    origin: AgentAddress | CommandAddress


def remote_agent(address: str) -> type[AgentAtHost]:
    """A member of a team that handles one event, `ask`. Raises AgentError where the address is none."""
    found = parse_command(address) if address.startswith(COMMAND) else parse_address(address)
    if found is None:
        raise AgentError(f"`{address}` is no address of an agent", help="Write `a2a://host/agent`, or `acp://command`.")

    async def handle(this: Agent, args: Any = undefined) -> Any:
        part = _part_of(args)
        if isinstance(found, CommandAddress):
            return await asking.ask_process(this, found, part.get("text"))
        return await _ask(this, found, part)

    handler = Handler(EVENT, handle, f"asks the agent {found.name} of another program", schema=SCHEMA)
    role = PROCESS_ROLE if isinstance(found, CommandAddress) else ROLE
    declared = {"koi_name": address, "role": lambda: role}
    return new_class("Remote", (AgentAtHost,), declared, lambda body: body.update({EVENT: handler, "origin": found}))


def _part_of(payload: Any) -> dict[str, Any]:
    """A payload as a part of a message: a text, or any other value as data."""
    if isinstance(payload, dict) and payload.keys() == {"message"}:
        payload = payload["message"]
    if payload is undefined or payload is None:
        raise AgentError("the agent is asked nothing", help='Send `{ message: "…" }`, a text, or data.')
    return {"text": payload} if isinstance(payload, str) else {"data": payload}


async def _ask(this: Agent, address: AgentAddress, part: Mapping[str, Any]) -> Any:
    """The reply of an agent; its questions go to the person. Raises AgentError."""
    asking = f"asking `{address.text}`"
    request = ApprovalRequest(f"ask `{address.text}`", agent=this.name)
    page = file_access.page_permission(address.host.strip("[]"))
    access = Access(asking, request, page, bounds=bounds(), needs="web_access", changes=True, is_open=True)
    await this.run.policy.require(access)
    reply = await _turn(this, address, part, None)
    for _ in range(MAX_QUESTIONS):
        if reply.state != ASKING:
            break
        asked = await this.call_action("prompt_user", {"question": f"`{address.name}` asks: {reply.text}"})
        reply = await _turn(this, address, {"text": asked["answer"]}, reply)
    if reply.state != DONE:
        why = WHY.get(reply.state, "does not come to an end")
        reason = f": {reply.text}" if reply.text else ""
        raise AgentError(f"`{address.text}` {why}{reason}")
    return reply.value


async def _turn(this: Agent, address: AgentAddress, part: Mapping[str, Any], before: Reply | None) -> Reply:
    """One message and its reply, which a run that goes on gets as it was, without asking again."""
    settings = this.run.settings
    given = {"address": address.text, **part, **({} if before is None else {"task": before.task})}

    async def send() -> dict[str, Any]:
        allowed = hosts.Allowed.of(project.allowed_hosts(settings))
        token = project.agent_token(settings, address.place) or ""
        async with client.AgentClient(address, allowed, token) as asking:
            return (await asking.ask(part, before)).as_data()

    effect = Effect("a2a.ask", given, agent=this.name, slow=True)
    return Reply(**await this.run.recorder.perform_as_step(effect, send))
