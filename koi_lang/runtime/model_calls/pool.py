"""Settings of models to models that are shared, and closed when the last answer of them has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from koi_lang.llm.messages import Adapter

Connect = Callable[[Mapping[str, Any]], Adapter]


class Connections:
    """The models that are connected, by their settings.

    Args:
        connect: makes a model from the settings of an `llm` block.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._models: dict[str, Adapter] = {}
        # Answers that arrive, by the identity of their model; and models to be closed after them.
        self._answers: Counter[int] = Counter()
        self._left: list[Adapter] = []

    def of(self, settings: Mapping[str, Any]) -> Adapter:
        """The model of some settings; the same one for the same settings until it is forgotten."""
        key = repr(sorted(settings.items()))
        if key not in self._models:
            self._models[key] = self._connect(settings)
        return self._models[key]

    @asynccontextmanager
    async def hold_open(self, model: Adapter) -> AsyncIterator[Adapter]:
        """Keep a model open while it answers; one that was forgotten meanwhile is closed at the end of the block."""
        self._answers[id(model)] += 1
        try:
            yield model
        finally:
            self._answers[id(model)] -= 1
            await self._close_idle()

    async def forget(self) -> None:
        """Close all models, those that are answering when they have answered; `of` connects them anew."""
        self._left += self._models.values()
        self._models = {}
        await self._close_idle()

    async def aclose(self) -> None:
        """Close all of them, used or not."""
        self._answers.clear()
        await self.forget()

    async def _close_idle(self) -> None:
        idle = [model for model in self._left if self._answers[id(model)] < 1]
        self._left = [model for model in self._left if self._answers[id(model)] > 0]
        async with AsyncExitStack() as closing:
            for model in reversed(idle):
                closing.push_async_callback(model.aclose)
