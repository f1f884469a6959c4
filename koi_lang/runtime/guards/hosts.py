"""Host resolution with a guard: only public addresses, and those that `koi.toml` allows."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from koi_lang.errors import AgentError, PermissionDeniedError, SettingsError

Number = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# Networks whose addresses stand for an IPv4 address in their last 32 bits.
TRANSLATED = tuple(ipaddress.ip_network(each) for each in ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96"))


@dataclass(frozen=True, slots=True)
class Allowed:
    """The reachable addresses beside public ones.

    Attributes:
        hosts: names or numbers of hosts in lower case, each with a port, or None for all ports.
        networks: networks all of whose addresses may be reached.
    """

    hosts: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """From `host`, `host:port`, `[::1]:port` and `10.1.0.0/16`. Raises SettingsError."""
        plain = [entry.strip().lower() for entry in entries]
        networks = tuple(_network(entry) for entry in plain if "/" in entry)
        return cls(frozenset(_host(entry) for entry in plain if "/" not in entry), networks)

    def covers(self, host: str, port: int, number: Number) -> bool:
        """Whether a host may be reached although its number is not public."""
        name = host.lower().rstrip(".")
        named = (name, port) in self.hosts or (name, None) in self.hosts
        return named or any(number in network for network in self.networks)


def _network(entry: str) -> Network:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError as error:
        help = "Write a host, a host with a port, or a network such as `10.1.0.0/16`; no `http://`."
        raise SettingsError(f"`{entry}` in `[http] allow` of `koi.toml` is no network", help=help) from error


def _host(entry: str) -> tuple[str, int | None]:
    if entry.count(":") > 1 and not entry.startswith("["):
        return entry, None
    host, mark, port = (
        entry.removeprefix("[").replace("]", "", 1).rpartition(":") if _has_port(entry) else (entry, "", "")
    )
    name = host.strip("[]").rstrip(".")
    if not name or (mark and not port.isdigit()):
        help = 'Write `allow = ["localhost:8080"]`.'
        raise SettingsError(f"`{entry}` in `[http] allow` of `koi.toml` is no host", help=help)
    return name, int(port) if mark else None


def _has_port(entry: str) -> bool:
    return ":" in entry.rpartition("]")[2]


async def reachable(host: str, port: int, allowed: Allowed) -> list[str]:
    """The numbers of a host, in the order of the system, when all of them may be connected to.

    Raises:
        PermissionDeniedError: one of them is not public and not allowed.
        AgentError: the host has none.
    """
    numbers = await _numbers(host, port)
    require_public(host, port, numbers, allowed)
    return [str(number) for number in numbers]


def require_public(host: str, port: int, numbers: Sequence[Number], allowed: Allowed) -> None:
    """Raise PermissionDeniedError unless all numbers of a host are public or allowed."""
    for number in numbers:
        if not is_public(number) and not allowed.covers(host, port, number):
            shown = f"`{host}`" if str(number) == host else f"`{host}` is {number}, which"
            entry = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            help = f'The person can allow it in `koi.toml`: `[http]` and `allow = ["{entry}"]`.'
            raise PermissionDeniedError(f"{shown} is no public address", help=help)


def is_public(number: Number) -> bool:
    """Whether an address belongs to a host on the internet, also wrapped in another form."""
    return all(
        each.is_global and not (each.is_multicast or each.is_reserved or getattr(each, "is_site_local", False))
        for each in _meant(number)
    )


def _meant(number: Number) -> Iterator[Number]:
    """A number, and those of IPv4 that it carries."""
    if not isinstance(number, ipaddress.IPv6Address):
        yield number
        return
    inner = [number.ipv4_mapped, number.sixtofour, *(number.teredo or ())]
    if any(number in network for network in TRANSLATED):
        inner.append(ipaddress.IPv4Address(int(number) & 0xFFFF_FFFF))
    carried = [each for each in inner if each is not None]
    yield from carried
    if not carried:
        yield number


async def _numbers(host: str, port: int) -> list[Number]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AgentError(f"there is no host `{host}`", help="Look at how it is spelled.") from error
    texts = dict.fromkeys(str(address[0]) for *_, address in found)
    return [ipaddress.ip_address(text.partition("%")[0]) for text in texts]
