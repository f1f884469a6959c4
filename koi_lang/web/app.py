"""The app of a service: which path leads where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route, WebSocketRoute

from koi_lang.errors import KoiError
from koi_lang.http_server.address import Address
from koi_lang.service.host import SessionHost
from koi_lang.service.job_service import JobService
from koi_lang.service.users import BrowserSessions, Users
from koi_lang.sessions.calls import answer, approve, continue_, pause, steer
from koi_lang.web.answers import HttpError, error_answer
from koi_lang.web.dev_routes import DEV_ROUTES
from koi_lang.web.gate import Gate
from koi_lang.web.jobs import list_jobs, take_message
from koi_lang.web.live import follow_run, talk_with_run
from koi_lang.web.mounts import Mounts
from koi_lang.web.operations import routes_of
from koi_lang.web.pages import PageFiles, location_of_page
from koi_lang.web.reports import describe_api, list_costs, list_deliveries, list_models, reload_programs, show_audit
from koi_lang.web.request_context import Endpoint
from koi_lang.web.run_files import delete_file, get_file, list_files, put_file
from koi_lang.web.run_library import RunLibrary
from koi_lang.web.runs import (
    begin_run,
    branch_run,
    call_handler,
    cancel_run,
    delete_run,
    endpoint_of,
    list_entries,
    list_runs,
    send_command,
    send_message,
    show_cost,
    show_run,
    show_tree,
)
from koi_lang.web.service_info import log_in, log_out, tell_health, tell_programs, tell_status

if TYPE_CHECKING:
    from starlette.types import ASGIApp, ExceptionHandler

# What pages of others may send and read: https://fetch.spec.whatwg.org/#http-cors-protocol
CORS_METHODS = ("GET", "POST", "PUT", "DELETE")
CORS_HEADERS = (
    *("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
    *("Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "A2A-Version", "A2A-Extensions"),
)
EXPOSED_HEADERS = (
    *("Allow", "Content-Disposition", "ETag", "Idempotency-Replayed", "Location", "Retry-After", "WWW-Authenticate"),
    "Mcp-Session-Id",
)
# What carries out the operations of the table, by their names.
ENDPOINTS: Mapping[str, Endpoint] = {
    "health": tell_health,
    "login": log_in,
    "logout": log_out,
    "status": tell_status,
    "program": tell_programs,
    "startRun": begin_run,
    "listRuns": list_runs,
    "getRun": show_run,
    "deleteRun": delete_run,
    "sendMessage": send_message,
    "callHandler": call_handler,
    "cancelRun": cancel_run,
    "pauseRun": endpoint_of(pause),
    "continueRun": endpoint_of(continue_),
    "steerRun": endpoint_of(steer),
    "approveRun": endpoint_of(approve),
    "answerRun": endpoint_of(answer),
    "branchRun": branch_run,
    "listEntries": list_entries,
    "getTree": show_tree,
    "getRunCost": show_cost,
    "listFiles": list_files,
    "getFile": get_file,
    "putFile": put_file,
    "deleteFile": delete_file,
    "events": follow_run,
    "command": send_command,
    "listJobs": list_jobs,
    "listDeliveries": list_deliveries,
    "listCosts": list_costs,
    "listModels": list_models,
    "getAudit": show_audit,
    "reload": reload_programs,
    "openapi": describe_api,
}
ROUTES = (
    *routes_of(ENDPOINTS),
    WebSocketRoute("/api/runs/{id}/ws", talk_with_run),
    Route("/hooks/{path:path}", take_message, methods=["POST"]),
)


def make_app(host: SessionHost, jobs: JobService, address: Address, users: Users) -> ASGIApp:
    """The app of a service."""
    mounts = Mounts(host, address, users)
    routes = [*ROUTES, *DEV_ROUTES, *mounts.routes, *PageFiles().routes]
    app = Starlette(routes=routes, exception_handlers=ERROR_HANDLERS, lifespan=mounts.lifespan)
    # A redirect to another slash has a client repeat its request, with its token, where a proxy may take a path off.
    app.router.redirect_slashes = False
    browsers = BrowserSessions(host.database, users)
    app.state.host = host
    app.state.jobs = jobs
    app.state.browsers = browsers
    app.state.address = address
    app.state.library = RunLibrary(host.folder, host)
    gate = Gate(app, address, browsers)
    if not address.origins:
        return gate
    # No credentials: a page of others has a token, and cookies of the service do not count for it.
    return CORSMiddleware(
        gate, address.origins, CORS_METHODS, CORS_HEADERS, allow_credentials=False, expose_headers=EXPOSED_HEADERS
    )


async def _tell_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, KoiError), "what it is registered for"
    return error_answer(error)


async def _tell_missing(request: Request, error: Exception) -> Response:
    location = location_of_page(request.scope)
    if location is not None:
        return RedirectResponse(location)
    path = request.url.path
    help = "Leave out the slash at its end." if path.endswith("/") else None
    return error_answer(HttpError(404, "not_found", f"there is nothing at `{path}`", help=help))


async def _tell_wrong_method(request: Request, error: Exception) -> Response:
    """Answer a request whose path takes other methods: those of all routes that lead to it."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in matching for method in route.methods or ()}))
    message = f"`{request.url.path}` does not take {request.method}"
    answer = error_answer(HttpError(405, "wrong_method", message, help=f"It takes {allowed}."))
    answer.headers["Allow"] = allowed
    return answer


async def _tell_gone(request: Request, error: Exception) -> Response:
    """The response to a client that has gone before its request was complete."""
    return Response(status_code=400)


async def _tell_fault(request: Request, error: Exception) -> Response:
    return error_answer(HttpError(500, "internal_error", "the service has made a mistake", help="Please report it."))


ERROR_HANDLERS: Mapping[Any, ExceptionHandler] = {
    KoiError: _tell_error,
    ClientDisconnect: _tell_gone,
    404: _tell_missing,
    405: _tell_wrong_method,
    Exception: _tell_fault,
}
