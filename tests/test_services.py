"""The parts of a run: made by the factories it is handed, when they are used first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.runtime.ports import AgentPort, RunPort
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Factories, Services, make_registry


def services() -> Services:
    """What a run needs that asks no model."""
    config = {"registry": {"backend": "memory"}}
    return Services(connect=lambda settings: pytest.fail("no model is needed"), config=config)


def test_actions_of_code_are_carried_out_by_the_factory() -> None:
    """Whoever opens a run may hand in what carries actions out."""
    asked: list[tuple[str, str, Any]] = []

    async def action(run: RunPort, agent: AgentPort, name: str, data: Any) -> str:
        asked.append((agent.name, name, data))
        return "done"

    async def carry_out() -> Any:
        async with Run(services(), Factories(action=action)) as run:
            return await run.perform(run.nobody, "print", {"message": "x"})

    assert ("done", [("nobody", "print", {"message": "x"})]) == (asyncio.run(carry_out()), asked)


def test_a_part_is_made_once_and_not_before_it_is_used() -> None:
    """The registry of a run is opened by the first part of the program that asks for it."""
    made: list[Run] = []

    def registry(run: Any, given: Services) -> Any:
        made.append(run)
        return make_registry(run, given)

    async def carry_out() -> None:
        async with Run(services(), Factories(registry=registry)) as run:
            assert made == []
            assert run.registry is run.registry
            assert made == [run]

    asyncio.run(carry_out())
