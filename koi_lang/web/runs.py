"""Runs over HTTP: begun, listed, looked at, steered, branched and deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.errors import JournalError
from koi_lang.events import CallStarted, ModelAnswered
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import lines, read
from koi_lang.runtime.journal.store import family_of, path_of
from koi_lang.runtime.journal.summary import summarise
from koi_lang.service.attached import RunHandle
from koi_lang.service.host import SessionHost, new_run
from koi_lang.service.hosted import HostedSession
from koi_lang.service.idempotency import digest_of
from koi_lang.service.user_view import entries_as_user, handle_as, hide_operator
from koi_lang.service.users import User
from koi_lang.sessions.calls import Control, abort, begin_message, begin_named, message_with_images
from koi_lang.sessions.earlier_session import BranchPoint
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.answers import STATUSES, HttpError, headers_of
from koi_lang.web.live import position_of
from koi_lang.web.request_context import (
    Endpoint,
    JsonBody,
    host_of,
    number_of,
    run_of,
    session_of,
    started_answer,
    user_of,
)

# On a page.
DEFAULT_RUNS, DEFAULT_ENTRIES = 50, 500
# No run is later, in milliseconds since the epoch.
LATEST = 10**15 - 1
# Codes of commands that may be sent again later.
RETRIED = ("limit_reached", "overloaded")
# Fields of a query that say which runs are wanted.
FILTERS = ("program", "user", "state")
# Of requests with an `Idempotency-Key`: one that is sent again, also after a crash, starts nothing a second time.
HEADER, REPLAYED = "idempotency-key", "Idempotency-Replayed"
MAX_KEY_CHARS = 200
JSON = "application/json"
Begin = Callable[[str], Awaitable[Response]]
# The answer to what has begun under an id; None where nothing has.
FindBegun = Callable[[str], Awaitable[Response | None]]


async def begin_run(request: Request, body: JsonBody) -> Response:
    """Begin a run."""
    host = host_of(request)
    user = user_of(request)
    wait_s = number_of(request, "wait", 0)
    handler, call = body.get("handler", ""), None
    if "message" in body:
        call = call_by_message(body)
    elif handler:
        call = partial(begin_named, name=handler, payload=body.get("payload"))
    title = _title(body, has_call=call is not None)

    async def begin(run: str) -> Response:
        return started_answer(*await host.start(user, body.get("program", ""), call, title, run=run))

    answer = await answer_once(request, body, begin)
    return await _wait_for_end(request, answer, wait_s) if wait_s else answer


async def send_message(request: Request, body: JsonBody) -> Response:
    """Begin the call that a message is, in a session that there is."""
    return await _begin_further(request, body, call_by_message(body))


async def call_handler(request: Request, body: JsonBody) -> Response:
    """Begin a call of a handler in a session that there is."""
    return await _begin_further(request, body, partial(begin_named, name=body["handler"], payload=body.get("payload")))


async def _begin_further(request: Request, body: JsonBody, begin: partial[HeldCall]) -> Response:
    """The answer to a request that begins a call in a session: its result, where the client waits for it."""
    session, wait_s = session_of(request), number_of(request, "wait", 0)

    async def begin_call(id: str) -> Response:
        return started_answer(session, await session.begin_call(partial(begin, id=id and f"call-{id}")))

    async def find_call(id: str) -> Response | None:
        recorded = await asyncio.to_thread(read, session.feed.journal)
        calls = [entry.data.get("call") for entry in recorded.entries if entry.kind == CallStarted.type]
        return started_answer(session, f"call-{id}") if f"call-{id}" in calls else None

    answer = await answer_once(request, {"run": session.id, **body}, begin_call, find_call)
    return await _wait_for_end(request, answer, wait_s) if wait_s else answer


async def _wait_for_end(request: Request, answer: Response, wait_s: int) -> Response:
    """How a call ended that has begun; where it has not in so many seconds, how the session stands."""
    if answer.status_code != 202:
        return answer
    started = json.loads(bytes(answer.body))
    session = host_of(request).find(started["id"], user_of(request))
    await session.wait_for_rest(wait_s)
    details = await _describe_run(session, user_of(request), started["call"])
    ended = started_answer(session, started["call"]) if details["ok"] is None else JSONResponse(details)
    ended.headers.update({name: value for name, value in answer.headers.items() if name == REPLAYED.lower()})
    return ended


def call_by_message(body: JsonBody) -> partial[HeldCall]:
    """A function that begins the call of a message, with images and an optional handler. Raises KoiError."""
    said = message_with_images(body["message"], body.get("images"))
    return partial(begin_message, said=said, name=body.get("handler", ""))


def _title(body: JsonBody, *, has_call: bool) -> str:
    """The title of a run in lists: its first text, or the one given for a waiting run. Raises HttpError."""
    if "title" in body and has_call:
        help = "Leave it out: a run is listed as what it begins with."
        raise HttpError(400, "invalid_request", "`title` is of a run that waits for a command", help=help)
    return str(body.get("title") or body.get("message") or body.get("handler", ""))


async def list_runs(request: Request) -> Response:
    """A page of the runs that the user may see, newest first; runs of other processes begin the first one."""
    host = host_of(request)
    limit = number_of(request, "limit", DEFAULT_RUNS)
    asked = request.query_params
    before = asked.get("before")
    wanted = (
        session
        for session in host.all(user_of(request))
        if _is_wanted((session.row.program, session.owner, session.listing().state if "state" in asked else ""), asked)
    )
    behind = (session for session in wanted if before is None or _place(session) > before)
    page = list(islice(behind, limit + 1))
    further = _place(page[limit - 1]) if len(page) > limit else None
    elsewhere = [] if before is not None else [each.listing() for each in host.attached_to(user_of(request))]
    found = [each for each in elsewhere if _is_wanted((each.program, each.owner, each.state), asked)]
    listed = [*found, *(each.listing() for each in page[:limit])]
    return JSONResponse({"runs": [each.as_data() for each in listed], "next": further})


def _is_wanted(about: tuple[str, str, str], asked: Mapping[str, str]) -> bool:
    return all(asked.get(name, value) == value for name, value in zip(FILTERS, about, strict=True))


def _place(session: HostedSession) -> str:
    """The sort key of a session in the list, as a text."""
    return f"{LATEST - int(session.row.created * 1000):015}-{session.id}"


async def show_run(request: Request) -> Response:
    """One run."""
    session, wait_s = run_of(request), number_of(request, "wait", 0)
    if wait_s and isinstance(session, HostedSession):
        await session.wait_for_rest(wait_s)
    return JSONResponse(await _describe_run(session, user_of(request)))


async def _describe_run(run: RunHandle, user: User, call: str | None = None) -> dict[str, Any]:
    """A run with its open requests, its current call, and the end of that or the last one. Raises JournalError."""
    listing = run.listing()
    outcome = await run.outcome(call)
    details = {**listing.as_data(), "open": run.feed.requests, **await run.describe_call(), **outcome}
    return details if user.is_admin else details | hide_operator(outcome)


async def delete_run(request: Request) -> Response:
    """Remove a run."""
    await host_of(request).delete(request.path_params["id"], user_of(request))
    return Response(status_code=204)


async def send_command(request: Request, body: JsonBody) -> Response:
    """Carry out a command of `koi rpc` in a run; the answer is its response."""
    user = user_of(request)
    message = {name: value for name, value in body.items() if name != "run"}
    response = await handle_as(user, host_of(request).find_run(body["run"], user), message)
    # All else that is refused is told in the response; a service without room is told to proxies and clients, too.
    status = STATUSES[code] if (code := response.get("error_code")) in RETRIED else 200
    return JSONResponse(response, status, headers_of(status))


# ---------------------------------------------------------------- controls


async def cancel_run(request: Request, body: JsonBody) -> Response:
    """End the current work of a run, with everything that it started; a sleeping one without requests stays asleep."""
    session = run_of(request)
    if session.state == "asleep":
        return JSONResponse({"aborted": False, "queued": []})
    return JSONResponse(await session.perform(abort))


def endpoint_of(control: Control[..., Any]) -> Endpoint:
    """The endpoint that carries out a control in a run; its fields are those of the body."""

    async def answer(request: Request, body: JsonBody) -> Response:
        return JSONResponse(await run_of(request).perform(control, **body) or {})

    return answer


async def branch_run(request: Request, body: JsonBody) -> Response:
    """Begin a run that goes on from an entry of another one; with an answer, that stands in place of the one there."""
    session = session_of(request)
    host = host_of(request)
    back, say = _branch_point(body), call_by_message(body) if "message" in body else None
    if back is not None and back.answer is not None and not user_of(request).is_admin:
        recorded = await asyncio.to_thread(read, session.feed.journal)
        # Whoever replaces the answer of a model decides what the agents do, and no question is asked.
        if any(entry.n == back.at and entry.kind == ModelAnswered.type for entry in recorded.entries):
            help = "Branch with another answer to a question, or with a `message`."
            raise HttpError(403, "admins_only", "only admins replace the answer of a model", help=help)

    async def begin(run: str) -> Response:
        return started_answer(*await host.branch(session, user_of(request), back, say, run=run))

    return await answer_once(request, {"branch": session.id, **body}, begin)


def _branch_point(body: JsonBody) -> BranchPoint | None:
    """Where a branch begins; None for the last entry. Raises HttpError."""
    if "at" in body:
        return BranchPoint(int(body["at"]), body.get("answer"))
    if "answer" in body:
        raise HttpError(400, "invalid_request", "an `answer` is one at an entry", help="Send `n` of the entry as `at`.")
    return None


# ---------------------------------------------------------------- requests that are sent again


async def answer_once(request: Request, asked: Any, begin: Begin, find: FindBegun | None = None) -> Response:
    """The answer to a request that begins something; the same as before where its key is known. Raises HttpError.

    Args:
        asked: what tells the request from others.
        begin: carries it out, given the id of the run or call that it begins; empty for any.
        find: looks for what an earlier process has begun; without it that is a run.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return await begin("")
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise HttpError(400, "invalid_request", "the key is empty, too long or no text", help="A UUID is one.")
    host = host_of(request)
    user = user_of(request)
    digest = digest_of(asked)
    id = new_run()
    async with host.one_at_a_time((user.name, key)):
        known = host.keyed.claim(user.name, key, digest, id)
        if known is not None and known.digest != digest:
            raise HttpError(409, "key_in_use", "the key was sent with another request", help="Take a new one for each.")
        if known is not None and known.answer:
            return Response(known.answer, 202, {REPLAYED: "true"}, JSON)
        if known is not None:
            # The process has ended before it had answered; what has begun by then is not begun again.
            id = known.run
            begun = await (find(id) if find is not None else _find_run(host, user, id))
            if begun is not None:
                return begun
        return await _carry_out(host, user, key, id, begin)


async def _find_run(host: SessionHost, user: User, run: str) -> Response | None:
    session = await host.find_begun(run, user)
    return None if session is None else started_answer(session)


async def _carry_out(host: SessionHost, user: User, key: str, id: str, begin: Begin) -> Response:
    try:
        answer = await begin(id)
    except BaseException:
        host.keyed.forget(user.name, key)
        raise
    if answer.status_code < 300:
        host.keyed.settle(user.name, key, bytes(answer.body).decode())
    else:
        host.keyed.forget(user.name, key)
    return answer


# ---------------------------------------------------------------- what has happened


async def list_entries(request: Request) -> Response:
    """Entries of the journal behind one."""
    session, since = run_of(request), position_of(request)
    limit = number_of(request, "limit", DEFAULT_ENTRIES)
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
