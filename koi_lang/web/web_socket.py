"""A run over a WebSocket: its messages down, the commands of `koi rpc` up, each answered by its response."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from koi_lang.errors import KoiError
from koi_lang.rpc.dispatcher import refusal
from koi_lang.rpc.framing import message_in
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.service.attached import RunHandle
from koi_lang.service.feed import UNREAD, Subscription
from koi_lang.service.user_view import handle_as, view_of
from koi_lang.service.users import User
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.messages import CutOffMessage
from koi_lang.web.gate import SUBPROTOCOL
from koi_lang.web.live import PING_S, encode, position_of
from koi_lang.web.request_context import run_of, user_of

# Codes with which a connection is closed: https://www.rfc-editor.org/rfc/rfc6455#section-7.4
GOING_AWAY = 1001
UNSUPPORTED = 1003
TRY_LATER = 1013
REFUSED = 4004


async def talk_with_run(socket: WebSocket) -> None:
    """Follow a run and carry out commands, until the client leaves."""
    await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
    user = user_of(socket)
    try:
        session, since = run_of(socket), position_of(socket)
    except KoiError as error:
        await socket.close(REFUSED, error.message[:120])
        return
    await _send(socket, session.greeting())
    reader = session.feed.subscribe(since, view_of(user))
    try:
        async with together() as group:
            telling = group.create_task(_tell(socket, reader))
            with suppress(WebSocketDisconnect):
                while True:
                    frame = await socket.receive()
                    if frame["type"] == "websocket.disconnect":
                        break
                    if frame.get("text") is None:
                        await socket.close(UNSUPPORTED, "commands are texts, and not binary")
                        break
                    group.create_task(_answer(socket, session, user, frame["text"]))
            telling.cancel()
    finally:
        reader.close()


async def _tell(socket: WebSocket, reader: Subscription) -> None:
    async for item in reader.listen(PING_S):
        if item is not None:
            await socket.send_text(item[1].decode())
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
    with suppress(WebSocketDisconnect, RuntimeError):  # the client has left meanwhile
        await socket.send_text(encode(message).decode())
