"""Names in messages to what they stand for: agents, handlers, and a queue that a text goes into."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.llm.images import BadImage, Image, require_few
from koi_lang.llm.messages import Message, message_of
from koi_lang.rpc.message_targets import target_of, targets
from koi_lang.rpc.refusals import Refused
from koi_lang.rpc.session import Session
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.schema import signature_text, type_text
from koi_lang.runtime.steering import PERSON, How

# Of an image, as clients send it, and as programs and journals have it.
FIELDS = frozenset({"media_type", "mediaType", "data", "type", "mimeType"})


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


def given(agent: type[Agent], event: str, said: Message) -> Any:
    """What a handler is given for a message, as in `koi chat`. Raises Refused when it takes none."""
    handler = agent.about.handlers[event]
    target = target_of(agent.about.name, handler)
    if target is None:
        help = f"Call it with `run_playbook`; it takes ({signature_text(handler.schema) or type_text(handler.schema)})."
        raise Refused("invalid_request", f"`{agent.about.name}.{event}` takes no message", help=help)
    try:
        return target.payload(said.text, said.images)
    except UsageError as error:
        raise Refused("invalid_request", error.message, help=error.help) from error


def usual_handler(session: Session) -> tuple[type[Agent], str]:
    """The handler that was called last, else the only playbook there is, else that of `koi chat`. Raises Refused."""
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
    with suppress(UsageError):  # no handler takes a message
        chosen = targets(session.served.agents)
        if len(chosen) == 1:
            return agent_named(session, chosen[0].agent), chosen[0].event
    names = ", ".join(f"`{agent.about.name}.{event}`" for agent, event in found[:8]) or "none"
    raise Refused("invalid_request", "`prompt` must name a handler", help=f"The playbooks of the program are: {names}.")


def say(session: Session, said: str | Message, how: How, to: str = "", sender: str = PERSON) -> dict[str, Any]:
    """Queue something for an agent; empty for whoever was not delegated its work. Raises Refused."""
    if to:
        agent_named(session, to)
    message = message_of(said)
    if not message.text.strip() and not message.images:
        raise Refused("invalid_request", "there is nothing to say in an empty message")
    note = session.run.steering.say(message, how, to=to, sender=sender or PERSON)
    return {"note": note.id, "queued": len(session.run.steering.queued())}


def shown(text: str, images: list[Any] | None) -> Message:
    """A message with the images that came with it, each `{"data": base64}`. Raises Refused."""
    named = [(f"image {number}", given) for number, given in enumerate(images or (), 1)]
    for name, given in named:
        if not isinstance(given, dict) or not isinstance(given.get("data"), str) or not given.keys() <= FIELDS:
            help = 'Send {"media_type": "image/png", "data": "…"} with the bytes in base64.'
            raise Refused("bad_image", f"{name} is not an object with `media_type` and `data`", help=help)
    try:
        found = tuple(Image.encoded(given["data"], name) for name, given in named)
        require_few(found)
    except BadImage as error:
        raise Refused("bad_image", error.message, help=error.help) from error
    return Message("user", text, found)
