"""The app of a service: which path leads where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from koi_lang.errors import KoiError
from koi_lang.http_server.address import Address
from koi_lang.http_server.guard import ServerNames
from koi_lang.service.host import SessionHost
from koi_lang.service.job_service import JobService
from koi_lang.service.users import Users
from koi_lang.web.answers import HttpError, error_answer
from koi_lang.web.gate import Gate
from koi_lang.web.jobs import list_jobs, take_message
from koi_lang.web.live import follow_run
from koi_lang.web.pages import PageFiles
from koi_lang.web.runs import begin_run, delete_run, list_runs, send_command, show_run
from koi_lang.web.service_info import log_in, tell_health, tell_programs, tell_status
from koi_lang.web.web_socket import talk_with_run

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ROUTES = (
    Route("/api/health", tell_health),
    Route("/api/login", log_in, methods=["POST"]),
    Route("/api/status", tell_status),
    Route("/api/program", tell_programs),
    Route("/api/runs", list_runs),
    Route("/api/runs", begin_run, methods=["POST"]),
    Route("/api/runs/{id}", show_run),
    Route("/api/runs/{id}", delete_run, methods=["DELETE"]),
    Route("/api/runs/{id}/events", follow_run),
    WebSocketRoute("/api/runs/{id}/ws", talk_with_run),
    Route("/api/command", send_command, methods=["POST"]),
    Route("/api/jobs", list_jobs),
    Route("/hooks/{path:path}", take_message, methods=["POST"]),
)


def make_app(host: SessionHost, jobs: JobService, address: Address, users: Users) -> ASGIApp:
    """The app of a service."""
    app = Starlette(
        routes=[*ROUTES, *PageFiles().routes], exception_handlers={KoiError: _tell_error, 404: _tell_missing}
    )
    app.state.host, app.state.jobs, app.state.users = host, jobs, users
    return Gate(app, ServerNames.of(address), users)


async def _tell_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, KoiError), "what it is registered for"
    return error_answer(error)


async def _tell_missing(request: Request, error: Exception) -> Response:
    return error_answer(HttpError(404, "not_found", f"there is nothing at `{request.url.path}`"))
