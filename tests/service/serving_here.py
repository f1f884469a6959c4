"""A service in the process of a test, with the tokens of its users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from koi_lang.http_server.address import Address
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import project, read_settings
from koi_lang.web import server
from tests.limits import LIMIT_S
from tests.service.user_tokens import SETTINGS


async def served_here(folder: Path, program: str, scenario: Callable[[str], Awaitable[Any]]) -> Any:
    """What a scenario gives with the address of a service of a program, by its text, in a folder."""
    (folder / "desk.koi").write_text(program)
    (folder / "koi.toml").write_text(SETTINGS)
    settings = read_settings(folder)
    options = RunOptions(settings=settings, record=True, words=("serve", "http"))
    about, address = project.service_settings(settings), Address("127.0.0.1", 0, "start")
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def log(line: str) -> None:
        if line.startswith("serving at"):
            url.set_result(line.split()[-1].rstrip("/"))

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve([str(folder / "desk.koi")], options, address, log, about))
        result = await scenario(await url)
        serving.cancel()
    return result
