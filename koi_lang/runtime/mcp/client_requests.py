"""Requests of a server during its work for an agent: to its model, or to the person; both need the person's consent."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mcp.client.session import ClientRequestContext
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    SamplingMessage,
    TextContent,
)

from koi_lang.errors import KoiError
from koi_lang.llm.messages import Message, Request
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.forms import Form
from koi_lang.runtime.guards.policy import Access, Verdict
from koi_lang.runtime.host import ApprovalRequest, NobodyToAskError, clip_text
from koi_lang.runtime.mcp.caller import Caller
from koi_lang.runtime.mcp.permissions import model_permission
from koi_lang.runtime.mcp.safe_text import one_line
from koi_lang.runtime.model_calls.images import medium
from koi_lang.runtime.replay.location import branch

T = TypeVar("T")
REFUSED = -1
MAX_SHOWN = 500


class ClientRequests:
    """The requests of one server. They are carried out for the call that began last, and refused without one."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._callers: list[Caller] = []

    @contextmanager
    def of(self, caller: Caller) -> Iterator[None]:
        """Take requests on behalf of a caller for a while."""
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)

    # ------------------------------------------------------------ its model

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Have the agent's model answer a conversation of the server."""
        if not self._callers:
            return ErrorData(code=REFUSED, message="no agent is calling this server now")
        caller = self._callers[-1]
        try:
            return await _as(caller, self._answer_sampling(caller, params))
        except KoiError as error:
            return ErrorData(code=REFUSED, message=error.message)

    async def _answer_sampling(
        self, caller: Caller, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        request = _request(params)
        verdict = await self._may_ask_model(caller, request)
        if not verdict.is_allowed:
            why = (
                "nobody can be asked to allow it" if verdict.outcome == "unanswered" else "the person did not allow it"
            )
            return ErrorData(code=REFUSED, message=why)
        models = caller.agent.run.models
        async with models.stream_answer(caller.agent, request, caller.spending) as arriving:
            text = await arriving.text()
        content, model = TextContent(type="text", text=text), models.of(caller.agent).model
        return CreateMessageResult(role="assistant", content=content, model=model, stop_reason="endTurn")

    async def _may_ask_model(self, caller: Caller, request: Request) -> Verdict:
        run = caller.agent.run
        text = one_line(" / ".join([request.system, *(message.text for message in request.messages)]), MAX_SHOWN)
        what = f"let the MCP server `{self._server}` ask its model"
        wanted = ApprovalRequest(what, text, caller.agent.name)
        access = Access(request=wanted, permission=model_permission(self._server))
        return await run.policy.decide(access)

    # ------------------------------------------------------------ the person

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Put a question of the server to the person; declined where nobody answers."""
        if not self._callers:
            return ElicitResult(action="decline")
        caller = self._callers[-1]
        try:
            return await _as(caller, self._answer_elicitation(caller, params))
        except NobodyToAskError:
            return ElicitResult(action="decline")

    async def _answer_elicitation(self, caller: Caller, params: ElicitRequestParams) -> ElicitResult:
        run, message = caller.agent.run, one_line(params.message, MAX_SHOWN)
        if params.mode == "url":
            page = one_line(params.url, MAX_SHOWN)
            what = f"have you open a page for the MCP server `{self._server}`"
            request = ApprovalRequest(what, f"{message} {page}", caller.agent.name)
            verdict = await run.policy.decide(Access(request=request))
            return ElicitResult(action="accept" if verdict.is_allowed else "decline")
        form = Form(f"The MCP server `{self._server}` asks: {message}", params.requested_schema)
        content = await form.fill_in(run.host.ask)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)


def _request(params: CreateMessageRequestParams) -> Request:
    messages = tuple(_message(message) for message in params.messages)
    system = params.system_prompt or ""
    return Request(system, messages, temperature=params.temperature, max_tokens=params.max_tokens)


def _message(message: SamplingMessage) -> Message:
    """A turn of the server's conversation; a model is told of images, not shown them."""
    said: list[str] = []
    for content in message.content_as_list:
        raw = content.model_dump(mode="json", by_alias=True)
        said.append(str(raw["text"]) if raw["type"] == "text" else medium(raw) or f"[{clip_text(raw['type'])}]")
    return Message(message.role, "\n".join(said))


async def _as(caller: Caller, work: Coroutine[Any, Any, T]) -> T:
    """Do something in the place of a caller, so that it counts for the caller's run."""
    async with together() as group:
        task = group.create_task(work, context=caller.context.run(branch))
    return task.result()
