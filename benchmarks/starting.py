"""A small program to how long it takes until it runs, and until its first request to a model arrives."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measuring import Figure, environment, python, repeat
from benchmarks.programs import GREETING, asking_program
from tests.llm.server import ModelServer

UNWANTED = ("lark", "pydantic", "openai", "anthropic", "mcp", "keyring", "prompt_toolkit")
LIST_MODULES = """
import sys
from koi_lang.cli import main
try:
    main(["run", sys.argv[1]])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def figures(folder: Path) -> list[Figure]:
    """A cached program, and the first request."""
    path = folder / "greeting.koi"
    path.write_text(GREETING, "utf-8")
    return [_cached(path), _modules(path), asyncio.run(_first_request(folder))]


def _cached(path: Path) -> Figure:
    def ratio() -> float:
        return python("-m", "koi_lang", "run", str(path)).cpu_s / python("-c", "import click").cpu_s

    return Figure("`koi run`, cached, against `import click`", 4.0, repeat(15, ratio), "×")


def _modules(path: Path) -> Figure:
    """How many of the packages that a code-only program has no use for are imported by its run."""
    command = [sys.executable, "-c", LIST_MODULES, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment())
    found = [name for name in UNWANTED if name in done.stderr.split()]
    return Figure(f"unneeded packages it imports{': ' if found else ''}{', '.join(found)}", 0, [len(found)], "modules")


async def _first_request(folder: Path) -> Figure:
    """Seconds from the start of `koi run` to the arrival of its first request, less those of `import openai`."""
    path = folder / "asking.koi"
    async with ModelServer(['{"intent": "return", "data": {}}']) as server:
        path.write_text(asking_program(server.url), "utf-8")
        measured_s = [await _until_request(path, server) - await _importing_openai() for _ in range(6)]
    return Figure("first request, less `import openai`", 0.2, measured_s[1:], "s")


async def _until_request(path: Path, server: ModelServer) -> float:
    known, start_s = len(server.requests), time.monotonic()
    await _process("-m", "koi_lang", "run", str(path))
    return server.requests[known].at_s - start_s


async def _importing_openai() -> float:
    start_s = time.monotonic()
    await _process("-c", "import openai")
    return time.monotonic() - start_s


async def _process(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=environment())
    if await process.wait() != os.EX_OK:
        raise AssertionError(f"{' '.join(arguments)} failed")
