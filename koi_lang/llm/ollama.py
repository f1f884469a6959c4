"""The address of an Ollama turned into the models it has, with one look that is not waited for longer than 300 ms."""

from __future__ import annotations

import json
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from koi_lang.errors import SettingsError
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from http import client
else:
    client = lazy_module("http.client")

DEFAULT_PORTS = {"": 11434, "http": 80, "https": 443}
MAX_PROBE_S = 0.3
OK = 200
EVERYWHERE = ("0.0.0.0", "::")  # where a server listens; a client finds it here


def origin_of(address: str) -> str:
    """The `http://host:port` that an address as in OLLAMA_HOST stands for: scheme and port may be missing.

    Raises:
        SettingsError: it is not an address.
    """
    scheme, host, port = _parts(address)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def models_at(address: str, *, limit_s: float = MAX_PROBE_S) -> tuple[str, ...]:
    """The names of the models an Ollama has; none when nobody answers, or not as Ollama does, within the limit.

    The look runs in a thread of its own: no limit of a socket covers looking up a name, or an answer that drips.
    """
    place, found = _parts(address), list[tuple[str, ...]]()
    thread = Thread(
        target=lambda: found.append(_installed_models(*place, limit_s)), daemon=True, name="look for Ollama"
    )
    thread.start()
    thread.join(limit_s)
    return found[0] if found else ()


def _installed_models(scheme: str, host: str, port: int, limit_s: float) -> tuple[str, ...]:
    kind = client.HTTPSConnection if scheme == "https" else client.HTTPConnection
    connection = kind(host, port, timeout=limit_s)
    try:
        connection.request("GET", "/api/tags")
        answer = connection.getresponse()
        return _names(json.loads(answer.read())) if answer.status == OK else ()
    except (OSError, client.HTTPException, ValueError):
        return ()
    finally:
        connection.close()


def _names(document: Any) -> tuple[str, ...]:
    models = document.get("models") if isinstance(document, dict) else None
    entries = models if isinstance(models, list) else []
    return tuple(str(entry["name"]) for entry in entries if isinstance(entry, dict) and entry.get("name"))


def _parts(address: str) -> tuple[str, str, int]:
    """Scheme, host and port; a scheme brings its own usual port, as in Ollama itself."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port or DEFAULT_PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise SettingsError(
            f"`{address}` is not an address of Ollama", help="Write it as `127.0.0.1:11434` or `http://host:port`."
        ) from error
    return parts.scheme or "http", "127.0.0.1" if host in EVERYWHERE else host, port
