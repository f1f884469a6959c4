"""One live server: from its declared options to its tools and their results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, KoiError
from koi_lang.runtime.mcp.tools import Tool
from koi_lang.runtime.mcp.transport import LastWords, is_process, transport

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

START_S = 30.0
CALL_S = 300.0
MOST_PAGES = 100


class Connection:
    """A connection to a server: `serve` runs in a task of its own, everything else is called from elsewhere.

    Attributes:
        name: of the server.
        tools: what it offers, known when it is ready.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.tools: Sequence[Tool] = ()
        self._options, self._words = options, LastWords()
        self._client: Client | None = None
        self._failure: Exception | None = None
        self._limit: asyncio.Timeout | None = None
        self._started, self._over, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether no call can succeed any more."""
        return self._over.is_set()

    def stop(self) -> None:
        """Have `serve` end, also while it still connects."""
        self._over.set()
        if self._limit is not None and not self._started.is_set() and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    # ------------------------------------------------------------ the task

    async def serve(self) -> None:
        """Connect, list the tools, and hold the connection until `stop` or the end of the server."""
        try:
            async with asyncio.timeout(0 if self.over else START_S) as self._limit:
                await self._hold(self._limit)
        except Exception as error:  # becomes that of everybody who waits for the server
            self._failure = _innermost(error)
        finally:
            for event in (self._over, self._started, self._gone):
                event.set()

    async def _hold(self, limit: asyncio.Timeout) -> None:
        from mcp import Client

        _keep_log_quiet()
        way = transport(self.name, self._options, self._words, self._over.set)
        async with Client(way, read_timeout_seconds=CALL_S, cache=None) as client:
            self.tools = await _listed(self.name, client)
            limit.reschedule(None)
            self._client = client
            self._started.set()
            await self._over.wait()

    # ------------------------------------------------------------ calls

    async def wait_until_ready(self) -> None:
        """Wait until tools can be called. Raises AgentError when that is not to be."""
        await self._started.wait()
        if self._client is None:
            error = self._failure
            if isinstance(error, KoiError):
                raise AgentError(error.message, help=error.help) from error
            raise AgentError(f"the MCP server `{self.name}` cannot be reached: {self._cause(error)}") from error

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The result of a tool. Raises AgentError when the server gives none."""
        assert self._client is not None, "a call before the connection is ready"
        try:
            return await self._client.call_tool(tool, dict(arguments))
        except Exception as error:
            if not is_process(self._options) and _breaks(error):
                self.stop()
            raise await self._failed(tool, error) from error

    async def _failed(self, tool: str, error: Exception) -> AgentError:
        if not self.over:
            return AgentError(f"`{self.name}.{tool}` failed: {_text(error)}")
        await self._gone.wait()
        return AgentError(f"the MCP server `{self.name}` was lost during `{tool}`: {self._cause(error)}")

    def _cause(self, error: Exception | None) -> str:
        """What the server said last; where it said nothing, what was noticed."""
        if self._words.lines:
            return "\n".join(self._words.lines)
        if isinstance(error, TimeoutError):
            return f"no answer within {START_S:g} s"
        return "the connection was closed" if error is None else _text(error)


async def _listed(server: str, client: Client) -> list[Tool]:
    """All tools, page after page."""
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
            found.append(Tool(server, tool.name, tool.description or "", tool.input_schema, hints))
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _keep_log_quiet() -> None:
    """What the library logs is for those who set up logging, not for the terminal of a program."""
    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


def _breaks(error: Exception) -> bool:
    """Whether an error means that a server cannot be reached over HTTP any more, or knows the session no longer."""
    from mcp.shared.exceptions import MCPError
    from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

    return isinstance(error, MCPError) and error.code in (CONNECTION_CLOSED, INVALID_REQUEST)


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(error: Exception) -> str:
    return str(getattr(error, "message", None) or error or type(error).__name__)
