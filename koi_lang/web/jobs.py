"""Jobs over HTTP: their list, and messages that start them."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

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
        if not body.strip():
            raise BadBodyError("the message is empty", help="Send an object of JSON, such as {}.")
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


# Headers that carry the id of a message, which is sent again where the answer was lost. No signature covers them.
IDS = ("koi-delivery", "x-github-delivery", "x-gitea-delivery", "idempotency-key")
# What the ids of deliveries of services of Koi begin with, which stand in the body.
DELIVERY = "dlv_"
MAX_ID_CHARS = 200
# Seconds that a message with a time may be older or newer than now.
TOLERANCE_S = 300.0


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> bool:
    """Whether a message was signed with a secret.

    Three forms are known: `Koi-Signature: t=SECONDS,v1=HEX` over `SECONDS.BODY`, as services of Koi send it;
    `Webhook-Signature: v1,BASE64` over `ID.SECONDS.BODY` with `Webhook-Id` and `Webhook-Timestamp` beside it (Standard
    Webhooks); and `X-Hub-Signature-256: sha256=HEX` over the body, as GitHub and Gitea send it. The first two also keep
    others from sending an old message again.

    Args:
        headers: by their names in small letters.
        now: seconds since the epoch.
    """
    if "koi-signature" in headers:
        return _is_signed_by_koi(headers["koi-signature"], body, secret, now)
    if "webhook-signature" in headers:
        return _is_signed_with_time(headers, body, secret, now)
    kind, _, given = headers.get("x-hub-signature-256", "").partition("=")
    return kind == "sha256" and _is_digest_of(given, body, secret.encode())


def _is_signed_by_koi(given: str, body: bytes, secret: str, now: float) -> bool:
    fields = _signature_fields(given)
    seconds = fields.get("t", "")
    return _is_near(seconds, now) and _is_digest_of(
        fields.get("v1", ""), f"{seconds}.".encode() + body, secret.encode()
    )


def _is_signed_with_time(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> bool:
    id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not id or not _is_near(seconds, now):
        return False
    made = hmac.digest(_key(secret), f"{id}.{seconds}.".encode() + body, "sha256")
    given = (each.partition(",") for each in headers["webhook-signature"].split())
    return any(hmac.compare_digest(_bytes(text), made) for version, _, text in given if version == "v1")


def _is_digest_of(given: str, signed: bytes, key: bytes) -> bool:
    """Whether hexadecimal digits are the HMAC of something."""
    made = hmac.digest(key, signed, "sha256").hex()
    return hmac.compare_digest(given.strip().lower().encode(), made.encode())


def _is_near(seconds: str, now: float) -> bool:
    """Whether a time that a message tells is about now."""
    is_time = seconds.isascii() and seconds.isdigit() and len(seconds) < 12
    return is_time and abs(now - int(seconds)) <= TOLERANCE_S


def _key(secret: str) -> bytes:
    """The bytes of a secret; with `whsec_` before it, it is written in base64."""
    if secret.startswith("whsec_"):
        return _bytes(secret.removeprefix("whsec_")) or secret.encode()
    return secret.encode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def message_id(headers: Mapping[str, str], payload: Mapping[str, Any]) -> str | None:
    """The id of a signed message, if its sender gives one.

    Of the forms that have a time only what is signed counts: the id itself, else the signature. So nobody can send a
    message again under another id.
    """
    if "koi-signature" in headers:
        id, fields = payload.get("id"), _signature_fields(headers["koi-signature"])
        is_delivery = isinstance(id, str) and id.startswith(DELIVERY)
        return str(id)[:MAX_ID_CHARS] if is_delivery else f"{fields.get('t')}.{fields.get('v1', '').strip().lower()}"
    if "webhook-signature" in headers:
        return headers["webhook-id"][:MAX_ID_CHARS]
    return next((headers[name][:MAX_ID_CHARS] for name in IDS if headers.get(name, "").strip()), None)


def _signature_fields(header: str) -> dict[str, str]:
    return dict(part.strip().partition("=")[::2] for part in header.split(","))
