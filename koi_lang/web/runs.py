"""Runs over HTTP: begun, listed, looked at, deleted, and told commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.events import CallStarted
from koi_lang.runtime.journal.reader import read
from koi_lang.service.attached import RunHandle
from koi_lang.service.hosted import HostedSession
from koi_lang.service.run_listing import read_outcome
from koi_lang.service.user_view import handle_as, hide_operator
from koi_lang.service.users import User
from koi_lang.sessions.calls import begin_message, begin_named, message_with_images
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.web.answers import STATUSES, HttpError, body_of, headers_of
from koi_lang.web.idempotency import REPLAYED, answer_once
from koi_lang.web.request_context import (
    body_with,
    host_of,
    number_of,
    run_of,
    session_of,
    started_answer,
    user_of,
    wait_of,
)

# Runs on a page, and milliseconds since the epoch that no run is later than.
DEFAULT_RUNS, MAX_RUNS = 50, 1000
LATEST = 10**15 - 1
# Codes of commands that may be sent again later.
RETRIED = ("limit_reached", "overloaded")
# Fields of a query that say which runs are wanted.
FILTERS = ("program", "user", "state")
BEGUN = ("program", "handler", "payload", "message", "images", "title")


async def begin_run(request: Request) -> Response:
    """Begin a run."""
    body = await body_with(request, *BEGUN)
    wrong = next((name for name in ("program", "handler") if not isinstance(body.get(name, ""), str)), None)
    if wrong is not None:
        raise HttpError(400, "invalid_request", f"`{wrong}` is no text", help="Send a name.")
    host = host_of(request)
    user = user_of(request)
    wait_s = wait_of(request)

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


async def send_message(request: Request) -> Response:
    """Begin the call that a message is, in a session that there is."""
    body = await body_with(request, "message", "images", "handler")
    if "message" not in body:
        raise HttpError(400, "invalid_request", "`message` is missing", help="Send a text as `message`.")
    return await _begin_further(request, body, call_by_message(body))


async def call_handler(request: Request) -> Response:
    """Begin a call of a handler in a session that there is."""
    body = await body_with(request, "handler", "payload")
    handler = body.get("handler")
    if not isinstance(handler, str):
        raise HttpError(400, "invalid_request", "`handler` is missing or no text", help="Send `Agent.event`.")
    return await _begin_further(request, body, partial(begin_named, name=handler, payload=body.get("payload")))


async def _begin_further(request: Request, body: Mapping[str, Any], begin: partial[HeldCall]) -> Response:
    """The answer to a request that begins a call in a session: its result, where the client waits for it."""
    session, wait_s = session_of(request), wait_of(request)

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


def call_by_message(body: Mapping[str, Any]) -> partial[HeldCall]:
    """A function that begins the call of a message, with images and an optional handler. Raises KoiError."""
    text, images = body["message"], body.get("images")
    if not isinstance(text, str) or not isinstance(images, list | None):
        help = 'Send `message` as a text, and `images` as a list of {"media_type", "data"}.'
        raise HttpError(400, "invalid_request", "the message is no text, or the images are no list", help=help)
    return partial(begin_message, said=message_with_images(text, images), name=body.get("handler", ""))


def _title(body: dict[str, Any], *, has_call: bool) -> str:
    """The title of a run in lists: its first text, or the one given for a waiting run. Raises HttpError."""
    title = body.get("title")
    if title is None:
        return str(body.get("message") or body.get("handler", ""))
    if not isinstance(title, str) or has_call:
        help = "Leave it out: a run is listed as what it begins with."
        raise HttpError(400, "invalid_request", "`title` is a text, of a run that waits for a command", help=help)
    return title


async def list_runs(request: Request) -> Response:
    """A page of the runs that the user may see, newest first; runs of other processes begin the first one."""
    host = host_of(request)
    limit = number_of(request, "limit", DEFAULT_RUNS, MAX_RUNS)
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
    session, wait_s = run_of(request), wait_of(request)
    if wait_s and isinstance(session, HostedSession):
        await session.wait_for_rest(wait_s)
    return JSONResponse(await _describe_run(session, user_of(request)))


async def _describe_run(run: RunHandle, user: User, call: str | None = None) -> dict[str, Any]:
    """A run with its open requests, its current call, and the end of that or the last one. Raises JournalError."""
    listing = run.listing()
    outcome = await asyncio.to_thread(read_outcome, run.feed.journal, listing.usage.last_call, call)
    details = {**listing.as_data(), "open": run.feed.requests, **run.describe_call(), **outcome}
    return details if user.is_admin else details | hide_operator(outcome)


async def delete_run(request: Request) -> Response:
    """Remove a run."""
    await host_of(request).delete(request.path_params["id"], user_of(request))
    return Response(status_code=204)


async def send_command(request: Request) -> Response:
    """Carry out a command of `koi rpc` in a run; the answer is its response."""
    body = await body_of(request)
    run = body.pop("run", None)
    if not isinstance(run, str):
        raise SessionError("invalid_request", "`run`: the message names no run", help="Send the id of one as `run`.")
    user = user_of(request)
    response = await handle_as(user, host_of(request).find_run(run, user), body)
    # All else that is refused is told in the response; a service without room is told to proxies and clients, too.
    status = STATUSES[code] if (code := response.get("error_code")) in RETRIED else 200
    return JSONResponse(response, status, headers_of(status))
