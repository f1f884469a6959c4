"""Names in messages to what they stand for: agents, handlers, and a queue that a text goes into."""

from __future__ import annotations

from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.rpc.refusals import Refused
from koi_lang.rpc.session import Session
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.steering import PERSON, How


def handler_named(session: Session, name: str) -> tuple[type[Agent], str]:
    """The handler of a name; private ones are for the program alone. Raises Refused."""
    first, _, event = name.partition(".")
    agent = agent_named(session, first)
    public = [handler.event for handler in agent.about.handlers.values() if not handler.private]
    if event not in public:
        help = suggestion(event, public, "handler")
        raise Refused("unknown_handler", f"`{first}` has no handler for `{event}`", help=help)
    return agent, event


def agent_named(session: Session, name: str) -> type[Agent]:
    """An agent of the program. Raises Refused."""
    agents = {agent.about.name: agent for agent in session.served.agents}
    if name not in agents:
        help = suggestion(name, list(agents), "agent")
        raise Refused("unknown_agent", f"there is no agent `{name}`", help=help)
    return agents[name]


def usual_handler(session: Session) -> tuple[type[Agent], str]:
    """The handler that was called last, else the only playbook there is. Raises Refused."""
    if session.last is not None:
        return session.last[:2]
    found = [
        (agent, handler.event)
        for agent in session.served.agents
        for handler in agent.about.handlers.values()
        if handler.playbook and not handler.private
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"`{agent.about.name}.{event}`" for agent, event in found[:8]) or "none"
    raise Refused("invalid_request", "`prompt` must name a handler", help=f"The playbooks of the program are: {names}.")


def say(session: Session, text: str, how: How, to: str = "", sender: str = PERSON) -> dict[str, Any]:
    """Queue something for an agent; empty for whoever was not delegated its work. Raises Refused."""
    if to:
        agent_named(session, to)
    if not text.strip():
        raise Refused("invalid_request", "there is nothing to say in an empty message")
    note = session.run.steering.say(text, how, to=to, sender=sender or PERSON)
    return {"note": note.id, "queued": len(session.run.steering.queued())}


def refuse_images(images: list[Any] | None) -> None:
    """Raise Refused when a message has images."""
    if images:
        help = "Put the image into a file and name the file in the message."
        raise Refused("images_unsupported", "messages with images are not supported", help=help)
