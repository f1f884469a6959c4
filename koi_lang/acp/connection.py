"""JSON-RPC 2.0 with a client that may ask and be asked at the same time; it knows nothing of how lines travel.

The package `agent-client-protocol` is not used: its models take 0.4 s of CPU to import, as much as all of `koi rpc`,
and its reader hears nothing while a program computes and the event loop stands still. The tests use its client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.program.error_report import message as message_of
from koi_lang.rpc.framing import message_in
from koi_lang.sessions.client_host import Send
from koi_lang.sessions.errors import SessionError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
CANCEL = "$/cancel_request"
# A message, the parameters of a method, or its result.
JsonObject = dict[str, Any]


class RpcError(KoiError):
    """A request that cannot be answered, or was not.

    Attributes:
        code: of JSON-RPC.
    """

    def __init__(self, code: int, message: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.code = code


class Connection:
    """Both directions of one connection.

    Args:
        send: takes messages for the client.
        answer: gives the result of a method that the client calls. Raises KoiError.
    """

    def __init__(self, send: Send, answer: Callable[[str, JsonObject], Awaitable[JsonObject]]) -> None:
        self._send, self._answer = send, answer
        self._asked = 0
        self._open: dict[Any, asyncio.Future[JsonObject]] = {}
        self._tasks: dict[Any, asyncio.Task[None]] = {}

    def take(self, line: bytes | None, group: asyncio.TaskGroup) -> None:
        """Take in a line of the client; None stands for one that was too long.

        Args:
            group: in which a method is carried out, in a task of its own.
        """
        try:
            message = message_in(line)
        except SessionError as error:
            self._refuse(None, RpcError(PARSE_ERROR, error.message, help=error.help))
            return
        id, method = message.get("id"), message.get("method")
        is_id = isinstance(id, str | int | None) and not isinstance(id, bool)
        if is_id and isinstance(method, str) and isinstance(message.get("params") or {}, dict):
            self._carry_out(message, method, group)
        elif is_id and method is None and ("result" in message) != ("error" in message):
            self._settle(id, message)
        else:
            text = "the message is neither a request nor a response of JSON-RPC 2.0"
            self._refuse(id if is_id else None, RpcError(INVALID_REQUEST, text))

    def end(self) -> None:
        """Cancel the methods that are being carried out."""
        for task in self._tasks.values():
            task.cancel()

    def notify(self, method: str, params: JsonObject) -> None:
        """Tell the client something that it does not answer."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """The result of a method of the client; being cancelled withdraws the request. Raises RpcError."""
        self._asked += 1
        id, self._open[id] = self._asked, asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        try:
            return await self._open[id]
        except asyncio.CancelledError:
            self.notify(CANCEL, {"requestId": id})
            raise
        finally:
            del self._open[id]

    def _settle(self, id: Any, message: JsonObject) -> None:
        """Deliver a response to its request; a late one is dropped."""
        waiting = self._open.get(id)
        if waiting is None or waiting.done():
            return
        result, error = message.get("result") or {}, message.get("error")
        if error is None and isinstance(result, dict):
            waiting.set_result(result)
        else:
            why = error.get("message") if isinstance(error, dict) else None
            waiting.set_exception(RpcError(INTERNAL_ERROR, f"the client answers: {why or 'nothing that can be read'}"))

    # ------------------------------------------------------------ methods of this side

    def _carry_out(self, message: JsonObject, method: str, group: asyncio.TaskGroup) -> None:
        params = message.get("params") or {}
        if method == CANCEL:
            cancelled = params.get("requestId")
            if isinstance(cancelled, str | int) and cancelled in self._tasks:
                self._tasks[cancelled].cancel()
        elif "id" not in message:
            group.create_task(self._result(method, params))
        elif (id := message["id"]) in self._tasks:
            self._refuse(id, RpcError(INVALID_REQUEST, "a request with this id is being carried out"))
        else:
            self._tasks[id] = group.create_task(self._respond(id, method, params))

    async def _respond(self, id: Any, method: str, params: JsonObject) -> None:
        try:
            result = await self._result(method, params)
        except asyncio.CancelledError:
            self._refuse(id, RpcError(REQUEST_CANCELLED, "the request was cancelled"))
            raise
        finally:
            del self._tasks[id]
        if isinstance(result, RpcError):
            self._refuse(id, result)
        else:
            self._send({"jsonrpc": "2.0", "id": id, "result": result})

    async def _result(self, method: str, params: JsonObject) -> JsonObject | RpcError:
        """The result of a method; one that breaks must not break the connection."""
        try:
            return await self._answer(method, params)
        except RpcError as error:
            return error
        except KoiError as error:
            return RpcError(INTERNAL_ERROR, error.message, help=error.help)
        except Exception as error:  # a fault of ours, or of Python code of the program
            return RpcError(INTERNAL_ERROR, message_of(error))

    def _refuse(self, id: Any, error: RpcError) -> None:
        # Editors show the message alone.
        text = f"{error.message}. {error.help}" if error.help else error.message
        self._send({"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": text}})
