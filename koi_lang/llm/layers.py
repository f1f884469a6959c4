"""What layers share: a model wrapped so that it is still a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from koi_lang.llm.messages import Adapter, Delta, Request

OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]


class Layer(ABC):
    """A model around another one; it has its names and closes it."""

    def __init__(self, inner: Adapter) -> None:
        self.inner = inner
        self.provider = inner.provider
        self.model = inner.model

    @abstractmethod
    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer."""

    async def aclose(self) -> None:
        """Close the model inside."""
        await self.inner.aclose()


@asynccontextmanager
async def opened(model: Adapter, request: Request) -> AsyncIterator[AsyncIterator[Delta]]:
    """The stream of an answer, closed at the end of the block even if it was not read to its end."""
    stream = model(request)
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def name_of(model: Adapter) -> str:
    """How a model is called in messages and ledgers: `provider/model`."""
    return f"{model.provider}/{model.model}"


def tell_nobody(event: str, data: Mapping[str, Any]) -> None:
    """The listener where nobody listens."""
