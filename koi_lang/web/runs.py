"""Runs over HTTP: begun, listed, looked at, deleted, and told commands."""

from __future__ import annotations

from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.users import User
from koi_lang.sessions.errors import SessionError
from koi_lang.web.answers import HttpError, body_of, refused_answer

BEGUN = ("program", "handler", "payload", "message", "images")


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


async def begin_run(request: Request) -> Response:
    """Begin a run."""
    body = await body_of(request)
    unknown = next((name for name in body if name not in BEGUN), None)
    if unknown is not None:
        raise HttpError(400, "invalid_request", f"there is no field `{unknown}`", help=f"Send {', '.join(BEGUN)}.")
    host = host_of(request)
    session, response = await host.start(user_of(request), body.get("program", ""), _command(body), _title(body))
    if not response["success"]:
        return refused_answer(response)
    told = host.describe(session)
    call = (response.get("data") or {}).get("call")
    return JSONResponse({**told, "call": call}, 202)


def _command(body: dict[str, Any]) -> dict[str, Any] | None:
    """The command that a run is begun by; None where it waits for one. Raises HttpError."""
    handler = body.get("handler", "")
    if "message" in body:
        images = {"images": body["images"]} if "images" in body else {}
        return {"type": "prompt", "message": body["message"], "name": handler, **images}
    if handler:
        return {"type": "run_playbook", "name": handler, "args": body.get("payload")}
    return None


def _title(body: dict[str, Any]) -> str:
    return str(body.get("message") or body.get("handler", ""))


async def list_runs(request: Request) -> Response:
    """The runs that the user may see."""
    host = host_of(request)
    return JSONResponse({"runs": [host.describe(each) for each in host.all(user_of(request))], "next": None})


async def show_run(request: Request) -> Response:
    """One run."""
    session = session_of(request)
    return JSONResponse({**host_of(request).describe(session), "open": session.feed.requests})


async def delete_run(request: Request) -> Response:
    """Remove a run."""
    await host_of(request).delete(request.path_params["id"], user_of(request))
    return Response(status_code=204)


async def send_command(request: Request) -> Response:
    """Carry out a command of `koi rpc` in a run; the answer is its response."""
    body = await body_of(request)
    run = body.pop("run", None)
    if not isinstance(run, str):
        raise SessionError("invalid_request", "`run`: the message names no run", help="Send the id of one as `run`.")
    return JSONResponse(await host_of(request).find(run, user_of(request)).handle(body))
