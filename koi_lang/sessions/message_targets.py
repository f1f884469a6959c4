"""The handlers of a program to the one that messages are for, and a message to what that handler is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.llm.images import Image
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.runtime.model_calls.images import value_of
from koi_lang.runtime.schema import Schema

# Of events that are meant for messages, the first one that an agent handles; and of the object they are put into.
EVENTS = ("chat", "message")
FIELD = "message"
IMAGES = "images"
EXAMPLE = 'Give an agent a handler such as `on chat(args: { message: string }) { playbook """…""" }`.'


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """A handler that takes messages.

    Attributes:
        field: of its payload, that the text goes into; None where the payload is the text.
        declared: whether its type says that it takes a text.
    """

    agent: str
    event: str
    field: str | None
    declared: bool

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.agent}.{self.event}"

    def payload(self, text: str, images: Sequence[Image] = ()) -> Any:
        """What the handler is given for a message. Raises UsageError when it takes no images."""
        if self.field is None and images:
            help = "Have it take an object, `on chat(args: { message: string })`, or leave the images away."
            raise UsageError(f"`{self.name}` takes a text, which has no place for images", help=help)
        given = {IMAGES: [value_of(image) for image in images]} if images else {}
        return text if self.field is None else {self.field: text, **given}


def text_of(payload: Any) -> str:
    """The message in what a handler was given; empty where there is none."""
    known = payload if isinstance(payload, dict) else {FIELD: payload}
    values = [value for name, value in known.items() if name != IMAGES]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else ""


def targets(agents: Sequence[type[Agent]], agent: str = "", event: str = "") -> list[MessageTarget]:
    """The handlers that messages may be for: one where that is clear, else those to choose from. Raises UsageError."""
    chosen = [each for each in agents if not agent or each.about.name == agent]
    if not chosen:
        names = [each.about.name for each in agents]
        raise UsageError(f"there is no agent `{agent}`", help=suggestion(agent, names, "agent"))
    found = [target for each in chosen for target in _of_agent(each)]
    if event:
        found = [target for target in found if target.event == event]
        if not found:
            raise UsageError(
                f"{_who(chosen)} has no handler `{event}` that takes a message", help=_list_targets(chosen)
            )
    if not found:
        raise UsageError(f"{_who(chosen)} has no handler that takes a message", help=EXAMPLE)
    tiers = [[target for target in found if target.event == name] for name in EVENTS]
    tiers += [[target for target in found if target.declared], found]
    return next(tier for tier in tiers if tier)


def _of_agent(agent: type[Agent]) -> Iterator[MessageTarget]:
    for handler in agent.about.handlers.values():
        target = None if handler.private else target_of(agent.about.name, handler)
        if target is not None:
            yield target


def target_of(agent: str, handler: Handler) -> MessageTarget | None:
    """A handler as one that takes messages; None where its type says that it takes none."""
    schema = handler.schema
    if not schema:
        return MessageTarget(agent, handler.event, FIELD, declared=False)
    if schema.get("type") == "string":
        return MessageTarget(agent, handler.event, None, declared=True)
    field = _text_field(schema)
    return None if field is None else MessageTarget(agent, handler.event, field, declared=True)


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
