"""The mounts of a service: its programs under other protocols, each at its own path."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from koi_lang.http_server.address import Address
from koi_lang.lazy import lazy_module
from koi_lang.runtime.agents.agent import Agent
from koi_lang.service.host import SessionHost
from koi_lang.service.programs import ServedProgram
from koi_lang.service.users import Users
from koi_lang.system.installation import this_installation
from koi_lang.web.answers import HttpError

if TYPE_CHECKING:
    from koi_lang.web import hosted_mcp
    from koi_lang.web.a2a import routes as a2a
    from koi_lang.web.agui import endpoint as agui
else:
    a2a = lazy_module("koi_lang.web.a2a.routes")
    agui = lazy_module("koi_lang.web.agui.endpoint")
    hosted_mcp = lazy_module("koi_lang.web.hosted_mcp")

LOG = logging.getLogger("koi_lang")
MCP = "/mcp"
AGUI = "/agui"
A2A = "/a2a"


class Mounts:
    """Servers of other protocols, as routes of the service."""

    def __init__(self, host: SessionHost, address: Address, users: Users) -> None:
        self._apps: list[Starlette] = []
        self.routes: Sequence[BaseRoute] = [
            *self._mcp_routes(host, address, users),
            *agui_routes(),
            *a2a_routes(host, needs_token=address.token is not None),
        ]

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """A context in which they run."""
        async with AsyncExitStack() as stack:
            for each in self._apps:
                await stack.enter_async_context(each.router.lifespan_context(each))
            yield

    def _mcp_routes(self, host: SessionHost, address: Address, users: Users) -> list[BaseRoute]:
        """`/mcp` for the only program that exposes agents, and `/mcp/NAME` for each."""
        exposing = [program for program in host.programs if any(agent.about.exposed for agent in _agents_of(program))]
        routes: list[BaseRoute] = []
        for program in exposing:
            paths = [f"{MCP}/{program.name}", *([MCP] if len(exposing) == 1 else [])]
            for path in paths:
                apps = hosted_mcp.apps_of(host, program, users.all(), address, path)
                self._apps += apps.values()
                routes.append(Route(path, hosted_mcp.UserApps(apps)))
        listed = ", ".join(f"`{MCP}/{program.name}`" for program in exposing)
        help = f"Several programs do: {listed}." if exposing else "Write `expose mcp` in an agent of a program."
        return [*routes, *missing_routes(MCP, "no program is served here by MCP", help)]


def agui_routes() -> list[BaseRoute]:
    """`/agui`, and `/agui/NAME` where there are several programs; it is loaded with the first request."""
    if find_spec("ag_ui") is None:
        return missing_routes(AGUI, "AG-UI is not installed here", _help("agui"))

    async def answer(request: Request) -> Response:
        response: Response = await agui.answer(request)
        return response

    return [Route(AGUI, answer, methods=["POST"]), Route(AGUI + "/{program}", answer, methods=["POST"])]


def _help(extra: str) -> str:
    return f"Install it with `{this_installation().install_command(extra)}`."


def a2a_routes(host: SessionHost, *, needs_token: bool) -> list[BaseRoute]:
    """`/a2a/AGENT` for each exposed agent, and `/a2a/NAME/AGENT`, by the name of its program."""
    exposed = [
        (program.name, agent) for program in host.programs for agent in _agents_of(program) if agent.about.exposed_a2a
    ]
    if not exposed:
        help = "Write `expose a2a` in an agent of a program."
        return missing_routes(A2A, "no agent is served here by A2A", help)
    if find_spec("a2a") is None:
        message, help = "A2A is not installed here", _help("a2a")
        LOG.warning("warning: agents with `expose a2a` are not served: %s. %s", message, help)
        return missing_routes(A2A, message, help)
    listed = ", ".join(f"`{A2A}/{program}/{agent.about.name}`" for program, agent in exposed)
    help = f"Exposed are {listed}."
    routes: list[BaseRoute] = a2a.routes_of(host, exposed, A2A, needs_token=needs_token)
    return [*routes, *missing_routes(A2A, "there is no such agent", help)]


def _agents_of(program: ServedProgram) -> Sequence[type[Agent]]:
    """The agents of a program; none where it is not served."""
    return () if program.ready is None else program.agents()


def missing_routes(path: str, message: str, help: str) -> list[BaseRoute]:
    """Routes that say why there is nothing at a path, and below it."""

    async def refuse(request: Request) -> Response:
        raise HttpError(404, "not_found", message, help=help)

    methods = ["GET", "POST", "DELETE"]
    return [Route(path, refuse, methods=methods), Route(path + "/{rest:path}", refuse, methods=methods)]
