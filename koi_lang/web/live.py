"""Live messages of a run: server-sent events that resume at the reader's last one."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse

from koi_lang.service.attached import RunHandle
from koi_lang.service.feed import UNREAD, MessageView
from koi_lang.service.user_view import view_of
from koi_lang.sessions.messages import CutOffMessage
from koi_lang.web.answers import HttpError
from koi_lang.web.request_context import run_of, user_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PING_S = 20.0
PING = b": ping\n\n"
ID = re.compile(r"(\d{1,15})(?:\.\d{1,15})?", re.ASCII)
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


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
    yield _event(f"{since}.0", encode(session.greeting()))
    reader = session.feed.subscribe(since, view)
    last, behind = since, 0
    try:
        async for item in reader.listen(PING_S):
            if item is None:
                yield PING
                continue
            number, message = item
            last, behind = (last, behind + 1) if number is None else (number, 0)
            yield _event(f"{last}.{behind}" if behind else str(last), message)
        if reader.is_cut_off:
            yield _event(f"{last}.{behind + 1}", encode(CutOffMessage(type="cut_off", reason=UNREAD)))
    finally:
        reader.close()


def _event(id: str, message: bytes) -> bytes:
    return b"id: " + id.encode() + b"\ndata: " + message + b"\n\n"


def encode(message: Mapping[str, object]) -> bytes:
    """A message of the service itself as JSON."""
    return json.dumps(message, ensure_ascii=False).encode()
