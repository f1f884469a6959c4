"""The context of a request: its user, the host of the service, the session in its path, and its limits."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from koi_lang.http_server.address import Address
from koi_lang.runtime.schema import Schema, is_plainly_fitting, problems, signature_text
from koi_lang.service.attached import RunHandle
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import User
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.answers import HttpError
from koi_lang.web.json_bodies import MAX_BYTES, BadBodyError, object_in, read_body

# The JSON body of a request, which fits the schema of its operation.
JsonBody = Mapping[str, Any]
Endpoint = Callable[..., Awaitable[Response]]
DIGITS = re.compile(r"\d{1,15}", re.ASCII)
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


def number_of(request: Request, name: str, usual: int) -> int:
    """A number of the query, which fits the schema of its operation."""
    return int(request.query_params.get(name, usual))


def checked_endpoint(
    endpoint: Endpoint, query: Mapping[str, Schema], schema: Schema | None, max_bytes: int
) -> Endpoint:
    """An endpoint that is called with requests that fit, and with their JSON body as a second argument.

    Args:
        query: the schemas of the fields that the query may have.
        schema: of the body; None for an endpoint that takes none, or reads another one itself.
    """

    async def answer(request: Request) -> Response:
        for name, text in request.query_params.items() if request.scope["query_string"] else ():
            if name not in query:
                help = f"There are {', '.join(query)}." if query else "Send none."
                raise HttpError(400, "invalid_request", f"there is no field `{name}` of the query", help=help)
            is_number = query[name].get("type") == "integer" and DIGITS.fullmatch(text)
            if wrong := next(problems(int(text) if is_number else text, query[name], name), None):
                raise HttpError(400, "invalid_request", wrong, help="Leave it out, or correct it.")
        return await (
            endpoint(request) if schema is None else endpoint(request, await body_with(request, schema, max_bytes))
        )

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


async def body_with(request: Request, schema: Schema, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The object that a request brings. Raises HttpError for a field that is not known, missing or wrong."""
    body = await body_of(request, max_bytes)
    fields = schema["properties"]
    is_closed = schema.get("additionalProperties") is False
    unknown = next((name for name in body if name not in fields), None) if is_closed else None
    if unknown is not None:
        help = f"Send {', '.join(fields)}." if fields else "Send none."
        raise HttpError(400, "invalid_request", f"there is no field `{unknown}`", help=help)
    if not is_plainly_fitting(body, schema) and (wrong := list(problems(body, schema))):
        raise HttpError(400, "invalid_request", "; ".join(wrong), help=f"It takes ({signature_text(schema)}).")
    return body


def started_answer(session: HostedSession, call: HeldCall | str | None = None) -> Response:
    """The answer to a request that has begun a session, or a call in it, which may be known by its id alone."""
    id = call.id if isinstance(call, HeldCall) else call
    return JSONResponse({**session.listing().as_data(), "call": id}, 202)
