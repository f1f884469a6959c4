"""Showing the recorded runs of a folder in a browser, without a service: from the start to the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from koi_lang.http_server.address import Address
from koi_lang.http_server.listening import serve_app
from koi_lang.service.store import Database
from koi_lang.service.users import BrowserSessions, Users
from koi_lang.version import __version__
from koi_lang.web.app import ERROR_HANDLERS
from koi_lang.web.dev_routes import DEV_ROUTES
from koi_lang.web.gate import Gate
from koi_lang.web.pages import PageFiles
from koi_lang.web.run_library import RunLibrary
from koi_lang.web.service_info import log_in, log_out, tell_health

HOME = "/"


async def _tell_status(request: Request) -> Response:
    """The user, and no programs."""
    user = request.state.user
    return JSONResponse(
        {"version": __version__, "user": user.name, "admin": user.is_admin, "sessions": {}, "programs": []}
    )


async def _go_to_page(request: Request) -> Response:
    return RedirectResponse("dev")


ROUTES = (
    Route(HOME, _go_to_page),
    Route("/api/health", tell_health),
    Route("/api/login", log_in, methods=["POST"]),
    Route("/api/logout", log_out, methods=["POST"]),
    Route("/api/status", _tell_status),
    *DEV_ROUTES,
)


async def serve_view(folder: Path, address: Address, ready: Callable[[str], None]) -> None:
    """Serve the page for developers until this is cancelled.

    Args:
        folder: in which the runs were recorded.
        ready: is given the URL of the server, without a path, when it listens.

    Raises:
        UsageError: the address cannot be used.
    """
    pages = [route for route in PageFiles().routes if route.path != HOME]
    app = Starlette(routes=[*ROUTES, *pages], exception_handlers=ERROR_HANDLERS)
    app.state.library, app.state.address = RunLibrary(folder), address
    # The folder is only read, and browsers are signed in as long as the process lasts.
    with closing(Database(Path(":memory:"))) as database:
        browsers = app.state.browsers = BrowserSessions(database, Users(address.token))
        await serve_app(Gate(app, address, browsers), address, ready)
