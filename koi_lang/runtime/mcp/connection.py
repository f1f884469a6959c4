"""One live server: from its declared options to its tools and their results."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast
from warnings import catch_warnings, simplefilter

from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    RequestParamsMeta,
    ServerCapabilities,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from koi_lang.errors import KoiError, McpServerError, capture, reason
from koi_lang.events import OMITTED, McpProgress
from koi_lang.runtime.mcp.authorization import SignInContext
from koi_lang.runtime.mcp.caller import Caller
from koi_lang.runtime.mcp.client_requests import ClientRequests
from koi_lang.runtime.mcp.configured import is_process
from koi_lang.runtime.mcp.limits import Limits, every, limits_of
from koi_lang.runtime.mcp.process import StderrTail
from koi_lang.runtime.mcp.safe_text import one_line, plain
from koi_lang.runtime.mcp.sign_in import PersonSignIn
from koi_lang.runtime.mcp.tools import Tool
from koi_lang.runtime.mcp.transport import SESSION_HANDLE, Listener, MendedStream, transport

T = TypeVar("T")
SessionMeta: TypeAlias = RequestParamsMeta | None
Work: TypeAlias = Callable[[Client, SessionMeta], Awaitable[T]]
# How long a server that has broken an answer off may take to say that it is there.
PROBE_S = 5.0
MAX_CAUSE_CHARS = 4000


class McpConnection:
    """A connection to a server: `serve` runs in a task of its own, everything else is called from elsewhere.

    Attributes:
        name: of the server.
        tools: what it offers by name, known when it is ready.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        person: PersonSignIn | None = None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.name = name
        self._person = person
        self._note = note
        self.tools: Mapping[str, Tool] = {}
        self._options, self._limits = options, Limits()
        self._words, self._errands = StderrTail(), ClientRequests(name)
        self._client: Client | None = None
        self._failure: Exception | None = None
        self._limit: asyncio.Timeout | None = None
        self._is_outdated = False
        self._started = asyncio.Event()
        self._over = asyncio.Event()
        self._gone = asyncio.Event()
        self._session_missing = asyncio.Event()
        # The session that a server leads back to whose protocol has none, and what the request holds that begins it.
        self._handle, self._first_request = "", asyncio.Lock()

    @property
    def over(self) -> bool:
        """Whether no call can succeed any more."""
        return self._over.is_set()

    @property
    def abilities(self) -> ServerCapabilities:
        """The abilities of the server beside tools, known when it is ready."""
        return self._live.server_capabilities

    @property
    def _live(self) -> Client:
        assert self._client is not None, "a call before the connection is ready"
        return self._client

    def stop(self) -> None:
        """Have `serve` end, also while it still connects."""
        self._over.set()
        if self._limit is not None and not self._started.is_set() and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    # ------------------------------------------------------------ the task

    async def serve(self) -> None:
        """Connect, list the tools, and hold the connection until `stop` or the end of the server."""
        try:
            ended = await capture(self._run_connection())
            if ended.error is not None:  # becomes that of everybody who waits for the server
                self._failure = _innermost(ended.error)
        finally:
            for event in (self._over, self._started, self._gone):
                event.set()

    async def _run_connection(self) -> None:
        self._limits = limits_of(self.name, self._options)
        async with asyncio.timeout(0 if self.over else self._limits.start_s) as self._limit:
            await self._hold(self._limit)

    async def _hold(self, limit: asyncio.Timeout) -> None:
        _keep_log_quiet()
        around = None if self._person is None else SignInContext(self._person, self._be_patient)
        listener = Listener(self._words, self._over.set, self._session_missing.set, around)
        way = transport(self.name, self._options, self._limits, listener)
        async with (
            way as (reading, writing),
            Client(
                nullcontext((mended := MendedStream(reading, self.name, self._note), writing)),
                read_timeout_seconds=self._limits.call_s,
                cache=None,
                message_handler=self._on_message,
                sampling_callback=self._errands.sample,
                elicitation_callback=self._errands.elicit,
            ) as client,
        ):
            mended.is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
            self.tools = await _list_tools(self.name, client)
            limit.reschedule(None)
            self._client = client
            self._started.set()
            await self._until_over(client)

    def _be_patient(self, waits: bool) -> None:
        """Let no time pass for the start while a person signs in."""
        if self._limit is None or self._started.is_set() or self.over:
            return
        now = asyncio.get_running_loop().time()
        self._limit.reschedule(None if waits else now + self._limits.start_s)

    async def _until_over(self, client: Client) -> None:
        """Wait for the end; newer servers report changed tools only to listeners."""
        tools = client.server_capabilities.tools
        listens = client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and tools.list_changed
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(self._listen(client)) if listens else None
            await self._over.wait()
            if listening is not None:
                listening.cancel()

    async def _listen(self, client: Client) -> None:
        with suppress(MCPError, SubscriptionLost, TimeoutError):  # the tools stay those that were listed last
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._is_outdated = True

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._is_outdated = True

    # ------------------------------------------------------------ calls

    async def wait_until_ready(self) -> None:
        """Wait until tools can be called. Raises McpServerError when that is not to be."""
        await self._started.wait()
        if self._client is None:
            error = self._failure
            if isinstance(error, KoiError):
                raise McpServerError(error.message, help=error.help) from error
            if isinstance(error, OSError) and error.errno is not None and is_process(self._options):
                raise _not_started(self.name, str(self._options.get("command")), error) from error
            raise McpServerError(f"the MCP server `{self.name}` cannot be reached: {self._cause(error)}") from error

    async def renew(self) -> bool:
        """List the tools again if the server has said that they changed; whether it has. Raises McpServerError."""
        if not self._is_outdated:
            return False
        self._is_outdated = False
        self.tools = await self.ask("tools/list", lambda client, _: _list_tools(self.name, client))
        return True

    async def ask(self, what: str, work: Work[T], caller: Caller | None = None) -> T:
        """The result of a request. Raises McpServerError when the server gives no answer.

        Args:
            what: the request, as messages name it.
            work: makes it, with the `_meta` that it is given.
            caller: on whose behalf; the server may in turn ask for its model and its person.
        """
        begin = monotonic()
        with self._errands.of(caller) if caller is not None else nullcontext():
            ended = await capture(self._ask(work))
        if ended.error is None or _is_answer(ended.error):
            self._words.hear()
        if ended.error is None:
            return ended.result()
        if not is_process(self._options) and await self._is_lost(ended.error):
            self.stop()
        raise await self._call_error(what, ended.error, monotonic() - begin) from ended.error

    async def _is_lost(self, error: Exception) -> bool:
        """Whether a server over HTTP knows the session no longer; an answer that breaks off fails one call only.

        Status 404 says so, whatever the error in it; a server may also send it for a method that it does not know.
        """
        if isinstance(error, MCPError) and SESSION_HANDLE in (error.data or ()):
            return True
        is_suspect = isinstance(error, MCPError) and error.code in (CONNECTION_CLOSED, INVALID_REQUEST)
        if not is_suspect and not self._session_missing.is_set():
            return False
        self._session_missing.clear()
        if self._live.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return False  # no session that could be lost
        with catch_warnings():  # it is a request of these protocols, and of no newer ones
            simplefilter("ignore", MCPDeprecationWarning)
            ping = self._live.send_ping()
        return (await capture(asyncio.wait_for(ping, PROBE_S))).error is not None

    async def _ask(self, work: Work[T]) -> T:
        async with self._session_meta(self._live) as meta:
            result = await work(self._live, meta)
            self._handle = (getattr(result, "meta", None) or {}).get(SESSION_HANDLE, self._handle)
        return result

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> Any:
        """The result of a tool, as the library gives it. Raises McpServerError when the server gives none."""

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            said = OMITTED if message is None else one_line(message)
            event = McpProgress(self.name, tool, progress, total, said)
            caller.agent.run.events.emit(event, caller.agent.name, path=caller.path)

        def work(client: Client, meta: SessionMeta) -> Awaitable[Any]:
            return client.call_tool(tool, dict(arguments), progress_callback=on_progress, meta=meta)

        return await self.ask(tool, work, caller)

    @asynccontextmanager
    async def _session_meta(self, client: Client) -> AsyncIterator[SessionMeta]:
        """The metadata that leads a request to the session of earlier ones; the first one runs alone."""
        able = client.server_capabilities.extensions or {}
        if is_process(self._options) or SESSION_HANDLE not in able:
            yield None
        elif self._handle:
            yield cast(SessionMeta, {SESSION_HANDLE: self._handle})
        else:
            async with self._first_request:
                yield cast(SessionMeta, {SESSION_HANDLE: self._handle})

    async def _call_error(self, what: str, error: Exception, took_s: float) -> McpServerError:
        if not self.over and _is_timeout(error) and took_s >= self._limits.call_s:
            message = f"`{self.name}.{what}` failed: no answer within {self._limits.call_s:g} s"
            return McpServerError(message, help="The option `timeout_s` of the server says how long it may take.")
        if not self.over:
            return McpServerError(f"`{self.name}.{what}` failed: {_text(error)}")
        await self._gone.wait()
        if isinstance(self._failure, KoiError):
            return McpServerError(self._failure.message, help=self._failure.help)
        return McpServerError(f"the MCP server `{self.name}` was lost during `{what}`: {self._cause(error)}")

    def _cause(self, error: Exception | None) -> str:
        """The cause of a failure: the server's answer or delay with its last output, else the error noticed here."""
        words = plain("\n".join(self._words.lines)[-MAX_CAUSE_CHARS:], MAX_CAUSE_CHARS)
        if isinstance(error, TimeoutError):
            late = f"no answer within {self._limits.start_s:g} s"
            return f"{late}; it said: {words}" if words else late
        # Over HTTP the words are about the refusal, for which the library has an answer of its own.
        has_answered = error is not None and is_process(self._options) and _is_answer(error)
        if error is not None and (has_answered or not words):
            return _text(error)
        return words or "the connection was closed"


async def _list_tools(server: str, client: Client) -> dict[str, Tool]:
    """All tools, page after page; none from a server that has no tools at all."""
    found: dict[str, Tool] = {}
    if client.server_capabilities.tools is None:
        return found
    for tool in await every(lambda cursor: client.list_tools(cursor=cursor), "tools"):
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
        needs_task = tool.execution is not None and tool.execution.task_support == "required"
        found[tool.name] = Tool(server, tool.name, tool.description or "", tool.input_schema, hints, needs_task)
    return found


def _keep_log_quiet() -> None:
    """Keep the log of the library off the terminal, unless logging is set up."""
    for name in ("mcp", "client"):
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(logging.NullHandler())


def _is_answer(error: Exception) -> bool:
    """Whether an error is the answer of a server that is still alive."""
    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


def _is_timeout(error: Exception) -> bool:
    return isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT


def _not_started(server: str, command: str, error: OSError) -> McpServerError:
    if shutil.which(command) is None:
        help = "Install it, or write where the program is in `command`."
        return McpServerError(
            f"the MCP server `{server}` cannot be started: there is no command `{command}`", help=help
        )
    return McpServerError(f"the MCP server `{server}` cannot be started: {reason(error)}: {error.filename or command}")


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(error: Exception) -> str:
    if isinstance(error, ValidationError):
        place = one_line(".".join(map(str, error.errors(include_url=False)[0]["loc"])))
        return f"`{place}` of the answer is not as the protocol says"
    return plain(str(getattr(error, "message", None) or error or type(error).__name__), MAX_CAUSE_CHARS)
