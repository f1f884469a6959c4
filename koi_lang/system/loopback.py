"""Loopback: whether a host, or an address of the web, leads to this machine and nowhere else."""

from __future__ import annotations

import re

OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
NAMES = rf"localhost|127(?:\.{OCTET}){{3}}"
HOST = re.compile(rf"{NAMES}|::1|\[::1\]", re.IGNORECASE)
# No `@` and no `\`: readers differ about which host is meant then.
URL = re.compile(rf"https?://(?:{NAMES}|\[::1\])(?::\d{{1,5}})?(?:[/?#][^@\\]*)?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether a name or number of a host is that of this machine; one of IPv6 may stand in brackets."""
    return HOST.fullmatch(host) is not None


def is_loopback_url(address: str) -> bool:
    """Whether an `http` or `https` address leads to this machine, however it is read."""
    return URL.fullmatch(address) is not None
