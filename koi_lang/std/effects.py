"""Effects of standard skills, by way of the calling run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.runtime.context import current, handling
from koi_lang.runtime.replay.calls import Effect
from koi_lang.settings import ProjectSettings, read_settings

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort


def folder() -> Path:
    """The folder of the files that the program works on."""
    run = current.get()
    return Path.cwd() if run is None else run.folder


def project_settings() -> ProjectSettings:
    """The settings of the run; outside of runs those of the current folder."""
    run = current.get()
    return read_settings() if run is None else run.settings


def agent() -> AgentPort | None:
    """Whose handler is running; None outside of agents."""
    found = handling.get()
    return None if found is None else found[0]


async def perform_effect(effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
    """Perform an effect once: a resumed run gets its recorded result. Raises as the work does."""
    run = current.get()
    if run is not None:
        return await run.recorder.perform_as_step(effect, work)
    effect.require_execution()
    return await work()
