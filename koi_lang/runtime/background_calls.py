"""Calls of agents that go on beside the code or the playbook that began them: handles, ids, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from koi_lang.errors import AgentError, capture, undone_by
from koi_lang.js.environment import current_environment
from koi_lang.js.promises import Promise, settle
from koi_lang.js.task_scope import current_scope
from koi_lang.runtime.replay.error_records import as_koi_error

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

MAX_CALLS = 20
# Where the number of a call is recorded, so that it is the same again when a run goes on.
NUMBER = "call number"
CallState = Literal["running", "done", "failed", "cancelled"]


class CallCancelledByProgramError(AgentError):
    """A call in the background was cancelled by whoever began it."""


class BackgroundCall(Promise):
    """A call that goes on in the background: awaiting it gives its result or raises its error.

    Attributes:
        id: by which playbooks name it, such as `c4`.
        name: the event that it handles.
        agent: who began it.
    """

    __slots__ = ("_is_cancelled", "_task", "agent", "id", "is_awaited", "name")
    __koi_members__: ClassVar[dict[str, str]] = {
        **Promise.__koi_members__,
        "id": "id",
        "cancel": "cancel",
        "state": "call_state",
    }
    __koi_kind__: ClassVar[str] = "a call in the background"

    def __init__(self, work: Coroutine[Any, Any, Any], id: str, name: str, agent: str) -> None:
        self.id = id
        self.name = name
        self.agent = agent
        self._is_cancelled = self.is_awaited = False
        with undone_by(work.close):
            scope, context = current_scope(), current_environment().fork_context()
        super().__init__(asyncio.get_running_loop().create_future(), scope)
        self._task = scope.start(self._carry_out(settle(work)), context)

    async def _carry_out(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            ended = await capture(work)
        except asyncio.CancelledError:
            self.handle()
            self._fail(CallCancelledByProgramError(f"the call `{self.id}` (`{self.name}`) was cancelled"))
            if not self._is_cancelled:
                raise
            return
        if ended.error is None:
            self._finish(ended.value)
        else:
            self._fail(ended.error)

    def __repr__(self) -> str:
        return f"[Call {self.id}: {self.name}, {self.call_state}]"

    @property
    def call_state(self) -> CallState:
        """Whether it goes on, and how it has ended."""
        if not self._future.done():
            return "running"
        if self._is_cancelled:
            return "cancelled"
        return "done" if self._future.exception() is None else "failed"

    def cancel(self) -> bool:
        """End the call with all that it has begun; gives whether it was going on."""
        if self._future.done() or self._is_cancelled:
            return False
        self._is_cancelled = True
        self._task.cancel()
        return True

    def follow(self, callback: Callable[[], None]) -> None:
        """Have something done when the call has ended."""
        self._future.add_done_callback(lambda future: callback())

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for the end, at most so long; nothing is raised."""
        self.handle()
        await asyncio.wait((self._future,), timeout=seconds)

    def as_data(self) -> dict[str, Any]:
        """Its state, and its result or error, for a playbook."""
        about: dict[str, Any] = {"call": self.id, "name": self.name, "state": self.call_state}
        if self.call_state == "done":
            return {**about, "result": self._future.result()}
        error = self._future.exception() if self._future.done() else None
        return about if error is None else {**about, "error": as_koi_error(error).message}


class BackgroundCalls:
    """The calls of a run that go on in the background, numbered in the order in which they begin."""

    def __init__(self, run: RunPort) -> None:
        self._run = run
        self._calls: dict[str, BackgroundCall] = {}
        self._running: set[str] = set()
        self._kept: list[BackgroundCall] = []
        self._last = 0

    def start(self, work: Coroutine[Any, Any, Any], name: str, agent: str, *, tells: bool = False) -> BackgroundCall:
        """Begin a call; it runs up to its first wait before this returns. Raises AgentError where too many go on.

        Args:
            name: the event that it handles, for people.
            agent: who begins it.
            tells: whether that agent is told of its end.
        """
        if len(self._running) >= MAX_CALLS:
            work.close()
            raise AgentError(f"{MAX_CALLS} calls of this run go on already", help="Wait for one, or cancel it.")
        number = self._run.recorder.observe(NUMBER, lambda: self._last + 1)
        while f"c{number}" in self._calls:  # a run that goes on later may do so in another order
            number += 1
        call = BackgroundCall(work, f"c{number}", name, agent)
        self._last = max(self._last, number)
        self._calls[call.id] = call
        self._running.add(call.id)
        call.follow(lambda: self._note_end(call, is_kept=tells))
        if tells:
            self._kept.append(call)
            call.handle()
        return call

    def _note_end(self, call: BackgroundCall, *, is_kept: bool) -> None:
        """Note the end of a call, which its agent is told of and may ask for later where it is kept."""
        self._running.discard(call.id)
        if not is_kept:
            self._calls.pop(call.id, None)
        elif not call.is_awaited and call.call_state != "cancelled":
            how = "has ended; `await_call` gives its result"
            if call.call_state == "failed":
                error = call.future.exception()
                assert error is not None, "a call that failed"
                how = f"has failed: {as_koi_error(error).message}"
            self._run.steering.notify(call.agent, f"call {call.id} (`{call.name}`) {how}", sender=f"call {call.id}")

    def of_agent(self, agent: str) -> list[BackgroundCall]:
        """The calls that a playbook of an agent has begun, in order; code has the handles of its own."""
        return [call for call in self._kept if call.agent == agent]

    def require(self, agent: str, id: str) -> BackgroundCall:
        """The call of an id that an agent has begun. Raises AgentError."""
        call = self._calls.get(id)
        if call is None or call.agent != agent:
            listed = ", ".join(f"`{each.id}`" for each in self.of_agent(agent))
            help = f"There are the calls {listed}." if listed else "It has begun none in the background."
            raise AgentError(f"`{agent}` has no call `{id}` in the background", help=help)
        return call

    def note_awaited(self, call: BackgroundCall) -> None:
        """Have its agent not told of the end of a call whose outcome it has asked for."""
        call.is_awaited = True
        self._run.steering.withdraw(call.agent, f"call {call.id}")
