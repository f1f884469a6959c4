"""Who may reach the service: requests by its own names, from its own pages, of somebody who is known."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from koi_lang.errors import KoiError
from koi_lang.http_server.guard import ServerNames, bearers
from koi_lang.service.users import EVERYBODY, User, Users
from koi_lang.web.answers import HttpError, error_answer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "koi_token"
# What everybody may ask for: the pages hold nothing of anybody.
OPEN = ("/api/health", "/api/login")
# What only users may ask for: the API, and what is served by other protocols.
PROTECTED = ("/api/", "/mcp", "/agui", "/a2a", "/.well-known/")
HELP = "Send `Authorization: Bearer TOKEN` with the token that was shown when the service was started."
ORIGIN_HELP = "Start the service with `--name HOST` for each further name of it."

PORT_HELP = "Send `Authorization: Bearer TOKEN`, or call the service by the address of the page."


class Gate:
    """Lets requests through that are allowed; those of the API carry their user in `scope["state"]`."""

    def __init__(self, app: ASGIApp, names: ServerNames, users: Users) -> None:
        self._app, self._names, self._users = app, names, users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            self._require_allowed(scope)
        except KoiError as error:
            await _refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _require_allowed(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if not self._names.is_own_host(headers.get("host")):
            raise HttpError(421, "wrong_host", "the service is not called by this name", help=ORIGIN_HELP)
        if not self._names.is_own_origin(headers.get("origin")):
            raise HttpError(403, "wrong_origin", "the page is of another host", help=ORIGIN_HELP)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path.startswith(PROTECTED) and path not in OPEN:
            scope.setdefault("state", {})["user"] = self._user_of(headers)

    def _user_of(self, headers: Headers) -> User:
        shown = list(bearers(headers.getlist("authorization")))
        user = next(filter(None, map(self._users.of_token, shown)), None)
        if user is not None and not self._users.is_open:
            return user
        # What a browser sends by itself, it sends for the page of any port.
        if self._names.is_other_port(headers.get("origin"), headers.get("host")):
            raise HttpError(403, "wrong_origin", "the page is of another port", help=PORT_HELP)
        if self._users.is_open:
            return EVERYBODY
        in_cookie = _cookie_tokens(headers)
        user = next(filter(None, map(self._users.of_token, in_cookie)), None)
        if user is not None:
            return user
        message = "nobody is known by this token" if any((*shown, *in_cookie)) else "a bearer token is needed"
        raise HttpError(401, "no_token", message, help=HELP)


def _cookie_tokens(headers: Headers) -> list[str]:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return []
    return [cookies[COOKIE].value] if COOKIE in cookies else []


async def _refuse(error: KoiError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4001, "reason": error.message})
        return
    await error_answer(error)(scope, receive, send)
