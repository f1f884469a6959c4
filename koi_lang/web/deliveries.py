"""What others were told over HTTP, for admins."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.web.answers import HttpError
from koi_lang.web.request_context import host_of, user_of


async def list_deliveries(request: Request) -> Response:
    """The deliveries, newest first; with `?undelivered=true` only those that have not arrived. Raises HttpError."""
    if not user_of(request).is_admin:
        raise HttpError(403, "admins_only", "deliveries are shown to admins alone")
    given = request.query_params.get("undelivered", "false")
    if given not in ("true", "false"):
        raise HttpError(400, "invalid_request", "`undelivered` is neither `true` nor `false`", help="Leave it out.")
    return JSONResponse({"deliveries": host_of(request).webhooks.list_deliveries(undelivered=given == "true")})
