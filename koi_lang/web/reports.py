"""Reports of a service beyond single runs: costs, models, permissions, and its description."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.runtime.journal.cost_tables import By, tabulate_costs
from koi_lang.runtime.journal.run_costs import RunCosts, open_costs
from koi_lang.service.users import User
from koi_lang.sessions.audit import audit
from koi_lang.version import __version__
from koi_lang.web.answers import HttpError
from koi_lang.web.openapi import document_of, to_text
from koi_lang.web.request_context import JsonBody, address_of, host_of, user_of
from koi_lang.web.service_info import program_fields


class CostBook:
    """The payments of the runs of a folder; only new parts of journals are read."""

    def __init__(self, folder: Path) -> None:
        self._journals, self._turn = open_costs(folder), asyncio.Lock()

    async def look(self) -> list[RunCosts]:
        """The payments of each run; unreadable journals are left out."""
        async with self._turn:
            table = await asyncio.to_thread(self._journals.look)
        return [costs for costs in table.values() if isinstance(costs, RunCosts)]


def cost_book_of(request: Request) -> CostBook:
    """The costs of the service's folder."""
    state = request.app.state
    if not hasattr(state, "cost_book"):
        state.cost_book = CostBook(host_of(request).folder)
    book: CostBook = state.cost_book
    return book


async def list_costs(request: Request) -> Response:
    """The cost of models, in groups: of all runs for an admin, else of one's own."""
    by = cast("By", request.query_params.get("by", "day"))
    owners = host_of(request).owners(user_of(request))
    own = [each for each in await cost_book_of(request).look() if each.run in owners]
    table = await asyncio.to_thread(tabulate_costs, own, by, owners=owners)
    return JSONResponse(table.as_data())


async def list_models(request: Request) -> Response:
    """The models of the providers that are connected."""
    host, found = host_of(request), dict[str, dict[str, Any]]()
    for program in host.programs:
        if program.ready is not None:
            found |= {model["model"]: model for model in await program.models()}
    return JSONResponse({"models": list(found.values())})


async def show_audit(request: Request) -> Response:
    """The permissions of models in each program, by agent; for admins."""
    _require_admin(user_of(request))
    served = [program for program in host_of(request).programs if program.ready is not None]
    audited = [
        {"name": each.name, "agents": await asyncio.to_thread(audit, each.file, each.options)} for each in served
    ]
    return JSONResponse({"programs": audited})


def _require_admin(user: User) -> None:
    if not user.is_admin:
        raise HttpError(403, "admins_only", "only an admin is told that")


async def list_deliveries(request: Request) -> Response:
    """The webhook deliveries, newest first; with `?undelivered=true` only those that have not arrived."""
    if not user_of(request).is_admin:
        raise HttpError(403, "admins_only", "deliveries are shown to admins alone")
    is_undelivered = request.query_params.get("undelivered") == "true"
    return JSONResponse({"deliveries": host_of(request).webhooks.list_deliveries(undelivered=is_undelivered)})


async def reload_programs(request: Request, body: JsonBody) -> Response:
    """Serve programs as their files are now; existing sessions keep the version they began with."""
    _require_admin(user_of(request))
    programs = host_of(request).programs
    changed = await programs.reload_apart()
    listing = [
        {"name": each.name, "changed": each in changed, "error": None if each.error is None else each.error.message}
        for each in programs
    ]
    return JSONResponse({"programs": listing})


async def describe_api(request: Request) -> Response:
    """The OpenAPI document of the API."""
    programs = [program_fields(program) for program in host_of(request).programs]
    document = document_of(programs, __version__)
    if public_url := address_of(request).public_url:
        document["servers"] = [{"url": f"{public_url}/api"}]
    return Response(to_text(document), media_type="application/json")
