"""Ceilings for how many functions and modules a request enters before the first line of the handler that it calls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

from tests.limits import LIMIT_S
from tests.package_trees import PACKAGE
from tests.service.serving_here import served_here
from tests.service.user_tokens import TOKENS

# The most that each figure may be, for `POST /api/runs`; `pytest --accept` lowers them to what there is, and one goes
# up by hand alone. Comprehensions and lambdas are part of the function in which they stand.
CEILINGS = {
    "functions": 219,
    "modules": 60,
}
PROGRAM = """
role Worker { can execute }
agent Adder : Worker {
  on add(args: { a: number, b: number }) { return args.a + args.b }
}
"""
START = {"handler": "Adder.add", "payload": {"a": 1, "b": 2}}
# Requests that are looked at, at least and at most; what others do in the process meanwhile is left out by the one that
# enters least.
MIN_REQUESTS, MAX_REQUESTS = 3, 20


class Tracer:
    """Functions of the package that are entered until a line of a program is, as pairs of module and name."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self._is_at_handler = asyncio.Event()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call."""
        code = frame.f_code
        if event != "call" or self._is_at_handler.is_set():
            return
        if code.co_filename.endswith(".koi"):
            self._is_at_handler.set()
        elif code.co_filename.startswith(f"{PACKAGE}/") and not code.co_name.startswith("<"):
            self.functions.add((code.co_filename, code.co_qualname))

    async def wait(self) -> None:
        """Wait until the handler begins."""
        await self._is_at_handler.wait()


@contextmanager
def tracing() -> Iterator[Tracer]:
    """A context in which the thread of the loop is traced."""
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        yield tracer
    finally:
        sys.setprofile(None)


async def count_entered(url: str) -> dict[str, int]:
    """The figures of the request that enters least, behind one that loads what is loaded once."""
    headers = {"Authorization": f"Bearer {TOKENS['root']}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=LIMIT_S) as client:
        await client.post("/api/runs", json=START)
        figures = dict.fromkeys(CEILINGS, sys.maxsize)
        for number in range(MAX_REQUESTS):
            if number >= MIN_REQUESTS and all(figures[name] <= ceiling for name, ceiling in CEILINGS.items()):
                break
            with tracing() as tracer:
                answer = await client.post("/api/runs", json=START)
                await tracer.wait()
            assert answer.status_code == 202, answer.text
            modules = {module for module, _ in tracer.functions}
            figures = min(
                figures, {"functions": len(tracer.functions), "modules": len(modules)}, key=itemgetter("functions")
            )
    return figures


def test_a_request_reaches_its_handler(tmp_path: Path, accept: bool) -> None:
    """The way from a request to the handler does not get longer; what is saved of it stays saved."""
    figures = asyncio.run(served_here(tmp_path, PROGRAM, count_entered))
    if accept:
        lower_ceilings(figures)

    assert all(figures[name] <= ceiling for name, ceiling in CEILINGS.items()), figures
    assert accept or all(figures[name] * 100 >= ceiling * 97 for name, ceiling in CEILINGS.items()), figures


def lower_ceilings(figures: dict[str, int]) -> None:
    """Write figures that are lower into the table of this file."""
    text = Path(__file__).read_text("utf-8")
    for name, ceiling in CEILINGS.items():
        lower = min(figures[name], ceiling)
        text = text.replace(f'    "{name}": {ceiling},\n', f'    "{name}": {lower},\n')
    Path(__file__).write_text(text, "utf-8")
