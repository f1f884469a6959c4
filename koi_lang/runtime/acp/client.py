"""A client of ACP: a command that starts an agent, and a text, to what that agent says and does.

The agent acts with the rights of its process. Its caller decides about its requests for permission. Files and terminals
of this side are not offered to it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from koi_lang.errors import AgentError, reason
from koi_lang.outcome import capture
from koi_lang.redaction.redactor import is_secret
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.mcp.process import ServerCommand, process_streams
from koi_lang.settings import environment
from koi_lang.version import __version__

PROTOCOL = 1
MAX_MESSAGE_BYTES, MAX_TEXT_CHARS = 20_000_000, 1_000_000
# How long an agent may take to begin a session, and to end a turn that is cancelled.
START_S, CANCEL_S = 60.0, 1.0
# Says whether a tool call, as the agent describes it, may be made.
DecideToolCall = Callable[[dict[str, Any]], Awaitable[bool]]


@dataclass(slots=True)
class AgentTurn:
    """What an agent has said and done in a turn.

    Attributes:
        stop: why it has ended.
        tools: what it has done, by the ids of its tool calls: their titles, kinds and states.
        usd: what it has cost, as far as the agent says; None where it does not.
    """

    stop: str = ""
    text: str = ""
    tools: dict[str, dict[str, str]] = field(default_factory=dict)
    usd: float | None = None

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {**asdict(self), "tools": list(self.tools.values())}

    def take(self, update: dict[str, Any]) -> None:
        """Follow an update."""
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
                self.text = (self.text + text)[:MAX_TEXT_CHARS]
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(id)}:
                tool = self.tools.setdefault(id, {})
                tool.update(
                    {name: update[name] for name in ("title", "kind", "status") if isinstance(update.get(name), str)}
                )
            case {"sessionUpdate": "usage_update", "cost": {"amount": int() | float() as amount, "currency": "USD"}}:
                self.usd = float(amount)


async def ask_agent(name: str, words: Sequence[str], folder: Path, text: str, decide: DecideToolCall) -> AgentTurn:
    """Start an agent, give it one message, and wait for the end of its turn; its process ends with that.

    Args:
        name: of the agent, for messages.
        decide: is asked for each tool call that the agent wants permission for.

    Raises:
        AgentError: it cannot be started, does not speak the protocol, or fails.
    """
    variables = {name: value for name, value in environment().items() if not is_secret(name, value)}
    command = ServerCommand(words, variables, str(folder), MAX_MESSAGE_BYTES)
    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    try:
        with nowhere:
            async with process_streams(command, nowhere, lambda: None) as (reading, writing):
                client = _Client(name, writing, decide)
                outcome = await capture(client.carry_out(reading, folder, text))
    except OSError as error:
        raise AgentError(
            f"`{name}` cannot be started: {reason(error)}", help="Is it installed, and on PATH?"
        ) from error
    outcome.result()
    return client.turn


class _Client:
    """One connection, with one session and one turn in it."""

    def __init__(self, name: str, writing: WriteStream[SessionMessage], decide: DecideToolCall) -> None:
        self._name, self._writing, self._decide = name, writing, decide
        self._open: dict[int | str | None, asyncio.Future[dict[str, Any]]] = {}
        # Tool calls by their ids, as they have been described so far.
        self._calls: dict[str, dict[str, Any]] = {}
        self.turn = AgentTurn()

    async def carry_out(self, reading: ReadStream[SessionMessage | Exception], folder: Path, text: str) -> None:
        """Begin a session and have the turn carried out. Raises AgentError."""
        async with together() as group:
            following = group.create_task(self._follow(reading, group))
            await self._carry_out(folder, text, group)
            following.cancel()

    async def _carry_out(self, folder: Path, text: str, group: asyncio.TaskGroup) -> None:
        try:
            async with asyncio.timeout(START_S):
                info = {"name": "koi", "version": __version__}
                capabilities = {"protocolVersion": PROTOCOL, "clientCapabilities": {}, "clientInfo": info}
                if (await self._ask("initialize", capabilities)).get("protocolVersion") != PROTOCOL:
                    raise AgentError(f"`{self._name}` does not speak version {PROTOCOL} of ACP")
                session = (await self._ask("session/new", {"cwd": str(folder), "mcpServers": []})).get("sessionId")
        except TimeoutError as error:
            raise AgentError(f"`{self._name}` did not begin a session within {START_S:g} s") from error
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        turn = group.create_task(self._ask("session/prompt", prompt))
        try:
            self.turn.stop = str((await asyncio.shield(turn)).get("stopReason"))
        except asyncio.CancelledError:
            await self._send(JSONRPCNotification(jsonrpc="2.0", method="session/cancel", params={"sessionId": session}))
            await asyncio.wait([turn], timeout=CANCEL_S)
            turn.cancel()
            raise

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        id = len(self._open) + 1
        self._open[id] = asyncio.get_running_loop().create_future()
        await self._send(JSONRPCRequest(jsonrpc="2.0", id=id, method=method, params=params))
        return await self._open[id]

    async def _send(self, message: JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> None:
        try:
            await self._writing.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise AgentError(f"`{self._name}` has ended before its turn did") from error

    async def _follow(self, reading: ReadStream[SessionMessage | Exception], group: asyncio.TaskGroup) -> None:
        """Take in what the agent sends, until it says no more, which fails what is still asked."""
        async for received in reading:
            match received if isinstance(received, Exception) else received.message:
                case JSONRPCResponse(id=id, result=result):
                    self._settle(id, result)
                case JSONRPCError(id=id, error=error):
                    self._settle(id, AgentError(f"`{self._name}` fails: {error.message}"))
                case JSONRPCRequest() as request:
                    group.create_task(self._answer(request))
                case JSONRPCNotification(method="session/update", params={"update": dict(update)}):
                    self.turn.take(update)
                    if isinstance(id := update.get("toolCallId"), str):
                        self._calls.setdefault(id, {}).update(update)
        for id in self._open:
            self._settle(id, AgentError(f"`{self._name}` has ended before its turn did"))

    def _settle(self, id: int | str | None, outcome: dict[str, Any] | AgentError) -> None:
        waiting = self._open.get(id)
        if waiting is None or waiting.done():
            return
        if isinstance(outcome, AgentError):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)

    async def _answer(self, request: JSONRPCRequest) -> None:
        """Answer a request for permission; what is allowed is allowed this once, whatever else the agent offers."""
        params = request.params or {}
        if request.method != "session/request_permission":
            refused = ErrorData(code=METHOD_NOT_FOUND, message=f"there is no method `{request.method}`")
            await self._send(JSONRPCError(jsonrpc="2.0", id=request.id, error=refused))
            return
        call = params["toolCall"] if isinstance(params.get("toolCall"), dict) else {}
        is_allowed = await self._decide({**self._calls.get(str(call.get("toolCallId")), {}), **call})
        wanted = "allow_once" if is_allowed else "reject_once"
        offered = params.get("options")
        options = (each for each in offered if isinstance(each, dict)) if isinstance(offered, list) else ()
        chosen = next((each.get("optionId") for each in options if each.get("kind") == wanted), None)
        outcome = {"outcome": "cancelled"} if chosen is None else {"outcome": "selected", "optionId": chosen}
        await self._send(JSONRPCResponse(jsonrpc="2.0", id=request.id, result={"outcome": outcome}))
