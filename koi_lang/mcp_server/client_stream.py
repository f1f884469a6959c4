"""The stream of a call's news to its client, until there is a result or an open question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import anyio
from mcp import types
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from koi_lang.mcp_server.call import (
    FORM_ID,
    CallFailed,
    CallSucceeded,
    ExposedCall,
    Fields,
    LineWritten,
    Question,
    StepBegun,
)
from koi_lang.runtime.host import NobodyToAskError

Request = ServerRequestContext[Any, Any]
LEVEL = "koi log level"
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
# Answers by the keys of questions; None where the person declines.
Answers: TypeAlias = dict[str, Fields | None]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A call goes on, or waits for answers, when its request is answered."""


async def stream_to_client(
    request: Request, call: ExposedCall, answers: Answers, task_after_s: float | None = None
) -> CallSucceeded | CallFailed | Unfinished:
    """Send the news of a call to the client of a request.

    Clients of newer protocols are not asked directly: the call is unfinished, and they come back with answers.

    Args:
        answers: what the client has brought, by the keys of questions.
        task_after_s: how long it waits for the end; None for as long as it takes.
    """
    is_modern = request.protocol_version in MODERN_PROTOCOL_VERSIONS
    call.answer(answers)
    while call.outcome is None and not (is_modern and call.questions and call.news.empty()):
        try:
            async with asyncio.timeout(task_after_s):
                news = await call.news.get()
        except TimeoutError:
            if call.id:
                return Unfinished()
            continue
        if isinstance(news, LineWritten):
            await _log(request, news.level, news.text)
        elif isinstance(news, Question) and not is_modern:
            await _ask(request, news)
        else:
            call.take(news)
            call.answer(answers)
        if isinstance(news, StepBegun):
            await request.session.report_progress(call.steps, message=news.text)
    return call.outcome or Unfinished()


def can_ask(request: Request) -> bool:
    """Whether the client of a request can put a form in front of a person."""
    capabilities = request.session.client_capabilities
    asked = capabilities.elicitation if capabilities is not None else None
    return asked is not None and (asked.form is not None or asked.url is None)


def answers_of(responses: Mapping[str, Any] | None) -> Answers:
    """The answers of a returning client, without invalid ones."""
    found: Answers = {}
    for key, response in (responses or {}).items():
        with suppress(ValidationError):
            found[key] = _answer(types.ElicitResult.model_validate(response))
    return found


async def _ask(request: Request, question: Question) -> None:
    """Ask a client now; given up when nobody waits for the answer any more."""
    form = form_of(question).params
    assert isinstance(form, types.ElicitRequestFormParams), "questions are forms"
    with anyio.CancelScope() as scope:
        question.answer.add_done_callback(lambda _: scope.cancel())
        try:
            result = await request.session.elicit_form(form.message, form.requested_schema, request.request_id)
        except MCPError as error:
            question.settle(NobodyToAskError(f"the client could not ask: {error}"))
        else:
            question.settle(_answer(result))


def form_of(question: Question) -> types.ElicitRequest:
    """A question as the protocol has it."""
    schema = {"type": "object", "properties": {}, **question.form}
    schema.pop(FORM_ID, None)
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question.text, requested_schema=schema))


def _answer(result: types.ElicitResult) -> Fields | None:
    """The answers of a client; None where its person declines."""
    return dict(result.content or {}) if result.action == "accept" else None


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
