"""What adapters that go through a provider's SDK share: one request to one stream of deltas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from koi_lang.llm.connection import Connection
from koi_lang.llm.failures import broken_off, cause_of, explain
from koi_lang.llm.messages import Delta, Finished, Request, TextDelta, Usage


class Ending(ABC):
    """What the parts of one stream say apart from text.

    Attributes:
        begun: whether any part has arrived.
        stop_reason: why the model stopped; empty while it has not.
        usage: what the answer consumed so far, None when the provider has not told.
    """

    def __init__(self) -> None:
        self.begun = False
        self.stop_reason = ""
        self.usage: Usage | None = None

    @abstractmethod
    def take(self, part: Any) -> str:
        """Note what a part tells; its text, often empty."""


class SdkModel(ABC):
    """A model behind an SDK; the SDK is imported and its client made by the first request."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.provider = connection.provider.name
        self.model = connection.model
        self._client: Any = None

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer. Raises RequestFailed."""
        request = self.connection.complete(request)
        if self._client is None:
            self._client = self._open()
        ending = self._ending()
        try:
            async with await self._send(request) as stream:
                async for part in stream:
                    if text := ending.take(part):
                        yield TextDelta(text)
        except self._errors() as error:
            failure = explain(error, self.connection, request.model, begun=ending.begun)
            raise failure from cause_of(error, self.connection)
        if not ending.stop_reason:
            raise broken_off(self.provider, begun=ending.begun)
        yield Finished(ending.usage, ending.stop_reason)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @abstractmethod
    def _open(self) -> Any:
        """A client of the SDK."""

    @abstractmethod
    async def _send(self, request: Request) -> Any:
        """Send a request; the stream of its answer, a context manager."""

    @abstractmethod
    def _ending(self) -> Ending:
        """A reader for the parts of one stream."""

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """What the SDK, its transport and its JSON decoder raise; asked only when something was raised."""
