"""News of a call to what its client is told, until there is a result or the client has to answer a question."""

from __future__ import annotations

from typing import Any, get_args

import anyio
from mcp import types
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from koi_lang.mcp_server.call import ANSWER, CallFailed, CallSucceeded, ExposedCall, LineWritten, Question, StepBegun
from koi_lang.runtime.host import NobodyToAskError

Request = ServerRequestContext[Any, Any]
LEVEL = "koi log level"
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)


async def stream_to_client(
    request: Request, call: ExposedCall
) -> CallSucceeded | CallFailed | types.InputRequiredResult:
    """Tell the client of a request what happens in a call.

    Clients of newer protocols are not asked directly: they get the question as a result, and come back.
    """
    while True:
        match await call.news.get():
            case StepBegun(text):
                call.steps += 1
                await request.session.report_progress(call.steps, message=text)
            case LineWritten(level, text):
                await _log(request, level, text)
            case Question() as question if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
                call.question = question
                return types.InputRequiredResult(input_requests={ANSWER: _form(question)}, request_state=call.id)
            case Question() as question:
                await _ask(request, question)
            case (CallSucceeded() | CallFailed()) as end:
                return end


def can_ask(request: Request) -> bool:
    """Whether the client of a request can put a form in front of a person."""
    capabilities = request.session.client_capabilities
    asked = capabilities.elicitation if capabilities is not None else None
    return asked is not None and (asked.form is not None or asked.url is None)


def give_answer(call: ExposedCall, responses: types.InputResponses | None) -> None:
    """Give a call the answer its client has come back with."""
    assert call.question is not None, "a client comes back only to a question"
    question, call.question = call.question, None
    response = (responses or {}).get(ANSWER)
    question.settle(_answer(response if isinstance(response, types.ElicitResult) else None))


async def _ask(request: Request, question: Question) -> None:
    """Ask a client now; given up when nobody waits for the answer any more."""
    form = _form(question).params
    assert isinstance(form, types.ElicitRequestFormParams), "questions are forms"
    with anyio.CancelScope() as scope:
        question.answer.add_done_callback(lambda _: scope.cancel())
        try:
            result = await request.session.elicit_form(form.message, form.requested_schema, request.request_id)
        except MCPError as error:
            question.settle(NobodyToAskError(f"the client could not ask: {error}"))
        else:
            question.settle(_answer(result))


def _form(question: Question) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {}, **question.form}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question.text, requested_schema=schema))


def _answer(result: types.ElicitResult | None) -> dict[str, Any] | None:
    """The answers of a client; None where its person declines."""
    return dict(result.content or {}) if result is not None and result.action == "accept" else None


def set_level(request: Request, level: types.LoggingLevel) -> None:
    """Remember from which level on the client of a connection wants lines."""
    connection_of(request).state[LEVEL] = level


def connection_of(request: Request) -> Connection:
    """The connection of a request, whose state and end are those of a session.

    The library documents both for handlers, but gives handlers of this kind no public way to the connection.
    """
    return request.session._connection


async def _log(request: Request, level: types.LoggingLevel, text: str) -> None:
    """Send a line to the log of the client, if it wants lines of that level."""
    lowest = connection_of(request).state.get(LEVEL, LEVELS[0])
    allowed = allowed_log_levels(request.protocol_version, request.meta)
    if level not in allowed or LEVELS.index(level) < LEVELS.index(lowest):
        return
    line = types.LoggingMessageNotification(params=types.LoggingMessageNotificationParams(level=level, data=text))
    await request.session.send_notification(line, request.request_id)
