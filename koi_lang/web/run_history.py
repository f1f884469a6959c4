"""The record of a run over HTTP: its entries, related runs, and its cost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.errors import JournalError
from koi_lang.events import CallStarted
from koi_lang.rpc.queries import family_of
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise
from koi_lang.service.user_view import entries_as_user
from koi_lang.web.live import position_of
from koi_lang.web.request_context import host_of, number_of, run_of, session_of, user_of

DEFAULT_ENTRIES, MAX_ENTRIES = 500, 1000


async def list_entries(request: Request) -> Response:
    """Entries of the journal behind one."""
    session, since = run_of(request), position_of(request)
    limit = number_of(request, "limit", DEFAULT_ENTRIES, MAX_ENTRIES)
    is_admin = user_of(request).is_admin
    entries = await asyncio.to_thread(_entries_behind, session.feed.journal, since, limit + 1, is_admin=is_admin)
    shown = entries[:limit]
    last = shown[-1]["n"] if shown else since
    return JSONResponse({"entries": shown, "last": last, "more": len(entries) > limit})


def _entries_behind(journal: Path, since: int, count: int, *, is_admin: bool) -> list[dict[str, Any]]:
    found = (line.entry for line in lines(journal, since) if line.entry is not None and line.entry.n > since)
    return list(islice((entry.as_data() for entry in found) if is_admin else entries_as_user(found), count))


async def show_tree(request: Request) -> Response:
    """The runs that a run goes on from or that go on from it, as far as the user may see them."""
    session = session_of(request)
    host = host_of(request)
    user = user_of(request)
    family = await asyncio.to_thread(family_of, session.feed.journal, session.id)
    runs = [each for each in family if host.may_see(each["run"], user)]
    for branch in (each for each in runs if each["parent"] is not None):
        parent = path_of(host.folder, branch["parent"])
        entries: list[JournalEntry] = []
        with suppress(JournalError):  # the parent was deleted
            entries = [each.entry for each in await asyncio.to_thread(list, lines(parent)) if each.entry]
        branch["calls"] = sum(each.kind == CallStarted.type and each.n <= branch["entry"] for each in entries)
    if not user.is_admin:  # where programs are is a matter of the operator
        runs = [{**each, "program": Path(each["program"]).stem} for each in runs]
    return JSONResponse({"current": session.id, "runs": runs})


async def show_cost(request: Request) -> Response:
    """The cost of a run."""
    summary = await asyncio.to_thread(summarise, run_of(request).feed.journal)
    return JSONResponse(summary.totals.as_data())
