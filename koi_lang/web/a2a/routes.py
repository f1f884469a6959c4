"""The routes of agents with `expose a2a`: a card each, and calls over JSON-RPC."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.auth import user as a2a_user
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict, build_error_response
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.mcp.safe_text import one_line
from koi_lang.service.host import SessionHost
from koi_lang.web.a2a.cards import VERSION, card_of
from koi_lang.web.a2a.executor import USER, LastingTasks, SessionExecutor, TaskTable
from koi_lang.web.request_context import address_of, user_of

WELL_KNOWN = "/.well-known/agent-card.json"


class NamedUser(a2a_user.User):
    """A user of the service, as the library knows users; tasks belong to their names."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether they are signed in: the gate before it lets in nobody else."""
        return True

    @property
    def user_name(self) -> str:
        """Their name."""
        return self._name


class UserContext(DefaultServerCallContextBuilder):
    """Builds the context of requests for executors."""

    def build(self, request: Request) -> ServerCallContext:
        """The context of a request, with its user."""
        user, known = user_of(request), super().build(request)
        # A request without a version names a method of the one that is spoken.
        name, headers = VERSION_HEADER.lower(), known.state["headers"]
        headers = {**headers, name: headers.get(name) or VERSION}
        state = {**known.state, "headers": headers, USER: user}
        return known.model_copy(update={"state": state, "user": NamedUser(user.name)})


class MethodsOfVersion(JsonRpcDispatcher):
    """Takes the methods of the version that is spoken; those of others are named in the error."""

    async def handle_requests(self, request: Request) -> Response:
        """The response to a request."""
        try:
            body = await request.json()
        except ValueError:
            body = None
        method = body.get("method") if isinstance(body, dict) else None
        if not isinstance(method, str) or "/" not in method:
            return await super().handle_requests(request)
        message = f"`{one_line(method)}` is no method of A2A {VERSION}, which is spoken here: see the agent's card"
        id = body.get("id")
        error = VersionNotSupportedError(message=message)
        return JSONResponse(build_error_response(id if isinstance(id, str | int) else None, error))


def routes_of(
    host: SessionHost, exposed: Sequence[tuple[str, type[Agent]]], base: str, *, needs_token: bool
) -> list[BaseRoute]:
    """The routes of agents, each with the program that it is of.

    Args:
        base: the path below which they are.
    """
    names = [agent.about.name for _, agent in exposed]
    routes: list[BaseRoute] = []
    for program, agent in exposed:
        name = agent.about.name
        paths = [f"{base}/{program}/{name}", *([f"{base}/{name}"] if names.count(name) == 1 else [])]
        handler = LastingTasks(
            SessionExecutor(host, program, agent),
            TaskTable(host.database, f"{program}/{name}"),
            card_of(agent, paths[-1], needs_token=needs_token),
        )
        for path in paths:
            routes.append(_card_route(path + WELL_KNOWN, agent, path, needs_token=needs_token))
            routes.append(Route(path, MethodsOfVersion(handler, UserContext()).handle_requests, methods=["POST"]))
        if len(exposed) == 1:
            routes.append(_card_route(WELL_KNOWN, agent, paths[-1], needs_token=needs_token))
    return routes


def _card_route(path: str, agent: type[Agent], calls: str, *, needs_token: bool) -> Route:
    """Where the card of an agent is; its address is below the public URL, else that by which the service was called."""

    async def tell(request: Request) -> Response:
        base = address_of(request).public_url or str(request.base_url).rstrip("/")
        card = card_of(agent, base + calls, needs_token=needs_token)
        return JSONResponse(agent_card_to_dict(card))

    return Route(path, tell)
