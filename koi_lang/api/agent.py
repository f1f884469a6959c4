"""The agents of an open program, and the events of their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.events import Event, PartialResult
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.outside_calls import payload_of
from koi_lang.sessions.held_call import HeldCall

# A request to a model, in the handler that was called.
OWN_PATH_LENGTH = 3


class AgentCalls(Protocol):
    """The program that carries calls out."""

    def start(self, agent: type[Agent], event: str, payload: Any, consumer: Consumer | None = None) -> HeldCall:
        """Begin a call, with a consumer of its events. Raises KoiError when the program is not open."""

    async def result_of(self, call: HeldCall) -> Any:
        """The result of a call; cancelling this ends it. Raises KoiError."""


class UnknownEventError(AgentError, AttributeError):
    """An agent has no such event; an AttributeError, so that `hasattr` and `getattr` with a default work."""


class ProgramAgent:
    """An agent of a program that is open. Its events are methods: `await agent.start({"topic": "tea"})`."""

    def __init__(self, calls: AgentCalls, declared: type[Agent]) -> None:
        self._calls, self._declared = calls, declared

    def __repr__(self) -> str:
        return f"<koi agent {self._declared.about.name}>"

    def __dir__(self) -> list[str]:
        return ["call", "stream", *self._public]

    def __getattr__(self, event: str) -> Callable[..., Awaitable[Any]]:
        if event.startswith("__"):
            raise AttributeError(event)
        self._require(event)

        async def call(payload: Any = None, **fields: Any) -> Any:
            return await self.call(event, payload, **fields)

        call.__name__ = call.__qualname__ = event
        return call

    @property
    def _public(self) -> list[str]:
        return [handler.event for handler in self._declared.about.handlers.values() if not handler.private]

    def _require(self, event: str) -> None:
        if event not in self._public:
            name = self._declared.about.name
            help = suggestion(event, self._public, "handler")
            raise UnknownEventError(f"`{name}` has no handler for `{event}`", help=help)

    async def call(self, event: str, payload: Any = None, **fields: Any) -> Any:
        """The result of an event, under any name.

        Args:
            payload: JSON values; what its handler takes.
            fields: further fields of the payload.

        Raises:
            KoiError: the handler fails, or cannot take the payload.
        """
        self._require(event)
        return await self._calls.result_of(self._calls.start(self._declared, event, payload_of(payload, fields)))

    def stream(self, event: str, payload: Any = None, **fields: Any) -> EventStream:
        """The events of a call, for `async for`. Leaving the loop early ends the call.

        What the call gives is `result` of the stream afterwards.
        """
        self._require(event)
        calls = self._calls
        declared = self._declared
        given = payload_of(payload, fields)
        return EventStream(calls, lambda consumer: calls.start(declared, event, given, consumer))


class EventStream:
    """The events of a call, an async iterator. Raises the call's error after its last event.

    The call begins when the first event is asked for, and ends with the loop: also one that is left early.

    Attributes:
        result: what the call gives; None before its end.
        partial: the part of a result of a declared type that has arrived, an object or a list; None before that.
    """

    def __init__(self, calls: AgentCalls, start: Callable[[Consumer], HeldCall]) -> None:
        self._calls, self._start = calls, start
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._call: HeldCall | None = None
        self._is_over = False
        self.result: Any = None
        self.partial: Any = None

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        if self._is_over:
            raise StopAsyncIteration
        if self._call is None:
            events = self._events
            self._call = self._start(events.put_nowait)
            self._call.task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            event = await self._events.get()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if event is not None:
            # Those of members, and of handlers that code calls, have longer paths.
            if isinstance(event.data, PartialResult) and len(event.path) == OWN_PATH_LENGTH:
                self.partial = event.data.value
            return event
        self._is_over = True
        self.result = await self._calls.result_of(self._call)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the call, and wait until nothing of it is under way."""
        self._is_over = True
        if self._call is not None and not self._call.task.done():
            self._call.cancel()
            await asyncio.wait([self._call.task])

    def __del__(self) -> None:
        if self._call is not None and not self._call.task.done():
            self._call.cancel()
