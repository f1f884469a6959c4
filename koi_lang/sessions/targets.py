"""Names in messages to what they stand for: agents, handlers, and a queue that a text goes into."""

from __future__ import annotations

from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.llm.images import BadImageError, Image, require_few
from koi_lang.llm.messages import Message, message_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.playbook.steering import PERSON, How
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.message_targets import MessageTarget, MessageTargetError, find_target, target_of
from koi_lang.sessions.session import Session

# Of an image, as clients send it, and as programs and journals have it.
FIELDS = frozenset({"media_type", "mediaType", "data", "type", "mimeType"})


def handler_named(session: Session, name: str, *, is_private: bool = False) -> tuple[type[Agent], str]:
    """The handler of a name. Raises SessionError.

    Args:
        is_private: whether it may be a private one, which clients cannot call by its name.
    """
    first, _, event = name.partition(".")
    agent = agent_named(session, first)
    events = [handler.event for handler in agent.about.handlers.values() if is_private or not handler.private]
    if event not in events:
        help = suggestion(event, events, "handler")
        raise SessionError("unknown_handler", f"`{first}` has no handler for `{event}`", help=help)
    return agent, event


def agent_named(session: Session, name: str) -> type[Agent]:
    """An agent of the program. Raises SessionError."""
    agents = {agent.about.name: agent for agent in session.served.agents}
    if name not in agents:
        help = suggestion(name, list(agents), "agent")
        raise SessionError("unknown_agent", f"there is no agent `{name}`", help=help)
    return agents[name]


def handler_for_message(session: Session, name: str, said: Message) -> tuple[type[Agent], str, Any]:
    """The handler that a message is for, and what it is given.

    Without a name it is the handler that was called last, if it takes messages, else the one that the program decides.

    Raises:
        SessionError: there is none, or it takes no such message.
    """
    agents = session.served.agents
    try:
        target = (None if name else _last_target(session)) or find_target(agents, name)
        payload = target.payload(said.text, said.images)
    except MessageTargetError as error:
        raise SessionError(error.code, error.message, help=error.help) from error
    return agent_named(session, target.agent), target.event, payload


def _last_target(session: Session) -> MessageTarget | None:
    """The handler that was called last; None where there is none, or it takes no messages."""
    if session.last is None:
        return None
    agent, event = session.last[:2]
    return target_of(agent.about.name, agent.about.handlers[event])


def say(session: Session, said: str | Message, how: How, to: str = "", sender: str = PERSON) -> dict[str, Any]:
    """Queue something for an agent; empty for whoever was not delegated its work. Raises SessionError."""
    if to:
        agent_named(session, to)
    message = message_of(said)
    if not message.text.strip() and not message.images:
        raise SessionError("invalid_request", "there is nothing to say in an empty message")
    note = session.run.steering.say(message, how, to=to, sender=sender or PERSON)
    return {"note": note.id, "queued": len(session.run.steering.pending_messages())}


def message_with_images(text: str, images: list[Any] | None) -> Message:
    """A message with the images that came with it, each `{"data": base64}`. Raises SessionError."""
    named = [(f"image {number}", given) for number, given in enumerate(images or (), 1)]
    for name, given in named:
        if not isinstance(given, dict) or not isinstance(given.get("data"), str) or not given.keys() <= FIELDS:
            help = 'Send {"media_type": "image/png", "data": "…"} with the bytes in base64.'
            raise SessionError("bad_image", f"{name} is not an object with `media_type` and `data`", help=help)
    try:
        found = tuple(Image.from_base64(given["data"], name) for name, given in named)
        require_few(found)
    except BadImageError as error:
        raise SessionError("bad_image", error.message, help=error.help) from error
    return Message("user", text, found)
