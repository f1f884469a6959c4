"""Live messages of a run: server-sent events that resume at the reader's last one, and a WebSocket with commands."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, suppress

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from koi_lang.errors import KoiError
from koi_lang.rpc.dispatcher import refusal
from koi_lang.rpc.framing import message_in
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.service.attached import RunHandle
from koi_lang.service.feed import UNREAD, MessageView, Subscription
from koi_lang.service.user_view import handle_as, view_of
from koi_lang.service.users import User
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.messages import CutOffMessage
from koi_lang.web.answers import HttpError
from koi_lang.web.gate import SUBPROTOCOL
from koi_lang.web.request_context import run_of, user_of

PING_S = 20.0
PING = b": ping\n\n"
ID = re.compile(r"(\d{1,15})(?:\.\d{1,15})?", re.ASCII)
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# Codes with which a connection is closed: https://www.rfc-editor.org/rfc/rfc6455#section-7.4
GOING_AWAY = 1001
UNSUPPORTED = 1003
TRY_LATER = 1013
REFUSED = 4004


async def follow_run(request: Request) -> Response:
    """The messages of a run as server-sent events."""
    session = run_of(request)
    since = position_of(request)
    view = view_of(user_of(request))
    return StreamingResponse(_events(session, since, view), media_type="text/event-stream", headers=HEADERS)


def position_of(request: HTTPConnection) -> int:
    """The number of the entry that the reader has; 0 for none. Raises HttpError."""
    given = request.headers.get("last-event-id") or request.query_params.get("since") or "0"
    found = ID.fullmatch(given)
    if found is None:
        help = "Send the id of a message, such as 17 or 17.3, or leave it out."
        raise HttpError(400, "invalid_request", f"`{given[:40]}` is no position in a run", help=help)
    return int(found[1])


async def _events(session: RunHandle, since: int, view: MessageView) -> AsyncIterator[bytes]:
    reader = session.feed.subscribe(since, view)
    last, behind = since, 0
    try:
        yield _event(f"{since}.0", encode(session.greeting()))
        async for messages in reader.listen(PING_S):
            events = []
            for number, message in messages:
                last, behind = (last, behind + 1) if number is None else (number, 0)
                events.append(_event(f"{last}.{behind}" if behind else str(last), message))
            yield b"".join(events) or PING
        if reader.is_cut_off:
            yield _event(f"{last}.{behind + 1}", encode(CutOffMessage(type="cut_off", reason=UNREAD)))
    finally:
        reader.close()


def _event(id: str, message: bytes) -> bytes:
    return b"id: " + id.encode() + b"\ndata: " + message + b"\n\n"


def encode(message: Mapping[str, object]) -> bytes:
    """A message of the service itself as JSON."""
    return json.dumps(message, ensure_ascii=False).encode()


# ---------------------------------------------------------------- the WebSocket


async def talk_with_run(socket: WebSocket) -> None:
    """Follow a run and carry out commands, until the client leaves."""
    user, is_there = user_of(socket), False
    with _until_left():
        await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
        is_there = True
    if not is_there:
        return
    try:
        session, since = run_of(socket), position_of(socket)
    except KoiError as error:
        with _until_left():
            await socket.close(REFUSED, error.message[:120])
        return
    reader = session.feed.subscribe(since, view_of(user))
    try:
        await _send(socket, session.greeting())
        async with together() as group:
            telling = group.create_task(_tell(socket, reader))
            with _until_left():
                while (frame := await socket.receive())["type"] != "websocket.disconnect":
                    if frame.get("text") is None:
                        await socket.close(UNSUPPORTED, "commands are texts, and not binary")
                        break
                    group.create_task(_answer(socket, session, user, frame["text"]))
            telling.cancel()
    finally:
        reader.close()


async def _tell(socket: WebSocket, reader: Subscription) -> None:
    with _until_left():
        async for messages in reader.listen(PING_S):
            for _, message in messages:
                await socket.send_text(message.decode())
        if reader.is_cut_off:
            await _send(socket, CutOffMessage(type="cut_off", reason=UNREAD))
        await socket.close(TRY_LATER if reader.is_cut_off else GOING_AWAY)


async def _answer(socket: WebSocket, session: RunHandle, user: User, text: str) -> None:
    try:
        message = message_in(text.encode())
    except SessionError as error:
        response = refusal(error)
    else:
        response = dict(await handle_as(user, session, message))
    await _send(socket, response)


async def _send(socket: WebSocket, message: Mapping[str, object]) -> None:
    with _until_left():
        await socket.send_text(encode(message).decode())


def _until_left() -> AbstractContextManager[None]:
    """What can be sent and read until the client leaves, which it may do at any time, also within the handshake."""
    return suppress(WebSocketDisconnect, OSError, RuntimeError)
