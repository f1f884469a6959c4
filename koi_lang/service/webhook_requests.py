"""One attempt to deliver a message: signed, to a permitted host, without reading the response body."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from koi_lang.errors import KoiError, PermissionDeniedError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.service.deliveries import Delivery
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    import httpx2

    from koi_lang.runtime.guards import transport
else:
    httpx2, transport = lazy_module("httpx2"), lazy_module("koi_lang.runtime.guards.transport")

# How long a try may take, from the name of the host to the status of the answer.
TRY_S = 10.0


@dataclass(slots=True)
class HookSender:
    """How messages are sent.

    Attributes:
        secret: signs them.
        allowed: what may be reached beside public hosts.
        is_refused: whether the rules of the person refuse a host.
        try_s: how long a try may take.
    """

    secret: bytes
    allowed: Allowed
    is_refused: Callable[[str], bool] = lambda host: False
    try_s: float = TRY_S

    async def send(self, delivery: Delivery, now: float) -> str:
        """Send a message; gives why it has not arrived, which is empty where it has."""
        await asyncio.to_thread(certificates)  # reading them would hold up the loop
        try:
            async with asyncio.timeout(self.try_s):
                status = await self._status(delivery, int(now))
        except TimeoutError:
            return f"no answer within {self.try_s:g} s"
        except KoiError as error:
            return error.message
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            return f"it cannot be reached: {type(error).__name__}"
        if 200 <= status <= 299:
            return ""
        elsewhere = ", and is not followed elsewhere" if 300 <= status <= 399 else ""
        return f"it answered with status {status}{elsewhere}"

    async def _status(self, delivery: Delivery, now: int) -> int:
        host = str(urlsplit(delivery.address).hostname)
        if self.is_refused(host):
            raise PermissionDeniedError(f"`[permissions]` of `koi.toml` denies `{host}`, or asks about it")
        body = delivery.body.encode()
        headers = {
            "content-type": "application/json",
            "user-agent": "koi",
            "koi-event": delivery.event,
            "koi-delivery": delivery.id,
            "koi-signature": f"t={now},v1={signature(self.secret, now, body)}",
        }
        guarded = transport.Guarded(self.allowed, certificates())
        client = httpx2.AsyncClient(transport=guarded, trust_env=False, follow_redirects=False, timeout=None)
        # What comes back is not read, however much it is: the connection ends with the block.
        async with client, client.stream("POST", delivery.address, headers=headers, content=body) as answer:
            return answer.status_code


def signature(secret: bytes, now: int, body: bytes) -> str:
    """The signature of a body with its time: HMAC-SHA256 of `TIME.BODY`, in hexadecimal digits."""
    return hmac.new(secret, b"%d.%s" % (now, body), hashlib.sha256).hexdigest()
