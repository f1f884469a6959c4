"""Answers of the API: JSON, and one form of errors."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

from koi_lang.errors import KoiError
from koi_lang.sessions.errors import RefusalError

TOO_LARGE = 413
# Seconds after which a request may be sent again, by the status of its answer.
RETRY_AFTER_S = {429: 10, 503: 2}
STATUSES: Mapping[str, int] = {
    **dict.fromkeys(("unknown_run", "unknown_program", "unknown_handler", "unknown_agent", "session_not_found"), 404),
    **dict.fromkeys(("agent_busy", "not_allowed_here", "nothing_to_continue", "unknown_request", "session_over"), 409),
    "admins_only": 403,
    "limit_reached": 429,
    "overloaded": 503,
    **dict.fromkeys(("program_broken", "program_changed", "model_unavailable"), 409),
}
# What a client of HTTP does about refusals that are explained with commands of `koi rpc` elsewhere.
HELP: Mapping[str, str] = {
    "agent_busy": "Say something to it with `POST /api/runs/ID/steer`, or end it with `POST /api/runs/ID/cancel`.",
    "nothing_to_continue": "Begin a call with `POST /api/runs/ID/messages` or `POST /api/runs/ID/calls`.",
    "unknown_request": (
        "`open` of `GET /api/runs/ID` lists the requests: `POST /api/runs/ID/answer` answers a `question`, and"
        " `POST /api/runs/ID/approve` an `approval_request`."
    ),
}


class HttpError(RefusalError):
    """A request that HTTP itself refuses.

    Attributes:
        status: of the answer.
    """

    def __init__(self, status: int, code: str, message: str, *, help: str | None = None) -> None:
        super().__init__(code, message, help=help)
        self.status = status


def error_answer(error: KoiError) -> JSONResponse:
    """The answer to a request that is not carried out."""
    code = error.code if isinstance(error, RefusalError) else "failed"
    status = error.status if isinstance(error, HttpError) else STATUSES.get(code, 400)
    # Whoever goes on sending what is too large is not listened to.
    headers = {"Connection": "close"} if status == TOO_LARGE else headers_of(status)
    return JSONResponse({"code": code, "message": error.message, "help": HELP.get(code, error.help)}, status, headers)


def headers_of(status: int) -> dict[str, str]:
    """The headers of a status for the next request: how to sign in, or when to retry."""
    if status == 401:
        return {"WWW-Authenticate": 'Bearer realm="koi"'}
    return {"Retry-After": str(RETRY_AFTER_S[status])} if status in RETRY_AFTER_S else {}
