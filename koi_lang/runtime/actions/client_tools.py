"""Tools, context and state that a client, such as a page, offers for one call.

A tool is carried out by the client: calling it is a question with the name of the tool and its arguments, and the
answer is its result. What a client says of its tools is data. It stands in prompts as quoted text, and a tool can do
no more than answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypedDict

from koi_lang.errors import UsageError
from koi_lang.runtime.actions.registered import ActionContext, ActionError, ActionKind
from koi_lang.runtime.mcp.safe_text import one_line, quote_text
from koi_lang.runtime.playbook.tool_schemas import MAX_SCHEMA_CHARS, simplify_schema

# Begins the names of the actions, so that none of them is one of Koi, of an extension, or an event of a member.
PREFIX = "page::"
# A role without this permission is not offered them.
NEEDS = "execute"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_TOOLS = 64
MAX_CONTEXT_ENTRIES, MAX_CONTEXT_CHARS = 64, 50_000
# Characters of what is said of a tool, and of a question.
MAX_DESCRIPTION_CHARS, MAX_QUESTION_CHARS = 1000, 500
# The only key of a result that tells why a tool has failed.
ERROR = "error"

# The tool that the client is asked to carry out just now, with its arguments.
requested_tool: ContextVar[Mapping[str, object] | None] = ContextVar("koi_requested_tool", default=None)


class ClientTool(TypedDict):
    """A tool as a client describes it; `parameters` is a JSON Schema, or None for any fields."""

    name: str
    description: str
    parameters: Any


AgentFields: TypeAlias = Mapping[str, Mapping[str, Any]]


class ContextEntry(TypedDict):
    """Something that playbooks are to know of a client."""

    description: str
    value: str


@dataclass(frozen=True, slots=True)
class ClientOffer:
    """The offer of a client for a call; make it with `of`.

    Attributes:
        tools: as the client describes them, and as they are recorded.
        context: what the model of the playbook that the call begins is told, as data.
        state: fields that agents are to have when the call begins, by the names of the agents.
        actions: the tools as actions, by name.
    """

    tools: Sequence[ClientTool] = ()
    context: Sequence[ContextEntry] = ()
    state: AgentFields = field(default_factory=dict)
    actions: Mapping[str, ActionKind] = field(default_factory=dict)

    @staticmethod
    def of(tools: Sequence[ClientTool], context: Sequence[ContextEntry]) -> ClientOffer:
        """An offer.

        Raises:
            UsageError: a tool cannot be offered, or there is too much of something.
        """
        size = sum(len(entry["description"]) + len(entry["value"]) for entry in context)
        if len(context) > MAX_CONTEXT_ENTRIES or size > MAX_CONTEXT_CHARS:
            message = f"there are {len(context)} entries of context with {size:,} characters"
            help = f"Send {MAX_CONTEXT_ENTRIES} entries with {MAX_CONTEXT_CHARS:,} characters at most."
            raise UsageError(message, help=help)
        return ClientOffer(tools, context, actions=actions_of(tools))

    def as_fields(self) -> dict[str, Any]:
        """The fields of a journal's entry that have it."""
        values = (self.tools, self.context, self.state)
        return {name: value for name, value in zip(RECORDED, values, strict=True) if value}

    @staticmethod
    def of_entry(data: Mapping[str, Any]) -> ClientOffer:
        """The offer that an entry has. Raises UsageError."""
        tools, context, state = (data.get(name) for name in RECORDED)
        return replace(ClientOffer.of(tools or (), context or ()), state=state or {})


# The fields of the entry of a call.
RECORDED = ("client_tools", "client_context", "client_state")


NOTHING = ClientOffer()
# What the client of the current call offers. A variable of the caller: whoever begins a call within `use_offer` hands
# the offer on to the call.
client_offer: ContextVar[ClientOffer] = ContextVar("client_offer", default=NOTHING)


@contextmanager
def use_offer(offer: ClientOffer) -> Iterator[None]:
    """A context in which calls begin with the offer of a client."""
    token = client_offer.set(offer)
    try:
        yield
    finally:
        client_offer.reset(token)


def actions_of(tools: Sequence[ClientTool]) -> dict[str, ActionKind]:
    """An action for each tool, by their names. Raises UsageError."""
    if len(tools) > MAX_TOOLS:
        raise UsageError(f"there are {len(tools)} tools, and a call has {MAX_TOOLS} at most", help="Offer fewer.")
    actions: dict[str, ActionKind] = {}
    for tool in tools:
        name, schema = tool["name"], simplify_schema(tool["parameters"] or {})
        if NAME.fullmatch(name) is None:
            help = "A name has up to 64 letters, digits, `_` and `-`, a letter first."
            raise UsageError(f"a tool cannot be called `{one_line(name)}`", help=help)
        if PREFIX + name in actions:
            raise UsageError(f"two tools have the same name `{name}`", help="Give each a name of its own.")
        if schema is None:
            help = f"It has up to {MAX_SCHEMA_CHARS:,} characters, and objects in objects up to ten times."
            raise UsageError(f"the schema of the tool `{name}` is too large", help=help)
        said = quote_text(tool["description"], MAX_DESCRIPTION_CHARS)
        description = "A tool of the client" + (f", which says of it: {said}" if said else ".")
        fields = {"required": [], **schema}
        # It is safe, since an answer that was lost is asked for again: the client has the id of the request.
        actions[PREFIX + name] = ActionKind(
            PREFIX + name, NEEDS, description, fields, partial(_call_tool, name), safe=True
        )
    return actions


async def _call_tool(tool: str, context: ActionContext, **arguments: Any) -> Any:
    """Have the client carry out a tool; gives its result, a value where it is JSON."""
    given = one_line(json.dumps(arguments, ensure_ascii=False, default=str), MAX_QUESTION_CHARS)
    token = requested_tool.set({"name": tool, "arguments": arguments})
    try:
        answer = await context.run.host.ask(f"The page is asked to carry out its tool `{tool}` with {given}")
    finally:
        requested_tool.reset(token)
    try:
        result = json.loads(answer)
    except ValueError:
        return answer
    if isinstance(result, dict) and result.keys() == {ERROR}:
        raise ActionError(f"the tool `{tool}` of the client has failed: {result[ERROR]}")
    return result
