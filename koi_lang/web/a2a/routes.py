"""The routes of agents with `expose a2a`: a card each, and calls over JSON-RPC."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.auth import user as a2a_user
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.tasks import InMemoryTaskStore
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from koi_lang.runtime.agents.agent import Agent
from koi_lang.service.host import SessionHost
from koi_lang.web.a2a.cards import card_of
from koi_lang.web.a2a.executor import USER, SessionExecutor
from koi_lang.web.request_context import address_of, user_of

WELL_KNOWN = "/.well-known/agent-card.json"


class NamedUser(a2a_user.User):
    """A user of the service, as the library knows users; tasks belong to their names."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether they have shown who they are: the gate before it lets in nobody else."""
        return True

    @property
    def user_name(self) -> str:
        """Their name."""
        return self._name


class UserContext(DefaultServerCallContextBuilder):
    """Requests to what executors know of them."""

    def build(self, request: Request) -> ServerCallContext:
        """The context of a request, with its user."""
        user, known = user_of(request), super().build(request)
        return known.model_copy(update={"state": {**known.state, USER: user}, "user": NamedUser(user.name)})


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
        handler = DefaultRequestHandler(
            SessionExecutor(host, program, agent),
            InMemoryTaskStore(),
            card_of(agent, paths[-1], needs_token=needs_token),
        )
        for path in paths:
            routes.append(_card_route(path + WELL_KNOWN, agent, path, needs_token=needs_token))
            routes += create_jsonrpc_routes(handler, path, UserContext(), enable_v0_3_compat=True)
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
