"""A handler to the request that its model would be sent first: made as a run makes it, and not sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.js.errors import ErrorValue
from koi_lang.js.undefined import undefined
from koi_lang.llm.layers import name_of
from koi_lang.llm.messages import Request, RequestPreview
from koi_lang.llm.tools import NativeTool
from koi_lang.llm.usage import TOKENS_PER_MESSAGE, tokens_of
from koi_lang.program import declarations
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler, Role
from koi_lang.runtime.budget.limits import paid_by
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.model_calls.frozen_plans import part_hashes
from koi_lang.runtime.model_calls.gateway import ModelGateway
from koi_lang.runtime.narrowing import narrowed_to
from koi_lang.runtime.playbook import loop
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.delegation import MemberScore, reachable, remote_tools, score_members
from koi_lang.runtime.playbook.direct_results import obstacle
from koi_lang.runtime.playbook.placeholders import PlaybookMessage
from koi_lang.runtime.playbook.prompting import Section, join_sections
from koi_lang.runtime.ports import AgentPort
from koi_lang.runtime.replay.location import enter
from koi_lang.runtime.routing.lexical import MeaningScores
from koi_lang.runtime.run import Run
from koi_lang.runtime.schema import Schema, resolve_part, signature_text, type_text
from koi_lang.runtime.services import MADE_WHEN_USED
from koi_lang.sessions.prepared import Note, Prepared
from koi_lang.sessions.unneeded_keys import without_missing_keys


@dataclass(frozen=True, slots=True)
class CallToPreview:
    """A call of a handler whose request is wanted.

    Attributes:
        payload: what it is given; `undefined` has texts stand for the fields of its type.
        roles: to which the call is narrowed.
        is_delegated: whether the model of another agent has asked for it.
        connects: whether MCP servers are started to ask them for their tools.
        intent: a sentence that the members are scored for; empty for none.
    """

    agent: type[Agent]
    handler: Handler
    payload: Any = undefined
    roles: tuple[Role, ...] = ()
    is_delegated: bool = False
    connects: bool = False
    intent: str = ""

    @property
    def name(self) -> str:
        """How it is called: `Agent.handler`."""
        return f"{self.agent.about.name}.{self.handler.event}"


@dataclass(frozen=True, slots=True)
class CountedSection:
    """A part of a request, and about how many tokens it takes."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """The first request of a call.

    Attributes:
        model: `provider/model`.
        sent: the request as its model is told of it, and the body that the provider gets.
        sections: all of it, in the order in which it is told.
        obstacle: why its model is not asked for the result alone; empty where it is.
        missing: MCP servers whose tools are asked for at run time, so that they are not there.
        scores: how near each event of a member is to the sentence that was given.
        meaning: what the model for embeddings says of it; None where none is configured.
        hashes: of the parts that a frozen plan of the handler is made for.
    """

    handler: str
    model: str
    sent: RequestPreview
    sections: tuple[CountedSection, ...]
    obstacle: str = ""
    missing: tuple[str, ...] = ()
    scores: tuple[MemberScore, ...] = ()
    meaning: MeaningScores | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def playbook(self) -> str:
        """The text of its playbook, with names in the place of values."""
        return "" if self.sent.request.task is None else self.sent.request.task.instructions

    @property
    def transport(self) -> str:
        """How the model is told of its actions: as `tools`, by a `schema`, or in `text`."""
        return "tools" if self.sent.request.offer else "schema" if self.sent.request.schema else "text"

    @property
    def system(self) -> str:
        """The system text."""
        return system_of(self.sent.request)

    @property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(section.tokens for section in self.sections)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        request = self.sent.request
        offered = () if request.offer is None else request.offer.set.tools
        return {
            "handler": self.handler,
            "model": self.model,
            "transport": self.transport,
            "direct": not self.obstacle,
            "obstacle": self.obstacle or None,
            "tokens": self.tokens,
            "sections": [{"name": each.name, "tokens": each.tokens} for each in self.sections],
            "missing": list(self.missing),
            "scores": [{"name": each.name, "words": each.words, "meaning": each.meaning} for each in self.scores],
            "system": self.system,
            "messages": [{"role": message.role, "text": message.text} for message in request.messages],
            "tools": [_tool_data(tool) for tool in offered],
            "schema": request.schema,
            "body": self.sent.body,
        }


def call_named(ready: Prepared, name: str, **how: Any) -> CallToPreview:
    """The call of the playbook that `Agent.handler` names; empty names the only one.

    Args:
        how: further fields of it.

    Raises:
        UsageError: there is no such handler, it is code, or several are meant.
    """
    agents = ready.agents
    handlers = [(agent, handler) for agent in agents for handler in agent.about.handlers.values()]
    known = {f"{agent.about.name}.{handler.event}": (agent, handler) for agent, handler in handlers}
    playbooks = [known_name for known_name, (_, handler) in known.items() if handler.playbook]
    if not name and len(playbooks) == 1:
        name = playbooks[0]
    if not name:
        listed = ", ".join(f"`{each}`" for each in playbooks) or "it has no playbook"
        raise UsageError("no handler is named", help=f"Name one with a playbook: {listed}.")
    if name not in known:
        raise UsageError(f"there is no handler `{name}`", help=suggestion(name, playbooks, "playbook handler"))
    agent, handler = known[name]
    if not handler.playbook:
        help = f"These are carried out by a model: {', '.join(f'`{each}`' for each in playbooks)}." if playbooks else ""
        raise UsageError(f"`{name}` is code, so it begins with no request to a model", help=help)
    return CallToPreview(agent, handler, **how)


def role_named(ready: Prepared, name: str) -> Role:
    """A role of a program. Raises UsageError."""
    roles = {role.name: role for role in declarations.roles_of(ready.module)}
    if name not in roles:
        raise UsageError(f"there is no role `{name}`", help=suggestion(name, list(roles), "role"))
    return roles[name]


async def preview_prompt(ready: Prepared, call: CallToPreview, note: Note) -> PromptPreview:
    """The first request of a call.

    Only what stands in the placeholders of its playbook is computed; extensions are asked as in a run.

    Args:
        note: is told about models, a line each.

    Raises:
        KoiError: the payload is not of the type of the handler, or a placeholder cannot be computed.
    """
    taken: list[PromptPreview] = []

    async def take(agent: AgentPort, event: str, args: Any, parts: loop.Parts) -> Any:
        taken.append(await _first_request(loop.begin(agent, event, args), parts, call, run.models))
        return undefined

    # Without an intent to score nothing is sent, so notes are those that words find.
    own: dict[str, Any] = {} if call.intent else {"connect_embedder": None}
    factories = replace(MADE_WHEN_USED, playbook=take)
    run = without_missing_keys(ready, [call.agent]).run(SilentHost(), (), note, factories=factories, **own)
    try:
        async with run:
            run.models.asks_nobody = True
            await _carry_out(run, call)
    except ErrorValue as error:
        if call.payload is not undefined:
            raise
        message = f"`{call.name}` cannot be shown with names in place of values: {error.message}"
        raise UsageError(message, help="give it values with `--args`.") from error
    return taken[0]


async def _carry_out(run: Run, call: CallToPreview) -> None:
    agent, payload = run.agent(call.agent), call.payload
    if payload is undefined:
        payload = stand_in(call.handler.schema) if call.handler.schema else {}
    else:
        agent.check_payload(call.handler, payload)
    with enter(call.name), paid_by(run.spending), narrowed_to(*call.roles):
        await call.handler.function(agent, payload)


async def _first_request(
    call: PlaybookCall, parts: loop.Parts, wanted: CallToPreview, models: ModelGateway
) -> PromptPreview:
    if wanted.is_delegated:
        call.parent = call  # a prompt says that there is somebody who delegates, and not who
    messages = await loop.open_conversation(call)
    if wanted.connects:
        await loop.look_for_tools(call)
    request = await loop.next_request(call, messages, parts)
    sent = await models.preview(call.agent, request)
    missing = () if wanted.connects else tuple(dict.fromkeys(_servers(call.agent)))
    sections, model = tuple(_sections(call, sent)), name_of(models.of(call.agent))
    scores, meaning = await score_members(call.agent, wanted.intent) if wanted.intent else ([], None)
    hashes = part_hashes(call.agent.about, call.event, call.instructions.text, reachable(call.agent))
    return PromptPreview(wanted.name, model, sent, sections, obstacle(call), missing, tuple(scores), meaning, hashes)


def _servers(agent: AgentPort) -> Iterator[str]:
    """The servers that are asked for their tools before a request."""
    if agent.role.allows("call_mcp"):
        yield from (server.name for server in agent.about.mcps())
    if agent.role.allows("delegate"):
        yield from (server.name for server, _ in remote_tools(agent).values())


def _sections(call: PlaybookCall, sent: RequestPreview) -> Iterator[CountedSection]:
    """The parts of a request; one whose system text an extension has changed has that in one part."""
    request = sent.request
    sections: Sequence[Section] = loop.text_sections(call) if request.offer is None else loop.tool_sections(call)
    if join_sections(sections) != system_of(request):
        sections = [Section("system", system_of(request))]
    yield from (CountedSection(each.name, each.text, tokens_of((), each.text)) for each in sections)
    for is_playbook, messages in groupby(request.messages, lambda message: isinstance(message, PlaybookMessage)):
        part, name = tuple(messages), "playbook" if is_playbook else "messages"
        yield CountedSection(name, "\n\n".join(message.text for message in part), tokens_of(part))
    if request.offer is not None:
        tools = "\n".join(json.dumps(_tool_data(tool), ensure_ascii=False) for tool in request.offer.set.tools)
        yield CountedSection("tools", tools, tokens_of((), tools))
    if request.schema is not None:
        schema = json.dumps(request.schema, ensure_ascii=False)
        yield CountedSection("schema", schema, tokens_of((), schema))
    yield CountedSection("marks between messages", "", TOKENS_PER_MESSAGE * (1 + len(request.messages)))


def system_of(request: Request) -> str:
    """The system text of a request as its model is told it."""
    return request.system if request.offer is None else request.offer.system


def _tool_data(tool: NativeTool) -> Mapping[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def describe_payload(call: CallToPreview) -> str:
    """The description of a missing payload, in words."""
    if not call.handler.schema:
        return f"`{call.name}` declares no fields, so it is shown as given nothing"
    return f"fields of `{call.name}` are shown as ⟨name: type⟩; it takes ({signature_text(call.handler.schema)})"


# Objects within objects; types may contain themselves.
MAX_DEPTH = 4


def stand_in(schema: Schema, name: str = "args") -> Any:
    """A value of the shape of a type, with `⟨name: type⟩` in place of all that is no object and no list.

    It does not fit the type where that is a number or a choice.
    """
    return _stand_in(schema, schema, name, MAX_DEPTH)


def _stand_in(root: Schema, part: Schema, name: str, levels: int) -> Any:
    found = resolve_part(root, part)
    if levels and "properties" in found:
        return {each: _stand_in(root, inner, each, levels - 1) for each, inner in found["properties"].items()}
    if levels and found.get("type") == "array" and "items" in found:
        return [_stand_in(root, found["items"], name, levels - 1)]
    return f"⟨{name}: {type_text(part)}⟩"
