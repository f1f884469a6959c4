"""Messages that come over HTTP for jobs: who may send them, and which are one and the same."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping

# Headers that carry the id of a message, which is sent again where the answer was lost.
IDS = ("koi-delivery", "webhook-id", "x-github-delivery", "x-gitea-delivery", "idempotency-key")
LONGEST_ID = 200
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
    fields = dict(part.strip().partition("=")[::2] for part in given.split(","))
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


def message_id(headers: Mapping[str, str]) -> str | None:
    """What tells a message from others, where its sender says so."""
    return next((headers[name][:LONGEST_ID] for name in IDS if headers.get(name, "").strip()), None)
