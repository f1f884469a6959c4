"""`Idempotency-Key`: a request that is sent again, also after a crash, starts nothing a second time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from koi_lang.service.host import SessionHost, new_run
from koi_lang.service.idempotency import digest_of
from koi_lang.service.users import User
from koi_lang.web.answers import HttpError
from koi_lang.web.request_context import host_of, started_answer, user_of

HEADER, REPLAYED = "idempotency-key", "Idempotency-Replayed"
MAX_KEY_CHARS = 200
JSON = "application/json"
Begin = Callable[[str], Awaitable[Response]]
# The answer to what has begun under an id; None where nothing has.
FindBegun = Callable[[str], Awaitable[Response | None]]


async def answer_once(request: Request, asked: Any, begin: Begin, find: FindBegun | None = None) -> Response:
    """The answer to a request that begins something; the same as before where its key is known. Raises HttpError.

    Args:
        asked: what tells the request from others.
        begin: carries it out, given the id of the run or call that it begins; empty for any.
        find: looks for what an earlier process has begun; without it that is a run.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return await begin("")
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise HttpError(400, "invalid_request", "the key is empty, too long or no text", help="A UUID is one.")
    host = host_of(request)
    user = user_of(request)
    digest = digest_of(asked)
    id = new_run()
    async with host.one_at_a_time((user.name, key)):
        known = host.keyed.claim(user.name, key, digest, id)
        if known is not None and known.digest != digest:
            raise HttpError(409, "key_in_use", "the key was sent with another request", help="Take a new one for each.")
        if known is not None and known.answer:
            return Response(known.answer, 202, {REPLAYED: "true"}, JSON)
        if known is not None:
            # The process has ended before it had answered; what has begun by then is not begun again.
            id = known.run
            begun = await (find(id) if find is not None else _find_run(host, user, id))
            if begun is not None:
                return begun
        return await _carry_out(host, user, key, id, begin)


async def _find_run(host: SessionHost, user: User, run: str) -> Response | None:
    session = await host.find_begun(run, user)
    return None if session is None else started_answer(session)


async def _carry_out(host: SessionHost, user: User, key: str, id: str, begin: Begin) -> Response:
    try:
        answer = await begin(id)
    except BaseException:
        host.keyed.forget(user.name, key)
        raise
    if answer.status_code < 300:
        host.keyed.settle(user.name, key, bytes(answer.body).decode())
    else:
        host.keyed.forget(user.name, key)
    return answer
