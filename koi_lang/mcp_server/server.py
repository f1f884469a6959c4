"""The MCP server of a loaded program: its answer to each request of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from mcp import types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError, reason
from koi_lang.mcp_server import tasks
from koi_lang.mcp_server.call import CallFailed, CallSucceeded, ExposedCall
from koi_lang.mcp_server.client_stream import (
    Request,
    Unfinished,
    answers_of,
    can_ask,
    connection_of,
    form_of,
    set_level,
    stream_to_client,
)
from koi_lang.mcp_server.completions import completion
from koi_lang.mcp_server.documents import Documents, ExposedDocument, Payload, contents_of, made_prompt, messages_of
from koi_lang.mcp_server.prompts_and_resources import Sources, message_of, prompt_of
from koi_lang.mcp_server.results import failure_of
from koi_lang.mcp_server.sessions import (
    KEEP_S,
    HandlerCall,
    McpSession,
    OpenSession,
    PromptCall,
    Sessions,
    UnknownCallError,
    Work,
    sessions_of,
)
from koi_lang.mcp_server.tools import ExposedTool
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.mcp.transport import SESSION_HANDLE
from koi_lang.runtime.prompts import Prompt
from koi_lang.version import __version__

SESSION = "koi session"
Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class McpService:
    """The served program.

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


def server_of(
    service: McpService, latest: Callable[[], McpService] | None = None, sealing: RequestStateSecurity | None = None
) -> Server[Sessions]:
    """The server; its caller decides on the transport.

    Args:
        latest: what is served by now, where that may change.
        sealing: keeps clients from changing what they bring back; by default for as long as the process lasts.
    """
    answers = _Answers(latest or (lambda: service))
    server: Server[Sessions] = Server(
        service.name,
        version=__version__,
        instructions=service.instructions or None,
        get_tool_input_schema=answers.schema_of,
        lifespan=lambda _: sessions_of(service.open_session),
        on_list_tools=answers.list_tools,
        on_call_tool=cast(Any, answers.call_tool),  # the library knows tasks as an extension only
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
    server.extensions |= {tasks.TASKS: {}, SESSION_HANDLE: {}}
    server.add_request_handler("tasks/get", tasks.TaskParams, answers.get_task)
    server.add_request_handler("tasks/update", tasks.TaskParams, answers.update_task)
    server.add_request_handler("tasks/cancel", tasks.TaskParams, answers.cancel_task)
    sealing = sealing or RequestStateSecurity.ephemeral(ttl=KEEP_S)
    server.middleware += [RequestStateBoundary(sealing, default_audience=service.name), _tell_handle]
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
        """The arguments of a tool as a schema; None when there is no such tool."""
        return self._service.tools[name].schema if name in self._service.tools else None

    async def call_tool(self, request: Request, asked: types.CallToolRequestParams) -> HandlerResult:
        """The result of the handler, or its error as a result: the model at the other end may try again.

        What takes long becomes a task where the client knows tasks.
        """
        offer = _find_named(self._service.tools, asked.name, "tool")
        payload = offer.payload(asked.arguments or {})
        work = HandlerCall(offer.name, offer.agent, offer.handler.event, payload, offer.result)
        end = await _carried_out(request, work, asked, tasks.TASK_AFTER_S if tasks.has_tasks(request) else None)
        if isinstance(end, str):
            _, call = await _find_call(request, end)
            call.take_news()
            if call.outcome is not None:  # meanwhile
                return self._tool_result(call.outcome, call.name)
            return {"resultType": "task", **tasks.task_fields(end, call)}
        return end if isinstance(end, types.InputRequiredResult) else self._tool_result(end)

    def _tool_result(self, end: CallSucceeded | CallFailed, name: str = "") -> types.CallToolResult:
        """How a call of a tool ended.

        Args:
            name: what was called, where its value is no result yet.
        """
        if isinstance(end, CallFailed):
            return failure_of(self._service.explain(end.error))
        offer = next((each for each in self._service.tools.values() if each.target == name), None)
        return cast(types.CallToolResult, end.value) if offer is None else offer.result(end.value)

    # ------------------------------------------------------------ tasks

    async def get_task(self, request: Request, asked: tasks.TaskParams) -> HandlerResult:
        """How a call stands that has become a task."""
        _, call = await _find_task(request, asked)
        call.take_news()
        fields = tasks.task_fields(asked.task_id, call)
        if call.outcome is not None and fields["status"] == "completed":
            result = self._tool_result(call.outcome, call.name)
            fields["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        elif isinstance(call.outcome, CallFailed) and fields["status"] == "failed":
            fields["error"] = {"code": types.INTERNAL_ERROR, "message": self._service.explain(call.outcome.error)}
        return fields

    async def update_task(self, request: Request, asked: tasks.TaskParams) -> types.EmptyResult:
        """Deliver answers to the questions of a task."""
        _, call = await _find_task(request, asked)
        call.take_news()
        call.answer(answers_of(asked.input_responses))
        return types.EmptyResult()

    async def cancel_task(self, request: Request, asked: tasks.TaskParams) -> types.EmptyResult:
        """End a task."""
        session, call = await _find_task(request, asked)
        call.take_news()
        if call.outcome is None:
            call.is_cancelled = True
            await session.cancel(call)
        return types.EmptyResult()

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
        return cast(types.GetPromptResult, await self._make(request, work, asked, given))

    async def _make(
        self, request: Request, work: Work, asked: types.InputResponseRequestParams, given: Mapping[str, Any]
    ) -> Any:
        """The result of some work, or a question to the client; its arguments complete others. Raises MCPError."""
        if asked.request_state is None:
            _session(request).given.keep(work.name, given)
        end = await _carried_out(request, work, asked)
        if isinstance(end, CallFailed):
            raise MCPError(types.INTERNAL_ERROR, self._service.explain(end.error))
        return end.value if isinstance(end, CallSucceeded) else end

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
        work = HandlerCall(made.name, made.agent, made.handler.event, payload, partial(contents_of, asked.uri))
        return cast(types.ReadResourceResult, await self._make(request, work, asked, payload))

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
    request: Request, work: Work, asked: types.InputResponseRequestParams, task_after_s: float | None = None
) -> CallSucceeded | CallFailed | types.InputRequiredResult | str:
    """Run work in the session of a request, or continue the call that the client comes back to.

    When the request is cancelled, so is the work that it has begun.

    Returns:
        How it ended, or what the client is asked, or the id of the task that it has become.

    Raises:
        MCPError: the client cannot do what the work needs.
    """
    answers, comes_back = answers_of(asked.input_responses), asked.request_state is not None
    try:
        session, call = (
            await _find_call(request, asked.request_state or "") if comes_back else (_session(request), None)
        )
        if call is None:
            # Over stdio the client has started this process, and its person says what may be done by it.
            asks, is_local = can_ask(request), request.request is None
            call = await session.begin(work, asks=asks, approves=asks and is_local)
    except UnknownCallError as error:
        raise _unknown_call(error) from error
    except KoiError as error:
        return CallFailed(error)
    end: CallSucceeded | CallFailed | Unfinished | None = None
    try:
        end = await stream_to_client(request, call, answers, task_after_s)
    finally:
        if isinstance(end, Unfinished) or (end is None and comes_back):
            session.hold(call)
        else:
            call.end()
    is_modern = request.protocol_version in MODERN_PROTOCOL_VERSIONS
    if is_modern and not call.asks and isinstance(end, CallFailed) and isinstance(end.error, NobodyToAskError):
        tasks.require_capability(
            request, types.ClientCapabilities(elicitation=types.ElicitationCapability()), end.error
        )
    if isinstance(end, CallSucceeded) and call.name:
        return CallSucceeded(work.as_result(end.value))
    if not isinstance(end, Unfinished):
        return end
    state = f"{session.handle}.{call.id}"
    questions: types.InputRequests = {key: form_of(question) for key, question in call.questions.items()}
    return types.InputRequiredResult(input_requests=questions, request_state=state) if questions else state


def _unknown_call(error: UnknownCallError) -> MCPError:
    return MCPError(types.INVALID_PARAMS, str(error), {SESSION_HANDLE: None})


async def _find_call(request: Request, state: str) -> tuple[McpSession, ExposedCall]:
    """The call that a client comes back to, by the state that it was given. Raises UnknownCallError.

    A handle is no secret where the service knows its users: they see sessions of their own alone. Elsewhere it
    cannot be guessed.
    """
    handle, _, id = state.rpartition(".")
    if not handle:
        raise UnknownCallError
    session = _session(request, handle)
    return session, await session.rejoin(id)


async def _find_task(request: Request, asked: tasks.TaskParams) -> tuple[McpSession, ExposedCall]:
    """The call that is a task. Raises MCPError where the client does not know tasks, or there is none of the id."""
    if not tasks.has_tasks(request):
        tasks.require_capability(request, types.ClientCapabilities(extensions={tasks.TASKS: {}}))
    tasks.require_same_name(request, asked.task_id)
    try:
        return await _find_call(request, asked.task_id)
    except UnknownCallError as error:
        raise _unknown_call(error) from error


def _session(request: Request, handle: str = "") -> McpSession:
    """The session of a request: that of its handle or connection, or the only one of a process that a client owns.

    A request of a protocol without sessions begins one, which ends with it unless the client may come back.

    Raises:
        UnknownCallError: there is none with the handle.
    """
    sessions: Sessions = request.lifespan_context
    is_modern, connection = request.protocol_version in MODERN_PROTOCOL_VERSIONS, connection_of(request)
    if is_modern and request.request is None:
        return sessions.only()
    if SESSION not in connection.state:
        wanted = (request.meta or {}).get(SESSION_HANDLE)
        session = connection.state[SESSION] = sessions.open(handle or (wanted if isinstance(wanted, str) else ""))
        session.is_kept = session.is_kept or (is_modern and wanted is not None)
        connection.exit_stack.callback(sessions.release if is_modern else sessions.close, session)
    found: McpSession = connection.state[SESSION]
    return found


async def _tell_handle(ctx: Request, call_next: CallNext) -> HandlerResult:
    """Add the handle of its session to the answer to a request that has asked for it."""
    result: Any = await call_next(ctx)
    session = connection_of(ctx).state.get(SESSION)
    if session is not None and SESSION_HANDLE in (ctx.meta or {}) and isinstance(result, dict):
        return {**result, "_meta": {**result.get("_meta", {}), SESSION_HANDLE: session.handle}}
    return cast(HandlerResult, result)


def _find_named(known: Mapping[str, Named], name: str, kind: str) -> Named:
    """Something that is offered under a name. Raises MCPError with a suggestion."""
    if name not in known:
        raise MCPError(types.INVALID_PARAMS, f"there is no {kind} `{name}`: {suggestion(name, list(known), kind)}")
    return known[name]
