"""Layers around models: each wraps a model and is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from koi_lang.errors import ProviderError
from koi_lang.events import EventData
from koi_lang.llm.messages import Adapter, Delta, Discarded, Request, RequestPreview, ThinkingDelta
from koi_lang.llm.usage import Candidate

OnEvent: TypeAlias = Callable[[EventData], None]


class Layer(ABC):
    """A model around another one; it has its names and closes it."""

    def __init__(self, inner: Adapter) -> None:
        self.inner = inner
        self.provider = inner.provider
        self.model = inner.model

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The models that may answer, the usual one first."""
        return candidates_of(self.inner)

    @property
    def takes_tools(self) -> bool:
        """Whether a model that may answer is offered its actions as tools."""
        return takes_tools(self.inner)

    @property
    def is_small(self) -> bool:
        """Whether every model that may answer is small."""
        return is_small(self.inner)

    def preview(self, request: Request) -> RequestPreview:
        """The first request to the usual model."""
        return preview_of(self.inner, request)

    @abstractmethod
    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer."""

    async def aclose(self) -> None:
        """Close the model inside."""
        await self.inner.aclose()


@asynccontextmanager
async def open_stream(model: Adapter, request: Request) -> AsyncIterator[AsyncIterator[Delta]]:
    """The stream of an answer, closed at the end of the block even if it was not read to its end."""
    stream = model(request)
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


@dataclass(slots=True)
class Attempt:
    """One request whose early failure is kept instead of raised, so that another one can follow.

    Attributes:
        keeps: which failures are kept when nothing was handed out; all others are raised.
        begins: called before the first delta.
        failure: what was kept, once `deltas` has ended.
    """

    model: Adapter
    request: Request
    keeps: Callable[[ProviderError], bool]
    begins: Callable[[], None] = lambda: None
    failure: ProviderError | None = None
    begun: bool = False

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """Stream the answer."""
        try:
            async with open_stream(self.model, self.request) as stream:
                async for delta in stream:
                    self._note_begin(delta)
                    yield delta
        except ProviderError as error:
            if self.begun or not self.keeps(error):
                raise
            self.failure = error

    def _note_begin(self, delta: Delta) -> None:
        """Note that an answer has begun; thoughts, and reports on earlier attempts, are no part of it."""
        if isinstance(delta, (Discarded, ThinkingDelta)) or self.begun:
            return
        self.begins()
        self.begun = True


def candidates_of(model: Adapter, named: str = "") -> Sequence[Candidate]:
    """The models that may answer a request to a model, the usual one first; another one if the request names it."""
    known: Sequence[Candidate] = getattr(model, "candidates", None) or (Candidate(model.model),)
    return (replace(known[0], model=named), *known[1:]) if named else known


def takes_tools(model: Adapter) -> bool:
    """Whether a model, or one that may answer in its place, is offered its actions as tools."""
    return bool(getattr(model, "takes_tools", False))


def is_small(model: Adapter) -> bool:
    """Whether a model, and each that may answer in its place, is known to have few parameters."""
    return bool(getattr(model, "is_small", False))


def preview_of(model: Adapter, request: Request) -> RequestPreview:
    """The first request to a model; one without a preview gets its actions as text."""
    preview: Callable[[Request], RequestPreview] | None = getattr(model, "preview", None)
    return preview(request) if preview is not None else RequestPreview(replace(request, offer=None))


def name_of(model: Adapter) -> str:
    """How a model is called in messages and ledgers: `provider/model`."""
    return f"{model.provider}/{model.model}"


def ignore_event(data: EventData) -> None:
    """The listener where nobody listens."""
