"""From the declared options of a server to the streams its messages go through."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from koi_lang.errors import AgentError
from koi_lang.runtime.schema import problems
from koi_lang.runtime.values.conversions import text as text_of
from koi_lang.runtime.values.undefined import undefined
from koi_lang.settings import environment

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

MOST_LINES = 20
MOST_BYTES = 16_384
# How long the last words of a process that has ended are waited for: what it started may hold its stderr open.
LAST_WORDS_S = 0.5
REFUSED = (401, 403)
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
    "properties": {"type": {"enum": ["http"]}, "url": TEXT, "headers": {"type": "object"}},
    "required": ["type", "url"],
}


def transport(
    name: str, options: Mapping[str, Any], words: LastWords, ended: Callable[[], None]
) -> AbstractAsyncContextManager[TransportStreams]:
    """The way to talk to a server.

    Args:
        options: `{command, args, env, cwd}`, or `{type: "http", url, headers}`.
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
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=options["command"],
        args=options.get("args", []),
        env={**environment(), **_texts(options.get("env", {}))},
        cwd=options.get("cwd"),
    )
    async with words.taken() as file, stdio_client(parameters, file) as (reading, writing):
        file.close()
        yield _Watched(reading, ended), writing


@asynccontextmanager
async def _address(options: Mapping[str, Any], words: LastWords) -> AsyncIterator[TransportStreams]:
    """A server that is reached over HTTP."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: httpx2.Response) -> None:
        if response.status_code in REFUSED:
            words.data_received(f"HTTP {response.status_code} {response.reason_phrase}".encode())

    headers, limits = _texts(options.get("headers", {})), httpx2.Timeout(30.0, read=300.0)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=limits, event_hooks={"response": [note]}) as client,
        streamable_http_client(options["url"], http_client=client) as streams,
    ):
        yield streams


def _texts(entries: Mapping[str, Any]) -> dict[str, str]:
    """Entries as texts, without empty ones: a variable that is not set does not hide an inherited one."""
    return {
        name: text_of(value) for name, value in entries.items() if value not in (None, "") and value is not undefined
    }


class LastWords(asyncio.Protocol):
    """What a server says beside its messages, such as on stderr; only the end is kept."""

    def __init__(self) -> None:
        self._kept = b""
        self._closed = asyncio.Event()

    @property
    def lines(self) -> list[str]:
        """The last lines, at most 20."""
        return self._kept.decode("utf-8", "replace").splitlines()[-MOST_LINES:]

    def data_received(self, data: bytes) -> None:
        """Keep the end of all that came."""
        self._kept = (self._kept + data)[-MOST_BYTES:]

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come."""
        self._closed.set()

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[TextIO]:
        """A file whose content comes here; at the end, its last words are waited for."""
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as file:
            loop = asyncio.get_running_loop()
            pipe, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
            try:
                yield file
            finally:
                file.close()
                await self._wait_for_last_words(pipe)

    async def _wait_for_last_words(self, pipe: asyncio.BaseTransport) -> None:
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._closed.wait()
        except TimeoutError:
            return
        finally:
            pipe.close()


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
