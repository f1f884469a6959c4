"""What was asked of the API to answers of HTTP: JSON, and one form of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from koi_lang.errors import KoiError
from koi_lang.service.errors import ServiceError
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.errors import SessionError

# Bytes of a body that is JSON: the images of a message take at most 18 MiB.
LONGEST_BODY = 20 << 20
STATUSES: Mapping[str, int] = {
    **dict.fromkeys(("unknown_run", "unknown_program", "unknown_handler", "unknown_agent", "session_not_found"), 404),
    **dict.fromkeys(("agent_busy", "not_allowed_here", "nothing_to_continue", "unknown_request", "session_over"), 409),
    "limit_reached": 429,
    **dict.fromkeys(("program_broken", "failed", "model_unavailable"), 503),
}


class HttpError(KoiError):
    """A request that HTTP itself refuses.

    Attributes:
        status: of the answer.
        code: why, in a word for programs.
    """

    def __init__(self, status: int, code: str, message: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.status, self.code = status, code


def error_answer(error: KoiError) -> JSONResponse:
    """The answer to a request that is not carried out."""
    code = error.code if isinstance(error, HttpError | ServiceError | SessionError) else "failed"
    status = error.status if isinstance(error, HttpError) else STATUSES.get(code, 400)
    return JSONResponse({"code": code, "message": error.message, "help": error.help}, status)


def refused_answer(response: Message) -> JSONResponse:
    """The answer to a command that was not carried out, by its response."""
    code = response["error_code"]
    told = {"code": code, "message": response["error"], "help": response.get("help")}
    return JSONResponse(told, STATUSES.get(code, 400))


async def body_of(request: Request) -> dict[str, Any]:
    """The object that a request brings; none is an empty one. Raises HttpError."""
    body = await _read(request)
    if not body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpError(415, "not_json", "the body is not JSON", help="Send Content-Type: application/json.")
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, "parse_error", "the body is no JSON", help="Send one object, in UTF-8.") from error
    if not isinstance(content, dict):
        raise HttpError(400, "parse_error", "the body is JSON, but no object", help="Send one object.")
    return content


async def _read(request: Request) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > LONGEST_BODY:
            raise HttpError(413, "too_large", f"the body is larger than {LONGEST_BODY >> 20} MB")
        pieces.append(piece)
    return b"".join(pieces)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
