"""Servers of models that a person runs, by their addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from koi_lang.errors import ProviderError, UsageError

LOCAL = "local"
ADDRESS_VARIABLE = "LOCAL_BASE_URL"
MAX_NAMES = 5
# What people write in place of an address: a host with a port, or one of this machine, or a number, without.
BARE_HOST = re.compile(r"(?:localhost|\d+(?:\.\d+){3}|(?P<named>[\w.-]+:\d+))(?:/\S*)?", re.IGNORECASE)
ADDRESS_HELP = "Write it as `http://127.0.0.1:8080/v1`, with `#NAME` at its end where there are several models."


def is_address(name: str) -> bool:
    """Whether the name of a model is the address of a server."""
    return name.lower().startswith(("http://", "https://"))


def has_host(address: str) -> bool:
    """Whether an address of the web names a host that can be reached."""
    try:
        parts = urlsplit(address)
        return is_address(address) and address.isprintable() and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def require_scheme(name: str, command: str) -> None:
    """Raise UsageError where somebody has written a host in place of the address of a server, for a `koi` command."""
    if (found := BARE_HOST.fullmatch(name)) is None:
        return
    if found["named"]:
        raise UsageError("the address of a server begins with `http://`", help=f"Write `koi {command} http://{name}`.")
    help = f"Write it with its port, such as `koi {command} http://{name.partition('/')[0]}:8080/v1`."
    raise UsageError("the address of a server begins with `http://` and has a port", help=help)


def read_address(address: str) -> tuple[str, str]:
    """The `base_url` of a server, and the model behind the `#` of its address; `/v1` may be missing.

    Raises:
        UsageError: it is not an address.
    """
    if not has_host(address) or (parts := urlsplit(address)).query or parts.username is not None:
        raise UsageError(f"`{address}` is not an address of a server", help=ADDRESS_HELP)
    path = parts.path.rstrip("/") or "/v1"
    return urlunsplit((parts.scheme.lower(), parts.netloc, path, "", "")), parts.fragment


def origin(address: str) -> str:
    """The part of an address that names the server, `http://host:port`."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}".lower()


def server_title(address: str) -> str:
    """The name of a server in messages: host and port, with the path unless that is `/v1`."""
    path = urlsplit(address).path.rstrip("/")
    return origin(address) + ("" if path == "/v1" else path)


def only_address(addresses: Sequence[str]) -> str:
    """The one address of servers that were found; empty without any. Raises ProviderError where there are several."""
    if len(addresses) > 1:
        ways = " or ".join(f"`-m {origin(each)}`" for each in addresses)
        message = f"{len(addresses)} servers of models run on this machine"
        raise ProviderError(message, help=f"Choose one: {ways}; `koi connect` keeps its address.")
    return addresses[0] if addresses else ""


def unclear_model(base_url: str, names: Sequence[str]) -> ProviderError:
    """The error where no model is named, and a server has none or several."""
    if not names:
        help = "Start it, or name another: `-m http://HOST:PORT/v1`, `base_url` in `koi.toml`, or `LOCAL_BASE_URL`."
        return ProviderError(f"no server of models answers at `{server_title(base_url)}`", help=help)
    ways = ", ".join(f"`-m {base_url}#{name}`" for name in names[:MAX_NAMES])
    return ProviderError(
        f"the server at `{server_title(base_url)}` has {len(names)} models", help=f"Name one of them: {ways}."
    )
