"""One conversation of a client: its prompts are messages to a handler, and what the run asks goes to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from koi_lang.acp.connection import INTERNAL_ERROR, INVALID_REQUEST, Connection, JsonObject, RpcError
from koi_lang.acp.prompts import message_of_blocks
from koi_lang.acp.updates import Updates
from koi_lang.errors import AnswerTooLongError
from koi_lang.events import CallEnded
from koi_lang.rpc.dispatcher import Dispatcher
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.sessions.calls import begin_message
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.config import OpenRun, SessionConfig
from koi_lang.sessions.held_call import HeldCall

# A person may take their time.
ANSWER_S = 24 * 3600.0
# How long what a call has left in the background may go on when its session is closed.
GRACE_S = 1.0
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class AcpSession:
    """A session with a run of its own.

    Args:
        folder: that the client works in.
        target: the handler of messages, as `begin_message` takes it; empty where the program decides.
        log: takes lines that are no part of the conversation.
    """

    def __init__(
        self, served: SessionConfig, connection: Connection, folder: Path, target: str, log: Callable[[str], None]
    ) -> None:
        self._dispatcher = Dispatcher(served, self._follow, answer_s=ANSWER_S)
        self._connection, self._folder, self._target, self._log = connection, folder, target, log
        self._updates = Updates(folder)
        self._over = asyncio.Event()
        self._call: HeldCall | None = None
        self._turn: asyncio.Future[StopReason] | None = None
        self.id = ""

    # ------------------------------------------------------------ its run

    async def open_in(self, group: asyncio.TaskGroup, earlier: OpenRun | None = None, id: str = "") -> None:
        """Open the run in a task of a group. Raises KoiError.

        Args:
            earlier: opens the run of a session that goes on.
            id: of that session.
        """
        self.id = id
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = group.create_task(self._hold(earlier, ready))
        await ready

    async def _hold(self, earlier: OpenRun | None, ready: asyncio.Future[None]) -> None:
        try:
            async with self._dispatcher.session.open(earlier) as session:
                self.id = self.id or session.run.id
                ready.set_result(None)
                await self._over.wait()
                await self.cancel()
                await session.finish(GRACE_S)
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def close(self) -> None:
        """End the run, and the call that is under way."""
        self._over.set()
        await asyncio.wait([self._holder])

    def interrupt(self) -> None:
        """End the call that is under way although its code computes. Any thread may call this."""
        self._dispatcher.session.interrupt(0)

    # ------------------------------------------------------------ turns

    async def prompt(self, blocks: object) -> JsonObject:
        """Carry out a turn, and say why it has ended. Being cancelled ends the call. Raises KoiError."""
        if self._turn is not None:
            raise RpcError(INVALID_REQUEST, "a turn is under way", help="Wait for its end, or cancel it.")
        message = message_of_blocks(blocks, self._folder)
        self._turn = asyncio.get_running_loop().create_future()
        try:
            self._call = await self._dispatcher.begin_call(lambda held: begin_message(held, message, self._target))
            self._updates.begin_turn(f"{self.id}-{self._call.id}")
            return {"stopReason": await self._turn}
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            self._turn = None

    async def cancel(self) -> None:
        """End the call that is under way."""
        await self._dispatcher.session.abort()

    def _end_turn(self, event: JsonObject) -> None:
        """End the turn as its call has ended."""
        call, turn = self._call, self._turn
        if call is None or turn is None or turn.done() or event["call"] != call.id:
            return
        if event["ok"] or event.get("aborted"):
            turn.set_result("end_turn" if event["ok"] else "cancelled")
            return
        is_cut = call.task.cancelled() or call.scope.caught is not None
        reason = _stop_reason(None if is_cut else call.task.result().error)
        if reason is None:
            turn.set_exception(RpcError(INTERNAL_ERROR, str(event.get("error")), help=event.get("help")))
        else:
            self._update(self._updates.say(str(event.get("error"))))
            turn.set_result(reason)

    # ------------------------------------------------------------ what is told

    def _update(self, update: JsonObject) -> None:
        self._connection.notify("session/update", {"sessionId": self.id, "update": update})

    def _follow(self, message: Message) -> None:
        """Take in what the session tells."""
        match message["type"]:
            case "event":
                event = message["event"]
                for update in self._updates.translate(event):
                    self._update(update)
                if event["type"] == CallEnded.type:
                    self._end_turn(event)
            case "log":
                self._log(str(message["text"]))
            case "session_failed":
                self._log(str(message["report"]))
                if self._turn is not None and not self._turn.done():
                    self._turn.set_exception(RpcError(INTERNAL_ERROR, str(message["error"])))


def _stop_reason(error: BaseException | None) -> StopReason | None:
    """Why a turn ends with an error; None where the error is what the client is to be told."""
    match error:
        case AnswerTooLongError() | LimitReachedError(limit="tokens"):
            return "max_tokens"
        case LimitReachedError():
            return "max_turn_requests"
    return None
