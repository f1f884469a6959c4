"""From the declared options of a server to the streams its messages go through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any

import httpx2
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from koi_lang.errors import REFUSED, AgentError
from koi_lang.runtime.mcp.words import LastWords
from koi_lang.runtime.schema import problems
from koi_lang.runtime.values.conversions import text as text_of
from koi_lang.runtime.values.undefined import undefined
from koi_lang.settings import environment, is_secret

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
ADDRESS = {
    "type": "object",
    "properties": {"type": {"enum": ["http", "streamable-http", "sse"]}, "url": TEXT, "headers": {"type": "object"}},
    "required": ["url"],
}


def transport(
    name: str, options: Mapping[str, Any], words: LastWords, ended: Callable[[], None]
) -> AbstractAsyncContextManager[TransportStreams]:
    """The way to talk to a server.

    Args:
        options: `{command, args, env, cwd}`, or `{type, url, headers}`; the type is `http`, for older servers `sse`.
        words: takes what a process writes to stderr, or why it is refused over HTTP.
        ended: is called when a process says no more.

    Raises:
        AgentError: the options describe no server.
    """
    given = {key: value for key, value in options.items() if value is not None and value is not undefined}
    wrong = list(problems(given, PROCESS if is_process(given) else ADDRESS))
    if wrong:
        help = 'Declare `{ command, args }`, or `{ type: "http", url }`.'
        raise AgentError(f"the MCP server `{name}` is not declared completely: {'; '.join(wrong)}", help=help)
    return _process(given, words, ended) if is_process(given) else _address(given, words)


def is_process(options: Mapping[str, Any]) -> bool:
    """Whether a server is a process of the run, not something that is reached over HTTP."""
    return "command" in options or "url" not in options


@asynccontextmanager
async def _process(
    options: Mapping[str, Any], words: LastWords, ended: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    """A process that is started; it ends when this is left."""
    parameters = StdioServerParameters(
        command=options["command"],
        args=options.get("args", []),
        env=_environment(options.get("env", {})),
        cwd=options.get("cwd"),
    )
    async with words.taken() as file, stdio_client(parameters, file) as (reading, writing):
        file.close()
        yield _Watched(reading, ended), writing


def _environment(own: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a server: those of this process and its own; keys only if the declaration names them."""
    inherited = {name: value for name, value in environment().items() if name in own or not is_secret(name)}
    return {**inherited, **_texts(own)}


@asynccontextmanager
async def _address(options: Mapping[str, Any], words: LastWords) -> AsyncIterator[TransportStreams]:
    """A server that is reached over HTTP, by the current way or by the older one with a stream of events."""

    async def note(response: httpx2.Response) -> None:
        if response.status_code in REFUSED:
            words.data_received(f"HTTP {response.status_code} {response.reason_phrase}".encode())

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        headers, limits = _texts(options.get("headers", {})), httpx2.Timeout(30.0, read=300.0)
        return httpx2.AsyncClient(headers=headers, timeout=limits, event_hooks={"response": [note]})

    if options.get("type") == "sse":
        async with sse_client(options["url"], httpx_client_factory=client) as streams:
            yield streams
        return
    async with client() as http, streamable_http_client(options["url"], http_client=http) as streams:
        yield streams


def _texts(entries: Mapping[str, Any]) -> dict[str, str]:
    """Entries as texts, without empty ones: a variable that is not set does not hide an inherited one."""
    return {
        name: text_of(value) for name, value in entries.items() if value not in (None, "") and value is not undefined
    }


class _Watched:
    """A stream of messages that tells when its reader has come to the end."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: Callable[[], None]) -> None:
        self._stream, self._ended = stream, ended

    async def receive(self) -> SessionMessage | Exception:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._stream.__anext__()

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._ended()
        return await self._stream.__aexit__(kind, error, trace)
