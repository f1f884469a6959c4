"""Workflow scripts run inside the test process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koi_lang.program import declarations, loader
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.settings import read_settings
from tests.running import RecordingHost
from tests.workflows.answering import TaskModel

NO_LIMITS: Mapping[str, Any] = {}


def run_script(
    path: Path, folder: Path, model: TaskModel, host: RecordingHost, limits: Mapping[str, Any] = NO_LIMITS
) -> object:
    """The value of a script. Raises as the run does."""
    module = loader.load(absolute(str(path)))
    services = Services(
        connect=lambda llm: model,
        host=host,
        teams=lambda: declarations.teams_of(module),
        folder=folder,
        settings=read_settings(),
        evaluate=evaluate,
        limits=limits,
    )

    async def run() -> object:
        async with Run(services) as run:
            await module.main()
            return run.result

    try:
        return asyncio.run(run())
    finally:
        loader.unload()
