"""Models are shared by their settings, and closed when nobody reads an answer of them any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.model_calls.pool import Connections

SETTINGS = {"model": "a"}


class Closing(ScriptedModel):
    """A model that counts how often it was closed, and may fail then."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__([])
        self.closed, self._failure = 0, failure

    async def aclose(self) -> None:
        """Count it."""
        self.closed += 1
        if self._failure is not None:
            raise self._failure


def test_a_model_is_closed_after_its_last_answer() -> None:
    """Forgetting waits for no answer, and ends none; who asks next is connected anew."""
    known = Connections(lambda settings: Closing())

    async def answer() -> tuple[list[int], bool]:
        model: Any = known.of(SETTINGS)
        counts = []
        async with known.hold_open(model):
            async with known.hold_open(model):
                await known.forget()
                counts.append(model.closed)
            counts.append(model.closed)
        return [*counts, model.closed], known.of(SETTINGS) is model

    assert ([0, 0, 1], False) == asyncio.run(answer())


def test_a_model_that_answers_nothing_is_closed_at_once() -> None:
    """The same settings share a model until it is forgotten; it is closed once."""
    made: list[Closing] = []
    known = Connections(lambda settings: made.append(Closing()) or made[-1])  # type: ignore[func-returns-value]

    async def use() -> None:
        for _ in range(2):
            async with known.hold_open(known.of(SETTINGS)):
                pass
        await known.forget()
        await known.aclose()

    asyncio.run(use())
    assert [1] == [model.closed for model in made]


def test_everything_is_closed_at_the_end() -> None:
    """One that cannot be closed, or is still answering, keeps no other one open."""
    made = {"bad": Closing(OSError("no")), "good": Closing(), "busy": Closing()}
    known = Connections(lambda settings: made[settings["model"]])

    async def use() -> None:
        for name in made:
            known.of({"model": name})
        async with known.hold_open(made["busy"]):
            await known.aclose()

    with pytest.raises(OSError, match="no"):
        asyncio.run(use())
    assert [1, 1, 1] == [model.closed for model in made.values()]
