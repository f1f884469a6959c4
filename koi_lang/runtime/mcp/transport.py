"""From the declared options of a server to the streams its messages go through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import httpx2
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse
from mcp.types.methods import validate_server_result
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from koi_lang.errors import REFUSED
from koi_lang.js.conversions import text as text_of
from koi_lang.js.undefined import undefined
from koi_lang.redaction.redactor import is_secret
from koi_lang.runtime.mcp.authorization import Authorization, SignInContext
from koi_lang.runtime.mcp.configured import complete_options, is_process
from koi_lang.runtime.mcp.limits import Limits
from koi_lang.runtime.mcp.process import ServerCommand, StderrTail, process_streams
from koi_lang.runtime.mcp.tools import mend_tool
from koi_lang.settings import environment
from koi_lang.system.certificates import certificates

NOT_FOUND = 404
# The newest protocol whose results do not say of what kind they are.
HANDSHAKE_VERSION = "2025-11-25"
# Of protocols without sessions: the extension by which a server leads a client to the agents that it has met before,
# and the field of `_meta` with the handle of that session; empty where the client asks for one.
SESSION_HANDLE = "koi-lang/session"


@dataclass(frozen=True, slots=True)
class Listener:
    """The receiver of a server's output that is no message.

    Attributes:
        words: take what a process writes to stderr, or why it is refused over HTTP.
        ended: is called when a process says no more.
        lost: is called when a server over HTTP does not find the session.
        around: who signs in; None where nobody can.
    """

    words: StderrTail
    ended: Callable[[], None]
    lost: Callable[[], None]
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
    given = complete_options(name, options)
    if is_process(given):
        return _process(given, limits, listener)
    return _address(given, limits, listener, _authorization(name, given, listener))


# ---------------------------------------------------------------- odd tools


class MendedStream:
    """Messages of a server, with forbidden parts of its tools removed.

    The library would refuse the whole list, and a result of the newest protocol that does not say of what kind it is.

    Args:
        name: of the server.
        odd: is told what that is, a line for each tool.

    Attributes:
        is_modern: whether results have to say that.
    """

    def __init__(self, stream: ReadStream[SessionMessage | Exception], name: str, odd: Callable[[str], None]) -> None:
        self._stream = stream
        self._name = name
        self._odd = odd
        self.is_modern = False
        self._told: set[str] = set()

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent, where the transport keeps it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        return self._mend(await self._stream.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._mend(await anext(self._stream))

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._stream.__aexit__(*raised)

    def _mend(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
            if isinstance(result.get("tools"), list) and _odd_places(result):
                mended = [mend_tool(tool, _odd_places) for tool in result["tools"]]
                result["tools"] = [tool for tool, _ in mended if tool is not None]
                lines = {f"the MCP server `{self._name}` {note}" for _, note in mended if note} - self._told
                self._told |= lines
                for line in sorted(lines):
                    self._odd(line)
            if self.is_modern:
                result.setdefault("resultType", "complete")
        return item


def _odd_places(result: Mapping[str, Any]) -> list[Sequence[int | str]]:
    """Where tools are not as the protocol says, each as the steps within a tool."""
    version = MODERN_PROTOCOL_VERSIONS[-1] if "resultType" in result else HANDSHAKE_VERSION
    try:
        validate_server_result("tools/list", version, result)
    except ValidationError as error:
        places = [each["loc"] for each in error.errors(include_url=False, include_input=False)]
        return [place[2:] for place in places if place[:1] == ("tools",) and len(place) > 1]
    return []


# ---------------------------------------------------------------- ways


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
    inherited = {name: value for name, value in environment().items() if name in own or not is_secret(name, value)}
    return {**inherited, **_texts(own)}


@asynccontextmanager
async def _address(
    options: Mapping[str, Any], limits: Limits, listener: Listener, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """A server that is reached over HTTP, by the current way or by the older one with a stream of events."""

    async def look(response: httpx2.Response) -> None:
        if response.status_code == NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            listener.lost()
        if response.status_code in REFUSED:
            listener.words.data_received(f"HTTP {response.status_code} {response.reason_phrase}".encode())
        if response.headers.get("content-type", "").lower().startswith("application/json"):
            response.stream = BoundedStream(response.stream, limits.answer_bytes)

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        # Requests have a limit of their own, and a stream of events may be silent for hours.
        timeout = httpx2.Timeout(limits.start_s, read=None)
        headers = _texts(options.get("headers", {}))
        hooks = {"response": [look]}
        return httpx2.AsyncClient(auth=auth, headers=headers, timeout=timeout, event_hooks=hooks, verify=certificates())

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
    """The authentication of requests; none where the options have headers of their own."""
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
