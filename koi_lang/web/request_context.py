"""The context of a request: its user, the host of the service, the session in its path, and its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from koi_lang.http_server.address import Address
from koi_lang.service.attached import RunHandle
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import User
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.answers import HttpError
from koi_lang.web.json_bodies import MAX_BYTES, BadBodyError, object_in, read_body

# How long a request may wait for the end of a call, in seconds.
MAX_WAIT_S = 60


def host_of(request: HTTPConnection) -> SessionHost:
    """The host of the service."""
    host: SessionHost = request.app.state.host
    return host


def address_of(request: HTTPConnection) -> Address:
    """Where the service listens, and where clients reach it."""
    address: Address = request.app.state.address
    return address


def user_of(request: HTTPConnection) -> User:
    """The user of a request."""
    user: User = request.state.user
    return user


def session_of(request: HTTPConnection) -> HostedSession:
    """The session that the path names. Raises ServiceError."""
    return host_of(request).find(request.path_params["id"], user_of(request))


def run_of(request: HTTPConnection) -> RunHandle:
    """The run that the path names, also one of another process. Raises ServiceError."""
    return host_of(request).find_run(request.path_params["id"], user_of(request))


def number_of(request: Request, name: str, usual: int, most: int) -> int:
    """A number of the query, from 1 to `most`. Raises HttpError."""
    given = request.query_params.get(name)
    if given is None:
        return usual
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or not 0 < int(given) <= most:
        raise HttpError(400, "invalid_request", f"`{name}` is no such number", help=f"Write one from 1 to {most}.")
    return int(given)


def wait_of(request: Request) -> int:
    """For how many seconds the client waits for the end of a call. Raises HttpError."""
    return number_of(request, "wait", 0, MAX_WAIT_S) if request.query_params else 0


def with_known_query(endpoint: Callable[[Request], Awaitable[Any]], names: Sequence[str]) -> Callable[..., Any]:
    """An endpoint that refuses fields of the query but those with some names."""

    async def answer(request: Request) -> Any:
        unknown = next((name for name in request.query_params if name not in names), None)
        if unknown is not None:
            help = f"There are {', '.join(names)}." if names else "Send none."
            raise HttpError(400, "invalid_request", f"there is no field `{unknown}` of the query", help=help)
        return await endpoint(request)

    return answer


async def body_of(request: Request, most: int = MAX_BYTES) -> dict[str, Any]:
    """The object that a request brings; none is an empty one. Raises HttpError.

    Args:
        most: bytes that it may have.
    """
    try:
        body = await read_body(request.stream(), request.headers.get("content-length"), most)
        content = object_in(body)
    except BadBodyError as error:
        code = "too_large" if error.status == 413 else "parse_error"
        raise HttpError(error.status, code, error.message, help=error.help) from error
    if body and request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpError(415, "not_json", "the body is not JSON", help="Send Content-Type: application/json.")
    return content


async def body_with(request: Request, *fields: str, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The object that a request brings. Raises HttpError for a field that is not known."""
    body = await body_of(request, max_bytes)
    unknown = next((name for name in body if name not in fields), None)
    if unknown is not None:
        help = f"Send {', '.join(fields)}." if fields else "Send none."
        raise HttpError(400, "invalid_request", f"there is no field `{unknown}`", help=help)
    return body


def started_answer(session: HostedSession, call: HeldCall | str | None = None) -> Response:
    """The answer to a request that has begun a session, or a call in it, which may be known by its id alone."""
    id = call.id if isinstance(call, HeldCall) else call
    return JSONResponse({**session.listing().as_data(), "call": id}, 202)
