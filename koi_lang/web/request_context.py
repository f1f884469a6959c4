"""What a request is about: who asks, the host of the service, the session that its path names."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from koi_lang.service.attached import RunHandle
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import User
from koi_lang.sessions.held_call import HeldCall


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


def started_answer(session: HostedSession, call: HeldCall | None = None) -> Response:
    """The answer to a request that has begun a session, and a call in it."""
    return JSONResponse({**session.listing().as_data(), "call": None if call is None else call.id}, 202)
