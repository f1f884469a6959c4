"""The agent's side of ACP: its methods, and the sessions of one client.

Version 1 of the protocol is spoken. Files and commands stay with the run, whose sandbox, rules and journal hold for
them, so `fs/*` and `terminal/*` of the client are not used.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from koi_lang.acp.connection import INVALID_PARAMS, METHOD_NOT_FOUND, Connection, JsonObject, RpcError
from koi_lang.acp.session import AcpSession
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UntrustedJournalError
from koi_lang.rpc.incoming import END, Incoming
from koi_lang.runtime.concurrency.tasks import gather, together
from koi_lang.runtime.journal.calls import first_call, sessions_of
from koi_lang.sessions.client_host import Send
from koi_lang.sessions.continuation import NEW_RUN
from koi_lang.sessions.earlier_session import read_recorded
from koi_lang.sessions.message_targets import text_of
from koi_lang.sessions.prepared import Prepared
from koi_lang.version import __version__

PROTOCOL = 1
MAX_LISTED, MAX_TITLE_CHARS = 100, 80
CANCEL = "session/cancel"
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
}
ClientServers = Mapping[str, JsonObject]
PrepareProgram = Callable[[Path, ClientServers], Prepared]


class AcpServer:
    """The sessions of one client, by their ids.

    Args:
        program: the absolute path of its file.
        prepare_program: makes the runs of a folder and the MCP servers that the client names. Raises KoiError.
        target: the handler of messages; empty where the program decides.
        log: takes lines for whoever looks at the agent's errors.
    """

    def __init__(self, program: str, prepare_program: PrepareProgram, target: str, log: Callable[[str], None]) -> None:
        self._program = program
        self._prepare_program = prepare_program
        self._target = target
        self._log = log
        self._sessions: dict[str, AcpSession] = {}
        self._can_show_forms = False
        self._methods: Mapping[str, Callable[[JsonObject], Awaitable[JsonObject | None]]] = {
            "initialize": self.initialize,
            "authenticate": self.authenticate,
            "session/new": self.new_session,
            "session/load": self.load_session,
            "session/resume": self.resume_session,
            "session/list": self.list_sessions,
            "session/set_mode": self.set_mode,
            "session/prompt": self.prompt,
            "session/close": self.close,
            CANCEL: self.cancel,
        }

    async def serve(self, incoming: int, send: Send) -> None:
        """Serve a client until it has no more to say, which ends all that it has begun.

        Args:
            incoming: a descriptor from which its lines are read.
        """
        async with together() as group:
            self._group = group
            self._connection = Connection(send, self._answer)
            with Incoming(incoming, self.interrupt, _urgency_of) as lines:
                async for line in lines:
                    self._connection.take(line, group)
                    await asyncio.sleep(0)  # a method begins before the next message
            self._connection.end()
            await gather(session.close() for session in self._sessions.values())

    def interrupt(self, urgent: Sequence[str]) -> None:
        """End calls whose end cannot wait, although a program computes. Any thread may call this."""
        for session in tuple(self._sessions.values()):
            if END in urgent or f"{CANCEL} {session.id}" in urgent:
                session.interrupt()

    async def _answer(self, method: str, params: JsonObject) -> JsonObject:
        carry_out = self._methods.get(method)
        if carry_out is None:
            help = suggestion(method, list(self._methods), "method")
            raise RpcError(METHOD_NOT_FOUND, f"there is no method `{method}`", help=help)
        return await carry_out(params) or {}

    # ------------------------------------------------------------ the connection

    async def initialize(self, params: JsonObject) -> JsonObject:
        """Agree on the abilities of both sides."""
        match params.get("clientCapabilities"):
            case {"elicitation": {"form": dict()}}:
                self._can_show_forms = True
        info = {"name": "koi", "title": "Koi", "version": __version__}
        return {
            "protocolVersion": PROTOCOL,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": info,
            "authMethods": [],
        }

    async def authenticate(self, params: JsonObject) -> None:
        """Do nothing: keys are those that `koi connect` has kept."""

    # ------------------------------------------------------------ sessions

    async def new_session(self, params: JsonObject) -> JsonObject:
        """Begin a conversation in a folder."""
        session = await self._open(params)
        return {"sessionId": session.id, "modes": session.modes}

    async def load_session(self, params: JsonObject) -> JsonObject:
        """Go on with a recorded conversation, and tell all of it again."""
        return {"modes": (await self._open(params, _text(params, "sessionId"))).modes}

    async def resume_session(self, params: JsonObject) -> JsonObject:
        """The same without telling it."""
        return {"modes": (await self._open(params, _text(params, "sessionId"), is_replayed=False)).modes}

    async def _open(self, params: JsonObject, id: str = "", *, is_replayed: bool = True) -> AcpSession:
        folder = _folder_in(params)
        program = self._prepare_program(folder, _servers_in(params))
        if id in self._sessions:
            await self._sessions.pop(id).close()
        session = AcpSession(program, self._connection, folder, self._target, self._log, forms=self._can_show_forms)
        try:
            earlier = read_recorded(program, id) if id else NEW_RUN
        except UntrustedJournalError as error:
            help = f"Look at it with `koi runs show {id}`; `koi chat` goes on with it by `--resume {id} --trust`."
            raise RpcError(INVALID_PARAMS, error.message, help=help) from error
        await session.open_in(self._group, earlier, id, is_replayed=is_replayed)
        self._sessions[session.id] = session
        # Behind the response, from which the client knows the session.
        asyncio.get_running_loop().call_soon(session.send_commands)
        return session

    async def list_sessions(self, params: JsonObject) -> JsonObject:
        """The conversations of a folder, the latest first."""
        folder = _folder_in(params) if params.get("cwd") else Path.cwd()
        sessions = []
        for path in islice(sessions_of(folder, self._program), MAX_LISTED):
            if (call := first_call(path)) is not None:
                title = " ".join(text_of(call.data.get("args")).split())[:MAX_TITLE_CHARS]
                when = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
                sessions.append({"sessionId": path.stem, "cwd": str(folder), "title": title, "updatedAt": when})
        return {"sessions": sessions}

    async def set_mode(self, params: JsonObject) -> None:
        """Begin or end plan mode."""
        await self._session(params).set_mode(_text(params, "modeId"))

    async def prompt(self, params: JsonObject) -> JsonObject:
        """Carry out a turn of a conversation."""
        return await self._session(params).prompt(params.get("prompt"))

    async def cancel(self, params: JsonObject) -> None:
        """End the turn that is under way."""
        await self._session(params).cancel()

    async def close(self, params: JsonObject) -> None:
        """End a conversation; its record stays."""
        session = self._session(params)
        del self._sessions[session.id]
        await session.close()

    def _session(self, params: JsonObject) -> AcpSession:
        id = params.get("sessionId")
        if not isinstance(id, str) or id not in self._sessions:
            help = "Begin one with `session/new`."
            raise RpcError(INVALID_PARAMS, f"there is no session `{id}`", help=help)
        return self._sessions[id]


def _folder_in(params: JsonObject) -> Path:
    """The folder of a session. Raises RpcError."""
    text = params.get("cwd")
    folder = Path(text) if isinstance(text, str) and "\0" not in text else None
    if folder is None or not folder.is_absolute() or not folder.is_dir():
        raise RpcError(INVALID_PARAMS, f"`cwd` is no absolute path of a folder: `{text}`")
    return folder


def _text(params: JsonObject, name: str) -> str:
    """A text among the parameters. Raises RpcError."""
    text = params.get(name)
    if not isinstance(text, str) or not text:
        raise RpcError(INVALID_PARAMS, f"`{name}` must be a text")
    return text


def _servers_in(params: JsonObject) -> ClientServers:
    """The options of the MCP servers that a client names, as `.mcp.json` has them. Raises RpcError."""
    servers: dict[str, JsonObject] = {}
    for server in _list(params.get("mcpServers")):
        match server:
            case {"type": "http" | "sse" as type, "name": str(name), "url": str(url)}:
                servers[name] = {"type": type, "url": url, "headers": _pairs(server.get("headers"))}
            case {"name": str(name), "command": str(command)}:
                words = [str(word) for word in _list(server.get("args"))]
                servers[name] = {"command": command, "args": words, "env": _pairs(server.get("env"))}
            case _:
                raise RpcError(INVALID_PARAMS, "`mcpServers` holds something that is no server")
    return servers


def _list(value: Any) -> list[Any]:
    """A list, empty where there is none. Raises RpcError."""
    if value is not None and not isinstance(value, list):
        raise RpcError(INVALID_PARAMS, "`mcpServers` must be a list, as must `args`, `env` and `headers` of a server")
    return value or []


def _pairs(value: Any) -> dict[str, str]:
    """Variables or headers by name, from a list of `{name, value}`."""
    pairs = [each for each in _list(value) if isinstance(each, dict)]
    return {str(each["name"]): str(each["value"]) for each in pairs if {"name", "value"} <= each.keys()}


def _urgency_of(line: bytes | None) -> str | None:
    """The session that a line cancels, behind the name of the method."""
    if line is None or CANCEL.encode() not in line:
        return None
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_cancel = isinstance(message, dict) and message.get("method") == CANCEL
    params = message.get("params") if is_cancel else None
    return f"{CANCEL} {params.get('sessionId')}" if isinstance(params, dict) else None
