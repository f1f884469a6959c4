"""Calls of a tool over stdio to what they take beside the bare client of the library, in the same process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks.measuring import CHECKOUT, Figure
from benchmarks.playbooks import Quiet
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

SERVER = CHECKOUT / "tests" / "mcp" / "server.py"
CALLS, ROUNDS = 200, 9
PROGRAM = f"""
role Caller {{ can call_mcp }}
mcp shelf = {{ command: "{sys.executable}", args: ["{SERVER}"] }}
agent Clerk : Caller {{ uses mcp shelf }}
"""
Call = Callable[[], Awaitable[object]]


def figures(folder: Path) -> list[Figure]:
    """A round trip of `call_mcp` against one of the bare client."""
    path = folder / "mcp.koi"
    path.write_text(PROGRAM, "utf-8")
    return [Figure("call_mcp against the bare client", 1.2, asyncio.run(_ratios(loader.load(str(path)))), "×")]


async def _ratios(module: ModuleType) -> list[float]:
    """One ratio a round; in each, both take turns call by call, so that what else goes on hits both."""
    from mcp import Client, StdioServerParameters

    input = {"path": "a"}
    bare_server = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with Run(Services(lambda _: ScriptedModel([]), Quiet())) as run, Client(bare_server, cache=None) as client:
        agent = run.agent(module.Clerk)
        fields = {"mcp": "shelf", "tool": "read", "input": input}
        ours, bare = lambda: run.perform(agent, "call_mcp", fields), lambda: client.call_tool("read", input)
        return [await _ratio(ours, bare) for _ in range(ROUNDS + 1)][1:]


async def _ratio(ours: Call, bare: Call) -> float:
    """Of the calls of each the median, which those that had to wait for something else do not move."""
    taken = [(await _seconds(ours), await _seconds(bare)) for _ in range(CALLS)]
    return median(ours_s for ours_s, _ in taken) / median(bare_s for _, bare_s in taken)


async def _seconds(call: Call) -> float:
    start_s = time.perf_counter()
    await call()
    return time.perf_counter() - start_s
