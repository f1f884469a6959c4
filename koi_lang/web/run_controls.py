"""Controls of a run over HTTP: end, pause, steer, answer, branch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.events import ModelAnswered
from koi_lang.runtime.journal.reader import read
from koi_lang.service.attached import RunHandle
from koi_lang.sessions.earlier_session import BranchPoint
from koi_lang.web.answers import HttpError, refused_answer
from koi_lang.web.idempotency import answer_once
from koi_lang.web.request_context import body_with, host_of, run_of, session_of, started_answer, user_of
from koi_lang.web.runs import call_by_message

MESSAGE, BRANCHED = ("message", "agent", "images"), ("at", "answer", "message")


async def cancel_run(request: Request) -> Response:
    """End the current work of a run, with everything that it started; a sleeping one without requests stays asleep."""
    session = run_of(request)
    await body_with(request)
    if not session.is_awake and not session.feed.requests:
        return JSONResponse({"aborted": False, "queued": []})
    return await _answer_command(session, "abort")


async def pause_run(request: Request) -> Response:
    """Have the next request of a run to a model wait."""
    await body_with(request)
    return await _answer_command(run_of(request), "pause")


async def continue_run(request: Request) -> Response:
    """End a pause."""
    await body_with(request)
    return await _answer_command(run_of(request), "continue")


async def steer_run(request: Request) -> Response:
    """Say something that is heard before a model is asked next."""
    return await _answer_command(run_of(request), "steer", await body_with(request, *MESSAGE))


async def approve_run(request: Request) -> Response:
    """Answer a request for permission."""
    body = await body_with(request, "request", "decision", "reason")
    return await _answer_command(run_of(request), "approve", body)


async def answer_run(request: Request) -> Response:
    """Answer a question."""
    body = await body_with(request, "request", "answer")
    if not isinstance(body.get("answer"), str):
        help = "Send the `id` of a question as `request`, and a text as `answer`."
        raise HttpError(400, "invalid_request", "`answer` is missing or no text", help=help)
    return await _answer_command(run_of(request), "answer", body)


async def branch_run(request: Request) -> Response:
    """Begin a run that goes on from an entry of another one; with an answer, that stands in place of the one there."""
    session = session_of(request)
    host = host_of(request)
    body = await body_with(request, *BRANCHED)
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


def _branch_point(body: Mapping[str, Any]) -> BranchPoint | None:
    """Where a branch begins; None for the last entry. Raises HttpError."""
    at, answer = body.get("at"), body.get("answer")
    if at is None and answer is None:
        return None
    if type(at) is not int or at < 1:
        raise HttpError(400, "invalid_request", "`at` is no number of an entry", help="Take `n` of an entry.")
    if answer is not None and not isinstance(answer, str):
        raise HttpError(400, "invalid_request", "`answer` is no text")
    return BranchPoint(at, answer)


async def _answer_command(session: RunHandle, type: str, fields: Mapping[str, Any] | None = None) -> Response:
    """The answer to a request that is a command of `koi rpc`."""
    response = await session.handle({**(fields or {}), "type": type})
    return JSONResponse(response.get("data") or {}) if response["success"] else refused_answer(response)
