"""A loaded program to a server: what it answers to each request of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from mcp import types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError, reason
from koi_lang.mcp_server.call import ANSWER_S, CallFailed, CallSucceeded, ExposedCall
from koi_lang.mcp_server.client_stream import Request, can_ask, connection_of, give_answer, set_level, stream_to_client
from koi_lang.mcp_server.completions import completion
from koi_lang.mcp_server.documents import Documents, ExposedDocument, Payload, contents_of, made_prompt, messages_of
from koi_lang.mcp_server.prompts_and_resources import Sources, message_of, prompt_of
from koi_lang.mcp_server.results import failure_of
from koi_lang.mcp_server.sessions import HandlerCall, McpSession, OpenSession, PromptCall, Sessions, Work, sessions_of
from koi_lang.mcp_server.tools import ExposedTool
from koi_lang.runtime.prompts import Prompt
from koi_lang.version import __version__

SESSION = "koi session"
Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class McpService:
    """What is served.

    Attributes:
        name: of the server.
        instructions: what the program is good for.
        open_session: makes the session of a client.
        explain: an error as a person gets it.
        log: takes a line for whoever runs the server.
    """

    name: str
    instructions: str
    tools: Mapping[str, ExposedTool]
    prompts: Mapping[str, Prompt]
    made_prompts: Mapping[str, ExposedDocument]
    documents: Documents
    sources: Sources
    open_session: OpenSession
    explain: Callable[[BaseException], str]
    log: Callable[[str], None]


def server_of(service: McpService, latest: Callable[[], McpService] | None = None) -> Server[Sessions]:
    """The server; how it is reached is decided by whoever runs it.

    Args:
        latest: what is served by now, where that may change.
    """
    answers = _Answers(latest or (lambda: service))
    server: Server[Sessions] = Server(
        service.name,
        version=__version__,
        instructions=service.instructions or None,
        get_tool_input_schema=answers.schema_of,
        lifespan=lambda _: sessions_of(service.open_session),
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_resource_templates,
        on_read_resource=answers.read_resource,
        on_subscribe_resource=answers.subscribe if service.documents.made else None,
        on_unsubscribe_resource=answers.unsubscribe if service.documents.made else None,
        on_completion=answers.complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, answers.set_level)
    server.middleware.append(_refuse_without_session)
    server.add_request_handler("server/discover", types.RequestParams, partial(_discover, server))
    return server


class _Answers:
    """The answers to requests, one method each."""

    def __init__(self, latest: Callable[[], McpService]) -> None:
        self._latest = latest

    @property
    def _service(self) -> McpService:
        return self._latest()

    # ------------------------------------------------------------ tools

    async def list_tools(self, request: Request, page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """All tools at once."""
        return types.ListToolsResult(tools=[offer.as_tool() for offer in self._service.tools.values()])

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """What a tool takes; None when there is no such tool."""
        return self._service.tools[name].schema if name in self._service.tools else None

    async def call_tool(
        self, request: Request, asked: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """What the handler gives, or its error as a result: the model at the other end may want to try again."""
        offer = _find_named(self._service.tools, asked.name, "tool")
        payload = offer.payload(asked.arguments or {})
        work = HandlerCall(offer.name, offer.agent, offer.handler.event, payload, offer.result)
        end = await _carried_out(request, work, asked)
        if isinstance(end, CallFailed):
            return failure_of(self._service.explain(end.error))
        return cast(types.CallToolResult, end.value) if isinstance(end, CallSucceeded) else end

    # ------------------------------------------------------------ prompts and resources

    async def list_prompts(
        self, request: Request, page: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """All prompts at once."""
        made = (made_prompt(each) for each in self._service.made_prompts.values())
        return types.ListPromptsResult(prompts=[*map(prompt_of, self._service.prompts.values()), *made])

    async def get_prompt(
        self, request: Request, asked: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """The text of a prompt for some arguments."""
        known: Mapping[str, ExposedDocument | Prompt] = {**self._service.made_prompts, **self._service.prompts}
        prompt, given = _find_named(known, asked.name, "prompt"), asked.arguments or {}
        missing = [name for name in prompt.parameters if name not in given]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"the prompt `{prompt.name}` needs the argument `{missing[0]}`")
        work: Work
        if isinstance(prompt, ExposedDocument):
            work = HandlerCall(prompt.name, prompt.agent, prompt.handler.event, dict(given), messages_of)
        else:
            work = PromptCall(prompt, [given[name] for name in prompt.parameters], message_of)
        _session(request).given.keep(asked.name, given)
        end = await _carried_out(request, work, asked)
        if isinstance(end, CallFailed):
            raise MCPError(types.INTERNAL_ERROR, self._service.explain(end.error))
        return cast(types.GetPromptResult, end.value) if isinstance(end, CallSucceeded) else end

    async def list_resources(
        self, request: Request, page: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """All documents and sources at once."""
        listed = [*self._service.documents.list_resources(), *self._service.sources.list_resources()]
        return types.ListResourcesResult(resources=listed)

    async def list_resource_templates(
        self, request: Request, page: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """All addresses with holes at once."""
        return types.ListResourceTemplatesResult(resource_templates=self._service.documents.templates())

    async def read_resource(
        self, request: Request, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """The content of a document, or the text of a source."""
        found = self._service.documents.find(asked.uri)
        if found is not None:
            return await self._read_document(request, asked, *found)
        path = _find_named(self._service.sources.files, asked.uri, "resource")
        try:
            return self._service.sources.read(asked.uri)
        except OSError as error:
            raise MCPError(types.INTERNAL_ERROR, f"`{path.name}` cannot be read: {reason(error)}") from error

    async def _read_document(
        self, request: Request, asked: types.ReadResourceRequestParams, made: ExposedDocument, payload: Payload
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        _session(request).given.keep(made.name, payload)
        work = HandlerCall(made.name, made.agent, made.handler.event, payload, partial(contents_of, asked.uri))
        end = await _carried_out(request, work, asked)
        if isinstance(end, CallFailed):
            raise MCPError(types.INTERNAL_ERROR, self._service.explain(end.error))
        return cast(types.ReadResourceResult, end.value) if isinstance(end, CallSucceeded) else end

    # ------------------------------------------------------------ the rest

    async def subscribe(self, request: Request, asked: types.SubscribeRequestParams) -> types.EmptyResult:
        """Tell the client when a document may be another one."""
        found, session = self._service.documents.find(asked.uri), _session(request)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"`{asked.uri}` is no document that a handler makes")
        find_agent = await session.watch_agent(found[0].agent)
        if not session.watch.add(asked.uri, find_agent, request.session.send_resource_updated):
            raise MCPError(types.INVALID_PARAMS, "too many documents are watched in this session")
        return types.EmptyResult()

    async def unsubscribe(self, request: Request, asked: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Do so no longer."""
        _session(request).watch.remove(asked.uri)
        return types.EmptyResult()

    async def complete(self, request: Request, asked: types.CompleteRequestParams) -> types.CompleteResult:
        """Values for an argument of a prompt, or a hole of an address."""
        if isinstance(asked.ref, types.PromptReference):
            name, made = asked.ref.name, self._service.made_prompts.get(asked.ref.name)
        else:
            name, made = asked.ref.uri, self._service.documents.find_declared(asked.ref.uri)
        return completion(made, name, asked.argument, _session(request).given)

    async def set_level(self, request: Request, asked: types.SetLevelRequestParams) -> types.EmptyResult:
        """Lines below a level are not sent any more."""
        set_level(request, asked.level)
        return types.EmptyResult()


async def _carried_out(
    request: Request, work: Work, asked: types.InputResponseRequestParams
) -> CallSucceeded | CallFailed | types.InputRequiredResult:
    """Carry work out in the session of a request, or go on with what the client comes back to.

    When the request is cancelled, so is the work.
    """
    try:
        session = _session(request)
        if asked.request_state is None:
            # Over stdio the client has started this process, and its person says what may be done by it.
            asks, is_local = can_ask(request), request.request is None
            call = await session.begin(work, asks=asks, approves=asks and is_local)
        else:
            call = _resume_call(session, asked)
    except KoiError as error:
        return CallFailed(error)
    end: CallSucceeded | CallFailed | types.InputRequiredResult | None = None
    try:
        end = await stream_to_client(request, call)
    finally:
        if isinstance(end, types.InputRequiredResult):
            # Not for ever, as clients may have other plans.
            session.waiting[call.id] = call
            asyncio.get_running_loop().call_later(2 * ANSWER_S, session.waiting.pop, call.id, None)
        else:
            call.end()
    return end


def _resume_call(session: McpSession, asked: types.InputResponseRequestParams) -> ExposedCall:
    call = session.waiting.pop(asked.request_state or "", None)
    if call is None:
        raise MCPError(types.INVALID_PARAMS, "the call that waited for this answer is over")
    give_answer(call, asked.input_responses)
    return call


def _session(request: Request) -> McpSession:
    """The session of a request: that of its connection, or the only one where a client has the process for itself."""
    sessions: Sessions = request.lifespan_context
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return sessions.only()
    connection = connection_of(request)
    if SESSION not in connection.state:
        session = connection.state[SESSION] = sessions.open()
        connection.exit_stack.callback(sessions.close, session)
    found: McpSession = connection.state[SESSION]
    return found


def _find_named(known: Mapping[str, Named], name: str, kind: str) -> Named:
    """Something that is offered under a name. Raises MCPError with a suggestion."""
    if name not in known:
        raise MCPError(types.INVALID_PARAMS, f"there is no {kind} `{name}`: {suggestion(name, list(known), kind)}")
    return known[name]


# ---------------------------------------------------------------- protocols without sessions


def _lacks_session(request: Request) -> bool:
    """Whether a request came over HTTP in a protocol that has no sessions, so that there is no state to keep."""
    return request.request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _discover(server: Server[Sessions], request: Request, asked: types.RequestParams) -> types.DiscoverResult:
    """Say which protocols are spoken: over HTTP those with sessions, over stdio also newer ones."""
    versions = HANDSHAKE_PROTOCOL_VERSIONS if _lacks_session(request) else MODERN_PROTOCOL_VERSIONS
    capabilities = server.get_capabilities(protocol_version=request.protocol_version)
    return types.DiscoverResult(
        supported_versions=list(versions), capabilities=capabilities, instructions=server.instructions
    )


async def _refuse_without_session(ctx: Request, call_next: CallNext) -> HandlerResult:
    if _lacks_session(ctx) and ctx.method != "server/discover":
        raise MCPError(
            types.UNSUPPORTED_PROTOCOL_VERSION,
            "agents keep state, so over HTTP a client has to begin a session with `initialize`",
            {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ctx.protocol_version},
        )
    return await call_next(ctx)
