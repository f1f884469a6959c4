"""A message to an agent that is a process, `acp://COMMAND`, under the rules of the run that asks it.

The agent acts with the rights of its process. Its caller decides about its requests for permission. Files and terminals
of this side are not offered to it.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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

from koi_lang.agent_address import CommandAddress
from koi_lang.errors import AgentError, capture, reason
from koi_lang.events import ModelAnswered
from koi_lang.redaction.redactor import is_secret
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.budget.payment import Payment
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.guards import commands, file_access
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.guards.policy import Access
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.runtime.host import ApprovalRequest, clip_text
from koi_lang.runtime.mcp.process import ServerCommand, process_streams
from koi_lang.runtime.narrowing import bounds
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import leaf_path
from koi_lang.settings import environment
from koi_lang.version import __version__

# Label of the event with the cost of a turn.
PAID = "acp"
# The permission that a role needs for each kind of tool call, and those that change nothing.
NEEDS = {"edit": "write", "delete": "write", "move": "write", "execute": "execute", "fetch": "web_access"}
LOOKING = ("read", "search", "think")
# How long a turn may take, for finding out what it has changed.
MAX_TURN_S = 24 * 3600.0
MAX_TITLE_CHARS = 300


async def ask_process(this: Agent, address: CommandAddress, text: Any) -> str:
    """The reply of an agent in a process, which is started if permitted. Raises AgentError."""
    if not isinstance(text, str) or not text.strip():
        raise AgentError(f"`{address.text}` is asked nothing", help='Send `{ message: "…" }`, or a text.')
    command, folder = " ".join(address.words), this.run.folder
    place = commands.place_of(None, folder)
    request = ApprovalRequest(f"start the agent `{command}`, outside of the sandbox", text, agent=this.name)
    permission = commands.command_permission(command, place)
    start = Access(f"`{command}`", request, permission, bounds=bounds(), needs="execute", changes=True, done="run")

    async def decide(call: dict[str, Any]) -> bool:
        try:
            for access in _accesses(call, address, this):
                await this.run.policy.require(access)
        except AgentError:  # of which a refusal is one
            return False
        return True

    async def carry_out() -> dict[str, Any]:
        # Within the effect, so that a run that goes on asks nobody again.
        await this.run.policy.require(start)
        async with this.run.changes.watch(MAX_TURN_S, this.name):
            return (await ask_agent(address.name, address.words, folder, text, decide)).as_data()

    effect = Effect("acp.ask", {"address": address.text, "message": text}, agent=this.name, slow=True)
    spending = current_spending() or this.run.spending
    with Payment(this.run, this.name, spending) as payment:
        await payment.reserve(None)
        turn = await this.run.recorder.perform_as_step(effect, carry_out)
        path, tokens = leaf_path(PAID), {"input": 0, "output": 0, "cached": 0}
        payment.count(ModelAnswered.type, path, 0, turn["usd"])
        this.run.events.emit(ModelAnswered(address.text, tokens, turn["usd"], stop=turn["stop"]), this.name, path=path)
    if turn["stop"] != "end_turn":
        words = f": {turn['text']}" if turn["text"] else ""
        raise AgentError(f"`{address.text}` has not done its work, but ended with `{turn['stop']}`{words}")
    return str(turn["text"])


def _accesses(call: dict[str, Any], address: CommandAddress, this: Agent) -> Iterator[Access]:
    """The accesses of a tool call, for the policy: a command, files, a page, or a question for the person alone.

    Raises:
        PermissionDeniedError: it names something that is closed to agents, or lies outside of the project.
        AgentError: it names something that is no path.
    """
    kind, root = str(call.get("kind") or "other"), this.run.folder
    title = clip_text(str(call.get("title") or "something that it does not name"), MAX_TITLE_CHARS)
    bare = Access(bounds=bounds(), needs=NEEDS.get(kind), changes=kind not in LOOKING)
    arguments = call["rawInput"] if isinstance(call.get("rawInput"), dict) else {}
    wanted: list[tuple[Permission | None, str]] = []
    command = arguments.get("command")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    if kind == "execute" and isinstance(command, str):
        place = commands.place_of(None, root)
        commands.require_open_arguments(command, place)
        wanted.append((commands.command_permission(command, place), ""))
    elif kind == "fetch" and isinstance(arguments.get("url"), str) and (host := urlsplit(arguments["url"]).hostname):
        wanted.append((file_access.page_permission(host), ""))
    elif kind in ("read", "edit", "delete", "move"):
        is_read = kind == "read"
        for path in _paths(call):
            name = working_path(root, path, changing=not is_read).relative_to(root.resolve()).as_posix()
            wanted.append(
                (file_access.file_permission("read" if is_read else "write", name), _preview(call, path, name))
            )
    for permission, preview in wanted or [(None, "\n".join(_preview(call, path, path) for path in _paths(call)))]:
        scope = "" if permission is None else f" ({permission.lasting_words})"
        what = f"have `{address.name}` do this: {title}{scope}"
        yield replace(bare, request=ApprovalRequest(what, agent=this.name, preview=preview), permission=permission)


def _paths(call: dict[str, Any]) -> list[str]:
    """The files that a tool call names, by its places and its differences."""
    named = [*_records(call.get("locations")), *_diffs(call)]
    return list(dict.fromkeys(each["path"] for each in named if isinstance(each.get("path"), str)))


def _preview(call: dict[str, Any], path: str, name: str) -> str:
    """The change of a file by a tool call, as lines of a unified diff."""
    lines: list[str] = []
    for diff in (each for each in _diffs(call) if each.get("path") == path):
        old, new = str(diff.get("oldText") or "").splitlines(), str(diff.get("newText") or "").splitlines()
        changed = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
        lines += islice(changed, 2 if lines else 0, None)
    return "\n".join(lines)


def _diffs(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in _records(call.get("content")) if each.get("type") == "diff"]


def _records(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


PROTOCOL = 1
MAX_MESSAGE_BYTES, MAX_TEXT_CHARS = 20_000_000, 1_000_000
# How long an agent may take to begin a session, and to end a turn that is cancelled.
START_S, CANCEL_S = 60.0, 1.0
# Says whether a tool call, as the agent describes it, may be made.
DecideToolCall = Callable[[dict[str, Any]], Awaitable[bool]]


@dataclass(slots=True)
class AgentTurn:
    """The texts and tool calls of an agent in a turn.

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
        self._name = name
        self._writing = writing
        self._decide = decide
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
        """Read the messages of the agent until its stream ends, which fails all open requests."""
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
        """Answer a request for permission; an allowed call is allowed once, even if the agent offers more."""
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
