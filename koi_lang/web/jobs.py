"""Jobs over HTTP: their list, and messages that start them."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.service.hook_messages import is_signed, message_id
from koi_lang.service.job_service import JobService
from koi_lang.service.served_jobs import ServedJob
from koi_lang.web.answers import HttpError
from koi_lang.web.json_bodies import BadBodyError, object_in, read_body
from koi_lang.web.request_context import user_of

# Bytes of a message.
MAX_MESSAGE_BYTES = 5 << 20
SIGN = "Send `X-Hub-Signature-256`, or another signature that is known, made with the secret of this path."


def jobs_of_app(request: Request) -> JobService:
    """The jobs of the service."""
    jobs: JobService = request.app.state.jobs
    return jobs


async def list_jobs(request: Request) -> Response:
    """All jobs, for users with access to all runs."""
    if not user_of(request).is_admin:
        raise HttpError(403, "admins_only", "jobs belong to whoever started the service")
    return JSONResponse({"jobs": jobs_of_app(request).list_jobs()})


async def take_message(request: Request) -> Response:
    """Have a message start the job that listens to its path."""
    jobs, path = jobs_of_app(request), f"/{request.path_params['path']}"
    job = jobs.find_hook(path)
    if job is None:
        raise HttpError(404, "unknown_hook", f"nothing listens to `{path}`")
    secret = _secret_of(jobs, job)
    try:
        body = await read_body(request.stream(), request.headers.get("content-length"), MAX_MESSAGE_BYTES)
        if not is_signed(request.headers, body, secret, time.time()):
            raise HttpError(401, "wrong_signature", "the message is not signed as it should be", help=SIGN)
        payload = object_in(body)
    except BadBodyError as error:
        raise HttpError(error.status, "parse_error", error.message, help=error.help) from error
    wrong = jobs.payload_problems(job, payload)
    if wrong:
        raise HttpError(422, "invalid_payload", f"`{job.handler}` does not take it: {'; '.join(wrong)}")
    return _answer(jobs, job, payload, message_id(request.headers, payload))


def _secret_of(jobs: JobService, job: ServedJob) -> str:
    """The secret of messages for a job. Raises HttpError."""
    secret = jobs.secret_of(job)
    if secret is None:
        help = f"Write a secret for `{job.hook}` into `[serve.hook_secrets]` of `koi.toml`."
        raise HttpError(403, "no_secret", f"nobody may send to `{job.hook}`", help=help)
    return secret


def _answer(jobs: JobService, job: ServedJob, payload: object, id: str | None) -> Response:
    start = jobs.scheduler.take_event(job, payload, id)
    if start is None:
        error = {"code": "busy", "message": f"too many messages wait for `{job.id}`", "help": "Send it again later."}
        return JSONResponse(error, 503, {"Retry-After": "60"})
    if start.state == "skipped":
        return JSONResponse({"run": None, "reason": start.reason}, 202)
    return JSONResponse({"run": start.run}, 202)
