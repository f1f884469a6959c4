"""`POST /agui`: a message of a person, or answers to open questions, with a stream of AG-UI events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ag_ui.core import BaseEvent, ResumeEntry, RunAgentInput, ToolMessage, UserMessage
from ag_ui.encoder import EventEncoder
from anyio import CancelScope
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError
from koi_lang.runtime.actions.client_tools import ERROR, AgentFields, ClientOffer, ClientTool, ContextEntry, use_offer
from koi_lang.runtime.guards.size import require_room, written_weight
from koi_lang.runtime.host import Approval
from koi_lang.runtime.schema import problems
from koi_lang.service.feed import UNREAD
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import ASK_AGAIN_S, HostedSession
from koi_lang.service.known_state import read_state
from koi_lang.service.threads import ThreadRow, ThreadTable
from koi_lang.service.user_view import view_of
from koi_lang.service.users import User
from koi_lang.sessions import calls
from koi_lang.sessions.calls import begin_message, message_with_images
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.agui.projection import TOOL, Projection
from koi_lang.web.answers import HttpError
from koi_lang.web.request_context import body_of, host_of, user_of

PROTOCOL = "agui"
# How often it is looked whether the client is still there, and how many times it is silent until it is told so.
LOOK_S = 1.0
LOOKS = 20
PING = ": ping\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
MAX_THREAD_CHARS = 200
GiveAnswer = Callable[[], Awaitable[object]]


async def answer(request: Request) -> Response:
    """Carry out a run of AG-UI."""
    given = await _input_of(request)
    offer = _offer_in(given)
    host, user = host_of(request), user_of(request)
    program = host.programs.find(request.path_params.get("program", ""))
    threads = ThreadTable(host.database)
    session, row = await _session_of(host, user, program.name, given, threads)
    known = await asyncio.to_thread(read_state, session.feed.journal, row.told or None)
    await session.wake()
    if given.messages and given.messages[-1].role == "tool":
        await session.wait_for_rest(ASK_AGAIN_S)
    shared = partial(session.state_of_agents, host.settings.page_state)
    for agent, fields in shared().items():
        known.agents.setdefault(agent, {}).update(fields)
    answers = list(_answers_in(given, session))
    for give in answers:
        await give()
    if not answers:
        offer = replace(offer, state=_state_in(given, session, host.settings.page_state))
    call = session.call if answers else await _begin_call(given, session, offer)
    projection = Projection(given, known.agents, shared, "" if call is None else call.id)
    reader = AguiStream(request, session, projection, known.last)
    stream = reader.encode(lambda told: threads.keep(replace(row, told=told)))
    return StreamingResponse(stream, media_type=EventEncoder().get_content_type(), headers=HEADERS)


async def _input_of(request: Request) -> RunAgentInput:
    """The body of the request. Raises HttpError."""
    body = await body_of(request)
    try:
        given = RunAgentInput.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise HttpError(400, "invalid_request", f"`{where}`: {first['msg'].lower()}") from error
    if not given.thread_id or len(given.thread_id) > MAX_THREAD_CHARS:
        raise HttpError(400, "invalid_request", f"`threadId` has 1 to {MAX_THREAD_CHARS} characters")
    return given


def _offer_in(given: RunAgentInput) -> ClientOffer:
    """The tools and the context that a page sends. Raises UsageError."""
    tools = [ClientTool(name=t.name, description=t.description, parameters=t.parameters) for t in given.tools or ()]
    context = [ContextEntry(description=each.description, value=each.value) for each in given.context or ()]
    return ClientOffer.of(tools, context)


def _state_in(given: RunAgentInput, session: HostedSession, allowed: Sequence[str]) -> AgentFields:
    """The fields that a page sets: those of its state that it may, as they are declared. Raises KoiError."""
    shared, taken = session.state_of_agents(allowed), dict[str, dict[str, object]]()
    for name, sent in given.state.items() if isinstance(given.state, dict) else ():
        known = shared.get(name, {})
        for field, value in sent.items() if isinstance(sent, dict) else ():
            if {name, f"{name}.{field}"}.isdisjoint(allowed) or (field in known and known[field] == value):
                continue
            if field not in known:
                help = suggestion(field, list(known), "field")
                raise HttpError(400, "invalid_request", f"the state of `{name}` has no field `{field}`", help=help)
            if wrong := list(problems(value, session.types_of_state(name).get(field, {}), field)):
                raise HttpError(400, "invalid_request", f"the state of `{name}`: {'; '.join(wrong)}")
            taken.setdefault(name, {})[field] = value
    for name, fields in taken.items():
        require_room(written_weight({**shared[name], **fields}))
    return taken


async def _session_of(
    host: SessionHost, user: User, program: str, given: RunAgentInput, threads: ThreadTable
) -> tuple[HostedSession, ThreadRow]:
    """The session of a thread, which is begun with its first message. Raises ServiceError."""
    name = f"{PROTOCOL}/{program}"
    row = threads.find(name, given.thread_id, user.name)
    if row is not None:
        return host.find(row.run, user), row
    session, _ = await host.start(user, program, None, _text_of(_last_message(given)))
    row = ThreadRow(name, given.thread_id, user.name, session.id)
    threads.keep(row)
    return session, row


# ---------------------------------------------------------------- what is asked


async def _begin_call(given: RunAgentInput, session: HostedSession, offer: ClientOffer) -> HeldCall:
    """Begin the call of the user's last message, with the offer of the page. Raises KoiError."""
    message = _last_message(given)
    props = given.forwarded_props if isinstance(given.forwarded_props, dict) else {}
    name = props.get("handler", "")
    # Images that stand elsewhere are not fetched.
    parts = [] if isinstance(message.content, str) else [part for part in message.content if part.type == "image"]
    sources = [part.source for part in parts if part.source.type == "data"]
    images = [{"media_type": source.mime_type, "data": source.value} for source in sources]
    said = message_with_images(_text_of(message), images)
    if any(TOOL in request for request in session.feed.requests):  # the page has left a tool of it open
        await session.perform(calls.abort)
    with use_offer(offer):
        return await session.begin_call(partial(begin_message, said=said, name=name if isinstance(name, str) else ""))


def _answers_in(given: RunAgentInput, session: HostedSession) -> Iterator[GiveAnswer]:
    """Functions that answer the open requests of a session. Raises HttpError."""
    if given.resume:
        open_ones = {request["id"]: request for request in session.feed.requests}
        yield from (_answer_to(session, entry, open_ones.get(entry.interrupt_id)) for entry in given.resume)
        return
    waiting = {"/".join(request["path"]): request["id"] for request in session.feed.requests if TOOL in request}
    results = [each for each in given.messages if isinstance(each, ToolMessage) and each.tool_call_id in waiting]
    for message in results:
        text = message.content if isinstance(message.content, str) else _text_in(message.content)
        text = text if message.error is None else json.dumps({ERROR: message.error})
        yield partial(session.perform, calls.answer, request=waiting[message.tool_call_id], answer=text)
    if results and given.messages[-1].role == "user":
        yield partial(session.perform, calls.steer, _text_of(_last_message(given)))
    if not results and given.messages and given.messages[-1].role == "tool":
        help = "Send a message of the user: the call that asked for it has ended."
        raise HttpError(409, "unknown_request", "no tool of the page waits for a result", help=help)


def _answer_to(session: HostedSession, entry: ResumeEntry, request: Mapping[str, Any] | None) -> GiveAnswer:
    """A function that answers an open request; the session refuses unknown ones."""
    payload, is_cancelled = entry.payload, entry.status == "cancelled"
    if request is not None and request["type"] == "approval_request":
        decision, reason = _decision_in(None if is_cancelled else payload)
        return partial(session.perform, calls.approve, request=entry.interrupt_id, decision=decision, reason=reason)
    if is_cancelled:
        return partial(session.perform, calls.abort)
    value = _field_value(payload, "answer")
    value = payload if value is None else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return partial(session.perform, calls.answer, request=entry.interrupt_id, answer=text)


def _decision_in(payload: Any) -> tuple[Approval, str]:
    """The decision in an approval; any unclear answer is a no."""
    if payload is True or _field_value(payload, "approved") is True:
        return "yes", ""
    given = payload if isinstance(payload, str) else _field_value(payload, "decision")
    decision: Approval = "yes" if given == "yes" else "always" if given == "always" else "no"
    reason = _field_value(payload, "reason")
    return decision, reason if isinstance(reason, str) else ""


def _field_value(payload: Any, name: str) -> Any:
    return payload.get(name) if isinstance(payload, dict) else None


def _last_message(given: RunAgentInput) -> UserMessage:
    """The last message of the person. Raises HttpError."""
    found = next((message for message in reversed(given.messages) if message.role == "user"), None)
    if not isinstance(found, UserMessage):
        raise HttpError(400, "invalid_request", "there is no message of a user", help="Send one, or `resume`.")
    return found


def _text_of(message: UserMessage) -> str:
    return message.content if isinstance(message.content, str) else _text_in(message.content)


def _text_in(parts: Iterable[Any]) -> str:
    return "\n".join(part.text for part in parts if part.type == "text")


# ---------------------------------------------------------------- what is told


class AguiStream:
    """The events of a run; a client that leaves before its end ends the call.

    Args:
        since: the number of the entry behind which it begins.
    """

    def __init__(self, request: Request, session: HostedSession, projection: Projection, since: int) -> None:
        self._request = request
        self._session = session
        self._projection = projection
        self._told = since

    async def encode(self, keep: Callable[[int], None]) -> AsyncIterator[str]:
        """The events as server-sent ones; `keep` is given the number of the last entry that was told."""
        encoder = EventEncoder()
        try:
            async for event in self._events():
                yield PING if event is None else encoder.encode(event)
        finally:
            keep(self._told)
            if not self._projection.is_over:
                with CancelScope(shield=True), suppress(KoiError):
                    await self._session.perform(calls.abort)

    async def _events(self) -> AsyncIterator[BaseEvent | None]:
        """The events, and None where there was none for a while."""
        reader, silent = self._session.feed.subscribe(self._told, view_of(user_of(self._request))), 0
        try:
            for event in self._projection.begin():
                yield event
            async for messages in reader.listen(LOOK_S):
                for number, message in messages:
                    self._told, silent = number or self._told, 0
                    for event in self._projection.translate(json.loads(message), self._session.feed.requests):
                        yield event
                    if self._projection.is_over:
                        return
                if messages:
                    continue
                if await self._request.is_disconnected():
                    return
                silent = (silent + 1) % LOOKS
                if silent == 0:
                    yield None
            for event in self._projection.fail(UNREAD, "cut_off"):
                yield event
        finally:
            reader.close()
