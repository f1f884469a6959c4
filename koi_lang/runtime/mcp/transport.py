"""From the declared options of a server to the streams its messages go through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from koi_lang.errors import REFUSED, AgentError
from koi_lang.js.conversions import text as text_of
from koi_lang.js.undefined import undefined
from koi_lang.redaction.names import is_secret_variable
from koi_lang.runtime.mcp.authorization import Authorization, SignInContext
from koi_lang.runtime.mcp.configured import is_process
from koi_lang.runtime.mcp.limits import Limits
from koi_lang.runtime.mcp.process import ServerCommand, process_streams
from koi_lang.runtime.mcp.stderr_tail import StderrTail
from koi_lang.runtime.schema import problems
from koi_lang.settings import environment

TEXT = {"type": "string"}
PROCESS = {
    "type": "object",
    "properties": {
        "type": {"enum": ["stdio"]},
        "command": TEXT,
        "args": {"type": "array", "items": TEXT},
        "env": {"type": "object"},
        "cwd": TEXT,
    },
    "required": ["command"],
}
OAUTH = {"type": "object", "properties": {"client_id": TEXT, "client_secret": TEXT}, "required": ["client_id"]}
ADDRESS = {
    "type": "object",
    "properties": {
        "type": {"enum": ["http", "streamable-http", "sse"]},
        "url": TEXT,
        "headers": {"type": "object"},
        "oauth": OAUTH,
    },
    "required": ["url"],
}


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of a server what is no message.

    Attributes:
        words: take what a process writes to stderr, or why it is refused over HTTP.
        ended: is called when a process says no more.
        around: who signs in; None where nobody can.
    """

    words: StderrTail
    ended: Callable[[], None]
    around: SignInContext | None = None


def transport(
    name: str, options: Mapping[str, Any], limits: Limits, listener: Listener
) -> AbstractAsyncContextManager[TransportStreams]:
    """The way to talk to a server.

    Args:
        options: `{command, args, env, cwd}`, or `{type, url, headers}`; the type is `http`, for older servers `sse`.

    Raises:
        AgentError: the options describe no server.
    """
    given = {key: value for key, value in options.items() if value is not None and value is not undefined}
    wrong = list(problems(given, PROCESS if is_process(given) else ADDRESS))
    if wrong:
        help = 'Declare `{ command, args }`, or `{ type: "http", url }`.'
        raise AgentError(f"the MCP server `{name}` is not declared completely: {'; '.join(wrong)}", help=help)
    if is_process(given):
        return _process(given, limits, listener)
    return _address(given, limits, listener, _authorization(name, given, listener))


@asynccontextmanager
async def _process(options: Mapping[str, Any], limits: Limits, listener: Listener) -> AsyncIterator[TransportStreams]:
    """A process that is started; it ends when this is left."""
    words, environment = [options["command"], *options.get("args", [])], _environment(options.get("env", {}))
    command = ServerCommand(words, environment, options.get("cwd"), limits.answer_bytes)
    async with listener.words.capture() as file, process_streams(command, file, listener.ended) as streams:
        file.close()
        yield streams


def _environment(own: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a server: those of this process and its own; keys only if the declaration names them."""
    inherited = {name: value for name, value in environment().items() if name in own or not is_secret_variable(name)}
    return {**inherited, **_texts(own)}


@asynccontextmanager
async def _address(
    options: Mapping[str, Any], limits: Limits, listener: Listener, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """A server that is reached over HTTP, by the current way or by the older one with a stream of events."""

    async def look(response: httpx2.Response) -> None:
        if response.status_code in REFUSED:
            listener.words.data_received(f"HTTP {response.status_code} {response.reason_phrase}".encode())
        if response.headers.get("content-type", "").lower().startswith("application/json"):
            response.stream = BoundedStream(response.stream, limits.answer_bytes)

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        # Requests have a limit of their own, and a stream of events may be silent for hours.
        timeout = httpx2.Timeout(limits.start_s, read=None)
        headers = _texts(options.get("headers", {}))
        return httpx2.AsyncClient(auth=auth, headers=headers, timeout=timeout, event_hooks={"response": [look]})

    if options.get("type") == "sse":
        async with sse_client(options["url"], httpx_client_factory=client) as streams:
            yield streams
        return
    largest = limits.answer_bytes
    async with (
        client() as http,
        streamable_http_client(options["url"], http_client=http, max_sse_event_size=largest) as streams,
    ):
        yield streams


def _authorization(name: str, options: Mapping[str, Any], listener: Listener) -> httpx2.Auth | None:
    """How requests are authenticated; not at all where the options say themselves what they show."""
    names = {header.lower() for header in _texts(options.get("headers", {}))}
    if listener.around is None or "authorization" in names:
        return None
    return Authorization(name, options["url"], options.get("oauth", {}), listener.around)


class BoundedStream(httpx2.AsyncByteStream):
    """The body of a response, up to so many bytes. Raises StreamError for more."""

    def __init__(self, body: Any, most_bytes: int) -> None:
        self._body, self._most_bytes = body, most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most_bytes
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.StreamError(f"the answer is larger than {self._most_bytes:,} bytes")
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


def _texts(entries: Mapping[str, Any]) -> dict[str, str]:
    """Entries as texts, without empty ones: a variable that is not set does not hide an inherited one."""
    return {
        name: text_of(value) for name, value in entries.items() if value not in (None, "") and value is not undefined
    }
