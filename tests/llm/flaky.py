"""A model that fails as it is told, and what tests of layers ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from koi_lang.errors import ProviderError, RequestError
from koi_lang.events import EventData
from koi_lang.llm.messages import Adapter, Delta, Message, Request, StreamEnd, TextDelta, Usage

REQUEST = Request("You follow a playbook.", (Message("user", "Begin."),))


class Flaky:
    """Does one step a request: a text is answered, an error raised, a list of both done in order."""

    def __init__(self, *steps: Any, name: str = "maker/model", usage: Usage | None = None) -> None:
        self.provider, _, self.model = name.partition("/")
        self._steps, self._usage = list(steps), usage
        self.requests: list[Request] = []
        self.closed = 0

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Do the next step."""
        self.requests.append(request)
        step = self._steps[len(self.requests) - 1]
        for part in step if isinstance(step, list) else [step]:
            if isinstance(part, Exception):
                raise part
            yield TextDelta(part)
        yield StreamEnd(self._usage, "stop")

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


class Listener:
    """Keeps what it is told: pauses in seconds, and events by name with their data."""

    def __init__(self) -> None:
        self.pauses_s: list[float] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    async def sleep(self, seconds: float) -> None:
        """Go on at once."""
        self.pauses_s.append(seconds)

    def on_event(self, data: EventData) -> None:
        """Keep an event."""
        self.events.append((data.type, data.as_data()))


def failing(status: int | None, message: str = "it failed", retry_after_s: float | None = None) -> RequestError:
    """The failure of a request with a status."""
    failure = RequestError(message, help="Do something.", status=status)
    failure.retry_after_s = retry_after_s
    return failure


def deltas_of(model: Adapter, request: Request = REQUEST) -> list[Delta]:
    """All deltas of one answer."""

    async def run() -> list[Delta]:
        try:
            return [delta async for delta in model(request)]
        finally:
            await model.aclose()

    return asyncio.run(run())


def text_of(model: Adapter, request: Request = REQUEST) -> str:
    """The text of one answer."""
    return "".join(delta.text for delta in deltas_of(model, request) if isinstance(delta, TextDelta))


def heard(model: Adapter, request: Request = REQUEST) -> tuple[str, ProviderError | None]:
    """What was handed out of one answer, and the error that ended it."""
    text = ""

    async def run() -> None:
        nonlocal text
        try:
            async for delta in model(request):
                text += delta.text if isinstance(delta, TextDelta) else ""
        finally:
            await model.aclose()

    try:
        asyncio.run(run())
    except ProviderError as error:
        return text, error
    return text, None
