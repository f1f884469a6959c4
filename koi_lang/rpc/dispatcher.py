"""Messages of a client and their responses; events that a command causes follow its response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from koi_lang.errors import KoiError, Outcome, capture
from koi_lang.program.error_report import message as message_of
from koi_lang.rpc import control, queries  # noqa: F401  (they fill the table)
from koi_lang.rpc.commands import carry_out, command_of, command_of_function, is_aside, waits
from koi_lang.sessions.calls import Control, P, T
from koi_lang.sessions.client_host import ANSWER_S, Message
from koi_lang.sessions.errors import RefusalError, SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.replay_calls import go_over
from koi_lang.sessions.session import Session
from koi_lang.version import __version__

SCHEMA_VERSION = 1
PARSE = "parse"


class Dispatcher:
    """The commands of one session; it knows nothing of how messages travel.

    Args:
        send: takes events and everything else that is no response, in order.
        answer_s: how long questions to the client are open.
    """

    def __init__(self, ready: Prepared, send: Callable[[Message], None], *, answer_s: float = ANSWER_S) -> None:
        self.session = Session(ready, self._tell, go_over, answer_s=answer_s)
        self._send = send
        self._turn, self._errand = asyncio.Lock(), asyncio.Lock()
        self._waiting = 0
        self._held: list[Message] | None = None

    def ready(self) -> dict[str, Any]:
        """The first message."""
        ready = self.session.ready
        agents = [agent.about.name for agent in ready.agents]
        versions = {"schema_version": SCHEMA_VERSION, "version": __version__}
        return {"type": "rpc_ready", **versions, "program": ready.name, "agents": agents}

    async def handle(self, message: Mapping[str, Any], reply: Callable[[Message], None]) -> Message:
        """Carry out a command and give its response, which `reply` gets before anything that the command causes."""
        if not waits(message):
            return await self._in_turn(message, reply)
        self._waiting += 1
        try:
            async with self._errand:
                return await (self._aside if is_aside(message) else self._in_turn)(message, reply)
        finally:
            self._waiting -= 1

    async def begin_call(self, begin: Callable[[Session], HeldCall]) -> HeldCall:
        """Begin a call, behind the commands that take time. Raises KoiError."""
        async with self._errand:
            return begin(self.session)

    async def perform(self, function: Control[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Carry out a control as its command is, for a caller in this process. Raises KoiError."""
        async with self._errand if command_of_function(function).waits else nullcontext():
            return await function(self.session, *args, **fields)

    def takes_time(self, message: Mapping[str, Any]) -> bool:
        """Whether the message behind this one should be read before it has been carried out."""
        return is_aside(message) or (self._waiting > 0 and waits(message))

    async def _in_turn(self, message: Mapping[str, Any], reply: Callable[[Message], None]) -> Message:
        async with self._turn:
            self._held = []
            try:
                response = await self._response(message)
                reply(response)
            finally:
                self._release()
        return response

    async def _aside(self, message: Mapping[str, Any], reply: Callable[[Message], None]) -> Message:
        """Run a command that may ask the client, and therefore report its events at once."""
        response = await self._response(message)
        reply(response)
        return response

    async def _response(self, message: Mapping[str, Any]) -> Message:
        return response_to(message, await capture(self._carried_out(message)))

    async def _carried_out(self, message: Mapping[str, Any]) -> Any:
        command = command_of(message)
        if not command.holds:
            self._release()
        return await carry_out(command, self.session, message)

    def _tell(self, message: Message) -> None:
        if self._held is None:
            self._send(message)
        else:
            self._held.append(message)

    def _release(self) -> None:
        held, self._held = self._held or (), None
        for message in held:
            self._send(message)


def response_to(message: Mapping[str, Any], outcome: Outcome[Any]) -> Message:
    """The response to a message that was carried out, or could not be; one that breaks must not break the session."""
    if outcome.error is None:
        return {**_begun(message), "success": True, **({} if outcome.value is None else {"data": outcome.value})}
    error = outcome.error if isinstance(outcome.error, KoiError) else SessionError("failed", message_of(outcome.error))
    return refusal(error, message)


def refusal(error: KoiError, message: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The response to a message that is not carried out; to one that could not be read without a message."""
    code = error.code if isinstance(error, RefusalError) else "failed"
    help = {"help": error.help} if error.help else {}
    return {**_begun(message or {}), "success": False, "error": error.message, "error_code": code, **help}


def _begun(message: Mapping[str, Any]) -> dict[str, Any]:
    name, id = message.get("type"), message.get("id")
    is_id = isinstance(id, str | int | float) and not isinstance(id, bool)
    return {
        "type": "response",
        "command": name if isinstance(name, str) and name else PARSE,
        **({"id": id} if is_id else {}),
    }
