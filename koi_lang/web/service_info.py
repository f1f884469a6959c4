"""The service and its programs, over HTTP."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from typing import Any

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.program.declarations import agent_fields
from koi_lang.service.programs import ServedProgram
from koi_lang.service.users import BROWSER_S, BrowserSessions
from koi_lang.system.capacity import are_files_short, count_open_files, file_limits
from koi_lang.version import __version__
from koi_lang.web.answers import RETRY_AFTER_S, HttpError
from koi_lang.web.gate import cookie_name, session_ids
from koi_lang.web.request_context import JsonBody, address_of, host_of, user_of
from koi_lang.web.run_library import RunLibrary

# States of sessions that are counted also where there are none.
COUNTED = ("working", "idle", "asleep")

# What users are told of a program with an error.
NOT_SERVED = "the program is not served now"

# Below so many bytes a disk is short; behind by so many seconds the event loop is late.
MIN_DISK_BYTES, MAX_LAG_S = 50 << 20, 5.0

# In which version 0.5 kept the token itself, for a year.
TOKEN_COOKIE = "koi_token"

# Bytes of a request of somebody who is not known yet.


async def tell_health(request: Request) -> Response:
    """Whether the service can take more work: its open files, its disk, and how late its event loop is."""
    library: RunLibrary = request.app.state.library
    watchdog = None if library.host is None else library.host.watchdog
    lag_s = 0.0 if watchdog is None else watchdog.lag_s
    free = await asyncio.to_thread(lambda: shutil.disk_usage(library.folder).free)
    limits = file_limits()
    checks = {
        "few more files can be opened": are_files_short(),
        "the disk is almost full": free < MIN_DISK_BYTES,
        "the event loop is late": lag_s > MAX_LAG_S,
    }
    problems = [text for text, is_short in checks.items() if is_short]
    files = {"open_files": count_open_files(), "max_files": None if limits is None else limits[0]}
    about = {**files, "free_disk_mb": free >> 20, "loop_lag_s": round(lag_s, 3), "problems": problems}
    status, headers = (503, {"Retry-After": str(RETRY_AFTER_S[503])}) if problems else (200, None)
    return JSONResponse({"ok": not problems, "version": __version__, **about}, status, headers)


async def tell_status(request: Request) -> Response:
    """The user, and the state of the service."""
    host, user = host_of(request), user_of(request)
    states = Counter(session.state for session in host.all(user))
    programs = [program.name for program in host.programs]
    fields = {"version": __version__, "user": user.name, "admin": user.is_admin}
    return JSONResponse({**fields, "sessions": {**dict.fromkeys(COUNTED, 0), **states}, "programs": programs})


async def tell_programs(request: Request) -> Response:
    """The programs with their agents and payloads; their places and errors for admins alone."""
    programs = [program_fields(program) for program in host_of(request).programs]
    if not user_of(request).is_admin:
        own = ({"path": each["name"], **({} if each["ok"] else {"error": NOT_SERVED})} for each in programs)
        programs = [{**each, **hidden} for each, hidden in zip(programs, own, strict=True)]
    return JSONResponse({"programs": programs})


def program_fields(program: ServedProgram) -> dict[str, Any]:
    """A program as `GET /program` gives it."""
    if program.ready is None:
        message = "" if program.error is None else program.error.message
        return {"name": program.name, "path": program.file, "ok": False, "error": message, "agents": [], "chat": []}
    agents = program.agents()
    by_name = {agent.about.name: agent.about for agent in agents}
    chat: list[dict[str, Any]] = []
    for target in program.chat_targets():
        about = by_name[target.agent]
        handler = about.handlers[target.event]
        title = handler.affordance or about.affordance or target.agent
        chat.append(
            {"agent": target.agent, "event": target.event, "field": target.field, "title": title,
             "examples": list(about.examples)}
        )  # fmt: skip
    return {
        "name": program.name,
        "path": program.ready.path,
        "ok": True,
        "agents": [agent_fields(agent) for agent in agents],
        "chat": chat,
    }


async def log_in(request: Request, body: JsonBody) -> Response:
    """Sign a browser in: it shows the id of its session from now on, which no page can read."""
    browsers: BrowserSessions = request.app.state.browsers
    token = body["token"]
    user = browsers.users.of_token(token)
    if user is None and not browsers.users.is_open:
        raise HttpError(401, "no_token", "nobody is known by this token", help="Take the one of the start.")
    answer = JSONResponse({"user": "" if user is None else user.name})
    if user is not None:
        for id in session_ids(request.scope):
            browsers.end(id)
        _set_cookie(request, answer, browsers.begin(token), BROWSER_S)
    return answer


async def log_out(request: Request, body: JsonBody) -> Response:
    """Sign a browser out, with all streams that it has open."""
    browsers: BrowserSessions = request.app.state.browsers
    answer = JSONResponse({})
    for id in session_ids(request.scope):
        browsers.end(id)
        _set_cookie(request, answer, "", 0)
    return answer


def _set_cookie(request: Request, answer: Response, value: str, max_age: int) -> None:
    """Have a browser show the id of a session to this service alone; for 0 seconds, have it forget that."""
    address = address_of(request)
    url = request.base_url
    origin = request.headers.get("origin")
    public = URL(address.public_url)
    if origin == address.public_origin or (origin is None and url.netloc == public.netloc):
        url = public
    name = cookie_name(request.scope)
    path = url.path.rstrip("/") or "/"
    is_secure = url.scheme == "https"
    answer.set_cookie(name, value, max_age, path=path, secure=is_secure, httponly=True, samesite="strict")
    if TOKEN_COOKIE in request.cookies:
        answer.delete_cookie(TOKEN_COOKIE, path)
