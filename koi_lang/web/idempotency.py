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
LONGEST_KEY = 200
JSON = "application/json"
Begin = Callable[[str], Awaitable[Response]]


async def answer_once(request: Request, asked: Any, begin: Begin) -> Response:
    """The answer to a request that begins a run; the same as before where its key is known. Raises HttpError.

    Args:
        asked: what tells the request from others.
        begin: carries it out, given the id of the run.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return await begin(new_run())
    if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise HttpError(400, "invalid_request", "the key is empty, too long or no text", help="A UUID is one.")
    host, user = host_of(request), user_of(request)
    async with host.one_at_a_time((user.name, key)):
        return await _answer_keyed(host, user, key, digest_of(asked), begin)


async def _answer_keyed(host: SessionHost, user: User, key: str, digest: str, begin: Begin) -> Response:
    known = host.keyed.claim(user.name, key, digest, run := new_run())
    if known is None:
        return await _carry_out(host, user, key, run, begin)
    if known.digest != digest:
        raise HttpError(409, "key_in_use", "the key was sent with another request", help="Take a new one for each.")
    if known.answer:
        return Response(known.answer, 202, {REPLAYED: "true"}, JSON)
    # The process has ended before it had answered; what has begun by then is not begun again.
    begun = await host.find_begun(known.run, user)
    if begun is not None:
        return started_answer(begun)
    return await _carry_out(host, user, key, known.run, begin)


async def _carry_out(host: SessionHost, user: User, key: str, run: str, begin: Begin) -> Response:
    try:
        answer = await begin(run)
    except BaseException:
        host.keyed.forget(user.name, key)
        raise
    if answer.status_code < 300:
        host.keyed.settle(user.name, key, bytes(answer.body).decode())
    else:
        host.keyed.forget(user.name, key)
    return answer
