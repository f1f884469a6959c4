"""Access to the service: requests for its own names, from its own pages, by known users."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from anyio import CancelScope, current_time
from starlette.datastructures import Headers

from koi_lang.errors import KoiError
from koi_lang.http_server.address import Address
from koi_lang.http_server.guard import ServerNames, bearers
from koi_lang.service.users import EVERYBODY, BrowserSession, BrowserSessions
from koi_lang.web.answers import HttpError, error_answer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# What everybody may ask for: the pages hold nothing of anybody.
OPEN = ("/api/health",)
# What begins and ends the session of a browser, for pages of the service alone.
SIGNING = ("/api/login", "/api/logout")
# What only users may ask for: the API, and what is served by other protocols.
PROTECTED = ("/api/", "/mcp", "/agui", "/a2a", "/.well-known/")
HELP = "Send `Authorization: Bearer TOKEN` with the token that was shown when the service was started."
NAME_HELP = "Start the service with `--public-url URL`, or with `--name HOST` for each further name of it."
ORIGIN_HELP = f"List its origin in `origins` of `[serve]`. If it is a page of the service: {NAME_HELP}"
NO_ORIGIN_HELP = "A page that is a file, or in a sandbox, has no origin: serve it, and list its origin in `origins`."
PORT_HELP = "Send `Authorization: Bearer TOKEN`, or call the service by the address of the page."
# Subprotocols of WebSockets, to which pages can add no header: what is spoken, and what precedes a token.
SUBPROTOCOL, BEARER_PREFIX = "koi", "bearer."
# Methods of requests without an `Origin` that browsers send for pages of the service.
SAFE_METHODS = ("GET", "HEAD")
# `Sec-Fetch-Site` of requests for pages of others: https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
OTHER_SITES = ("same-site", "cross-site")
# Cookies of one browser that are looked up: there are several where services are below each other.
MAX_COOKIES = 4
SIGNED_OUT = 4001
# The extension of servers that can refuse a WebSocket with an answer of their choice.
DENIAL = "websocket.http.response"
LAST_MESSAGES: Mapping[str, Message] = {
    "http": {"type": "http.response.body", "body": b"", "more_body": False},
    "websocket": {"type": "websocket.close", "code": SIGNED_OUT, "reason": "signed out"},
}


class Gate:
    """Lets requests through that are allowed; those of the API carry their user in `scope["state"]`.

    A proxy may take the path of `public_url` off a request, or leave it.
    """

    def __init__(self, app: ASGIApp, address: Address, browsers: BrowserSessions) -> None:
        self._app = app
        self._names = ServerNames.of(address)
        self._browsers = browsers
        self._path = address.public_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._path and f"{scope['path']}/".startswith(f"{self._path}/"):
            scope = {**scope, "root_path": self._path}
        try:
            browser = self._require_allowed(scope)
        except KoiError as error:
            await _refuse(error, scope, receive, send)
            return
        if browser is None:
            await self._app(scope, receive, send)
        else:
            await self._serve_browser(browser, scope, receive, send)

    def _require_allowed(self, scope: Scope) -> BrowserSession | None:
        """The session of the browser that sends a request, where that is why it is allowed. Raises HttpError."""
        headers = Headers(scope=scope)
        if not self._names.is_own_host(headers.get("host")):
            raise HttpError(421, "wrong_host", "the service is not called by this name", help=NAME_HELP)
        origin = headers.get("origin")
        is_listed = origin in self._names.listed and self._names.is_listed(origin, headers.get("host"))
        if not is_listed and not self._names.is_own_origin(origin):
            help = NO_ORIGIN_HELP if origin == "null" else ORIGIN_HELP
            raise HttpError(403, "wrong_origin", "the page is of another host", help=help)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in SIGNING:
            self._require_own_page(scope, headers)
        if not path.startswith(PROTECTED) or path in (*OPEN, *SIGNING):
            return None
        users, state = self._browsers.users, scope.setdefault("state", {})
        offered = (each for each in scope.get("subprotocols", ()) if each.startswith(BEARER_PREFIX))
        in_socket = (unquote(each.removeprefix(BEARER_PREFIX)) for each in offered)
        shown = [*bearers(headers.getlist("authorization")), *in_socket]
        user = next(filter(None, map(users.of_token, shown)), None)
        if user is not None and not users.is_open:
            state["user"] = user
            return None
        if not is_listed:
            self._require_own_page(scope, headers)
        if users.is_open:
            state["user"] = EVERYBODY
            return None
        # Whoever shows a token is known by it or not at all.
        ids = [] if is_listed or any(shown) else session_ids(scope)
        browser = next(filter(None, map(self._browsers.find, ids)), None)
        if browser is None:
            message = "nobody is known by this token" if any(shown) else "this browser is not signed in any more"
            raise HttpError(401, "no_token", message if any((*shown, *ids)) else "a bearer token is needed", help=HELP)
        state["user"] = browser.user
        return browser

    def _require_own_page(self, scope: Scope, headers: Headers) -> None:
        """Raise HttpError unless a request comes from a page of the service, or from no page.

        What a browser sends by itself, such as a cookie, it sends for pages of other ports, too. It says which page
        that is, but for GET; so a cookie without a page comes from no browser.
        """
        origin, host = headers.get("origin"), headers.get("host")
        is_other_site = headers.get("sec-fetch-site") in OTHER_SITES
        if is_other_site or self._names.is_listed(origin, host) or self._names.is_other_port(origin, host):
            raise HttpError(403, "wrong_origin", "the page is of another server", help=PORT_HELP)
        if origin is None and scope.get("method") not in SAFE_METHODS and session_ids(scope):
            raise HttpError(403, "wrong_origin", "a cookie needs the `Origin` of a page beside it", help=PORT_HELP)

    async def _serve_browser(self, browser: BrowserSession, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of a signed-in browser; a stream that answers it ends with the session."""
        with CancelScope() as stream, ExitStack() as open_stream:

            def begin_stream() -> None:
                open_stream.enter_context(self._browsers.streaming(browser, stream.cancel))
                stream.deadline = current_time() + self._browsers.seconds_left(browser)

            async def send_on(message: Message) -> None:
                if message["type"] == "http.response.start":
                    kind = Headers(raw=message["headers"]).get("content-type", "")
                    if kind.startswith("text/event-stream"):
                        begin_stream()
                await send(message)

            if scope["type"] == "websocket":
                begin_stream()
            await self._app(scope, receive, send_on)
        if stream.cancelled_caught:
            with suppress(RuntimeError):  # the client has left meanwhile
                await send(LAST_MESSAGES[scope["type"]])


def cookie_name(scope: Scope) -> str:
    """The name of the cookie with the id of a session: cookies know no ports, so it has that of the service."""
    return f"koi_session_{scope['server'][1]}"


def session_ids(scope: Scope) -> list[str]:
    """The ids of sessions that a browser shows."""
    name, headers = f"{cookie_name(scope)}=", Headers(scope=scope).getlist("cookie")
    cookies = (each.strip() for header in headers for each in header.split(";"))
    return [each.removeprefix(name) for each in cookies if each.startswith(name)][:MAX_COOKIES]


async def _refuse(error: KoiError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that is not let through; that for a WebSocket, too, where the server can answer one."""
    if scope["type"] == "websocket":
        await receive()
        if DENIAL not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": SIGNED_OUT, "reason": error.message})
            return
    await error_answer(error)(scope, receive, send)
