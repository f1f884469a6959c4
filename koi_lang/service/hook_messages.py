"""Messages over HTTP for jobs: authentication and deduplication."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Any

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
