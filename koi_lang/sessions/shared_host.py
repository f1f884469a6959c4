"""A host whose questions are open in several places: the first answer is valid."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from koi_lang.errors import Outcome, capture
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, Host, NobodyToAskError
from koi_lang.sessions.client_host import ANSWER_S, ANSWERED, Client

T = TypeVar("T")


class SharedHost:
    """A host, and clients that come and go.

    Secrets are asked of the host alone.

    Args:
        host: prints and asks first.
        note: is told, a line each, what clients have answered.

    Attributes:
        board: where clients find what is asked.
        answering: how many clients there are that may answer; `leave` tells that one is gone.
    """

    def __init__(self, host: Host, note: Callable[[str], None]) -> None:
        self._host, self._note = host, note
        self.print = host.print
        self.log = host.log
        self.secret = host.secret
        self.board = Client(lambda message: None, answer_s=None)
        self.answering = 0
        self._alone: asyncio.Event | None = None

    def join(self) -> None:
        """Count a client that may answer."""
        self.answering += 1

    def leave(self) -> None:
        """Count one less."""
        self.answering -= 1
        if self._alone is not None and not self.answering:
            self._alone.set()

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the host and all clients. Raises NobodyToAskError when neither answers."""
        answer, is_elsewhere = await self._first(
            self._host.ask(question, options), lambda: self.board.ask(question, options)
        )
        if is_elsewhere:
            self._note(f"answered elsewhere: {answer}")
        return answer

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the host and all clients for permission. Raises NobodyToAskError when neither answers."""
        decision, is_elsewhere = await self._first(self._host.approve(request), lambda: self.board.approve(request))
        if is_elsewhere:
            why = f", {decision.reason}" if decision.reason else ""
            self._note(f"answered elsewhere: {decision.answer}{why}")
        return decision

    async def _first(self, here: Coroutine[Any, Any, T], ask_elsewhere: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The first answer, and whether a client gave it. An answer that was confirmed to a client is valid."""
        async with together() as group:
            at_host = group.create_task(capture(here))
            elsewhere = group.create_task(capture(ask_elsewhere()))
            try:
                await asyncio.wait([at_host, elsewhere], return_when=asyncio.FIRST_COMPLETED)
                if not elsewhere.done() and isinstance(at_host.result().error, NobodyToAskError):
                    await self._wait_for_clients(elsewhere)
                is_elsewhere = elsewhere.done()
                return (elsewhere if is_elsewhere else at_host).result().result(), is_elsewhere
            finally:
                at_host.cancel()
                elsewhere.cancel(ANSWERED if at_host.done() and at_host.result().error is None else None)

    async def _wait_for_clients(self, elsewhere: asyncio.Task[Outcome[T]]) -> None:
        """Wait for an answer of a client, while there is one that may give it, and for some minutes at most."""
        if not self.answering:
            return
        self._alone = asyncio.Event()
        async with together() as group:
            alone = group.create_task(self._alone.wait())
            try:
                await asyncio.wait([elsewhere, alone], timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                alone.cancel()
                self._alone = None
