"""The agent's side of ACP: its methods, and the sessions of one client.

Version 1 of the protocol is spoken. Files and commands stay with the run, whose sandbox, rules and journal hold for
them, so `fs/*` and `terminal/*` of the client are not used.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from koi_lang.acp.connection import INVALID_PARAMS, METHOD_NOT_FOUND, Connection, JsonObject, RpcError
from koi_lang.acp.session import AcpSession
from koi_lang.diagnostics import suggestion
from koi_lang.rpc.incoming import END, Incoming
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.sessions.client_host import Send
from koi_lang.sessions.factory import SessionFactory
from koi_lang.version import __version__

PROTOCOL = 1
CANCEL = "session/cancel"
CAPABILITIES = {
    "loadSession": False,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {"close": {}},
}
PrepareProgram = Callable[[Path], SessionFactory]


class AcpServer:
    """The sessions of one client, by their ids.

    Args:
        prepare_program: makes the runs of a folder that the client names. Raises KoiError.
        target: the handler of messages; empty where the program decides.
        log: takes lines for whoever looks at the agent's errors.
    """

    def __init__(self, prepare_program: PrepareProgram, target: str, log: Callable[[str], None]) -> None:
        self._prepare_program, self._target, self._log = prepare_program, target, log
        self._sessions: dict[str, AcpSession] = {}
        self._can_show_forms = False
        self._methods: Mapping[str, Callable[[JsonObject], Awaitable[JsonObject | None]]] = {
            "initialize": self.initialize,
            "authenticate": self.authenticate,
            "session/new": self.new_session,
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
            for session in tuple(self._sessions.values()):
                await session.close()

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
        """Agree on what both sides can do."""
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
        folder = _folder_in(params)
        served = self._prepare_program(folder).served_config()
        session = AcpSession(served, self._connection, folder, self._target, self._log, forms=self._can_show_forms)
        await session.open_in(self._group)
        self._sessions[session.id] = session
        return {"sessionId": session.id}

    async def prompt(self, params: JsonObject) -> JsonObject:
        """Carry out a turn of a conversation."""
        return await self._session(params).prompt(params.get("prompt"))

    async def cancel(self, params: JsonObject) -> None:
        """End the turn that is under way."""
        await self._session(params).cancel()

    async def close(self, params: JsonObject) -> None:
        """End a conversation; what is recorded of it stays."""
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
