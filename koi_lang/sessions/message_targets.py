"""The handlers of a program to the one that a message is for, and the message to what that handler is given.

`koi chat`, `koi rpc` and the web pages all ask here, so that each takes what the others take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.llm.images import Image
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.model_calls.images import value_of
from koi_lang.runtime.schema import Schema, signature_text, type_text

# Of events that are meant for messages, the first one that an agent handles; and of the object they are put into.
EVENTS = ("chat", "message")
FIELD = "message"
IMAGES = "images"
MAX_NAMED = 8
EXAMPLE = 'Give an agent a handler such as `on chat(args: { message: string }) { playbook """…""" }`.'


Code = Literal["invalid_request", "unknown_agent", "unknown_handler"]


class MessageTargetError(UsageError):
    """A message that nobody can be given.

    Attributes:
        code: for programs.
    """

    def __init__(self, message: str, *, help: str | None = None, code: Code = "invalid_request") -> None:
        super().__init__(message, help=help)
        self.code: Code = code


class SeveralTargetsError(MessageTargetError):
    """Several handlers take a message, and whoever sends it has to choose.

    Attributes:
        found: those to choose from.
    """

    def __init__(self, found: Sequence[MessageTarget]) -> None:
        names = ", ".join(f"`{target.name}`" for target in found[:MAX_NAMED])
        super().__init__("several handlers take a message", help=f"Name one: {names}.")
        self.found = found


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """A handler that takes messages.

    Attributes:
        field: of its payload, that the text goes into; None where the payload is the text.
        declared: whether its type says that it takes a text.
        playbook: whether a model carries it out.
    """

    agent: str
    event: str
    field: str | None
    declared: bool
    playbook: bool = False

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.agent}.{self.event}"

    def payload(self, text: str, images: Sequence[Image] = ()) -> Any:
        """What the handler is given for a message, without blanks around it.

        Raises MessageTargetError when there is nothing in it, or when it has images and the handler takes none.
        """
        if not text.strip() and not images:
            raise MessageTargetError("there is nothing to say in an empty message")
        if self.field is None and images:
            help = "Have it take an object, `on chat(args: { message: string })`, or leave the images away."
            raise MessageTargetError(f"`{self.name}` takes a text, which has no place for images", help=help)
        given = {IMAGES: [value_of(image) for image in images]} if images else {}
        return text.strip() if self.field is None else {self.field: text.strip(), **given}


def text_of(payload: Any) -> str:
    """The message in what a handler was given; empty where there is none."""
    known = payload if isinstance(payload, dict) else {FIELD: payload}
    values = [value for name, value in known.items() if name != IMAGES]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""


def find_target(agents: Sequence[type[Agent]], name: str = "") -> MessageTarget:
    """The handler that a message is for.

    Args:
        name: `Agent.event`, an agent alone, or `.event` of whichever agent; empty where the program decides.

    Raises:
        SeveralTargetsError: the program does not.
        MessageTargetError: there is none of that name, or it takes no message.
    """
    agent, _, event = name.partition(".")
    found = targets(agents, agent, event)
    if len(found) > 1:
        raise SeveralTargetsError(found)
    return found[0]


def name_of_target(agent: str, event: str) -> str:
    """The name of a handler, of which either part may be empty or both; an agent may be named with another event."""
    return f"{agent.partition('.')[0]}.{event}" if event else agent


def targets(agents: Sequence[type[Agent]], agent: str = "", event: str = "") -> list[MessageTarget]:
    """The handlers that messages may be for: one where that is clear, else those to choose from.

    An event that is named counts; else `chat` goes first, then `message`, then those that say that they take a text; of
    several the only playbook.

    Raises:
        MessageTargetError: there is none.
    """
    chosen = [each for each in agents if not agent or each.about.name == agent]
    if not chosen:
        help = suggestion(agent, [each.about.name for each in agents], "agent")
        raise MessageTargetError(f"there is no agent `{agent}`", help=help, code="unknown_agent")
    found = [target for each in chosen for target in _of_agent(each)]
    if event:
        found = [target for target in found if target.event == event]
        if not found:
            raise _no_target_error(chosen, event)
    if not found:
        raise MessageTargetError(f"{_who(chosen)} has no handler that takes a message", help=EXAMPLE)
    tiers = [[target for target in found if target.event == name] for name in EVENTS]
    tiers += [[target for target in found if target.declared], found]
    tier = next(tier for tier in tiers if tier)
    playbooks = [target for target in tier if target.playbook]
    return playbooks if len(playbooks) == 1 else tier


def _no_target_error(agents: Sequence[type[Agent]], event: str) -> MessageTargetError:
    """Why no handler of a name takes a message."""
    known = [(each, each.about.handlers[event]) for each in agents if event in each.about.handlers]
    public = [(agent.about.name, handler) for agent, handler in known if not handler.private]
    if not public:
        help = _list_targets(agents)
        return MessageTargetError(f"{_who(agents)} has no handler for `{event}`", help=help, code="unknown_handler")
    agent, handler = public[0]
    takes = signature_text(handler.schema) or type_text(handler.schema)
    help = f"It takes ({takes}). {_list_targets(agents)}"
    return MessageTargetError(f"`{agent}.{event}` takes no message", help=help)


def _of_agent(agent: type[Agent]) -> Iterator[MessageTarget]:
    for handler in agent.about.handlers.values():
        target = None if handler.private else target_of(agent.about.name, handler)
        if target is not None:
            yield target


def target_of(agent: str, handler: Handler) -> MessageTarget | None:
    """A handler as one that takes messages; None where its type says that it takes none."""
    schema, is_playbook = handler.schema, bool(handler.playbook)
    if not schema:
        return MessageTarget(agent, handler.event, FIELD, declared=False, playbook=is_playbook)
    field = None if schema.get("type") == "string" else _text_field(schema)
    if field is None and schema.get("type") != "string":
        return None
    return MessageTarget(agent, handler.event, field, declared=True, playbook=is_playbook)


def _text_field(schema: Schema) -> str | None:
    """The one field of an object that must be given, where that is a text; else the only text that may be."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    texts = [name for name, field in properties.items() if field.get("type") == "string"]
    wanted = list(required) or texts
    return wanted[0] if len(wanted) == 1 and wanted[0] in texts else None


def _who(agents: Sequence[type[Agent]]) -> str:
    return f"`{agents[0].about.name}`" if len(agents) == 1 else "the program"


def _list_targets(agents: Sequence[type[Agent]]) -> str:
    names = ", ".join(f"`{target.name}`" for agent in agents for target in _of_agent(agent))
    return f"These take one: {names}." if names else EXAMPLE
