"""What a request is about: who asks, the host of the service, the session that its path names, how many it wants."""

from __future__ import annotations

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from koi_lang.service.attached import RunHandle
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import User
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.answers import HttpError


def host_of(request: HTTPConnection) -> SessionHost:
    """The host of the service."""
    host: SessionHost = request.app.state.host
    return host


def user_of(request: HTTPConnection) -> User:
    """Who asks."""
    user: User = request.state.user
    return user


def session_of(request: HTTPConnection) -> HostedSession:
    """The session that the path names. Raises ServiceError."""
    return host_of(request).find(request.path_params["id"], user_of(request))


def run_of(request: HTTPConnection) -> RunHandle:
    """The run that the path names, also one of another process. Raises ServiceError."""
    return host_of(request).find_run(request.path_params["id"], user_of(request))


def limit_of(request: Request, usual: int, most: int) -> int:
    """How many are wanted at most. Raises HttpError."""
    given = request.query_params.get("limit", str(usual))
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or not 0 < int(given) <= most:
        raise HttpError(400, "invalid_request", "`limit` is no such number", help=f"Write one from 1 to {most}.")
    return int(given)


def started_answer(session: HostedSession, call: HeldCall | None = None) -> Response:
    """The answer to a request that has begun a session, and a call in it."""
    return JSONResponse({**session.listing().as_data(), "call": None if call is None else call.id}, 202)
