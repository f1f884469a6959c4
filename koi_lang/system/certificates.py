"""The certificates that servers are checked with."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2
else:
    httpx2 = lazy_module("httpx2")


@cache
def certificates(*, trust_env: bool = True) -> SSLContext:
    """The TLS context that all clients of HTTP in this process share: to read what this machine trusts takes 15 ms.

    Args:
        trust_env: whether `SSL_CERT_FILE` and `SSL_CERT_DIR` name other certificates.
    """
    return httpx2.create_ssl_context(trust_env=trust_env)
