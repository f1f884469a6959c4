"""A latency and a number of steps to a model server in a process of its own, so that its work counts for nobody."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.measuring import environment
from tests.llm.server import Answer, Asked, ModelServer

BODIES = "/bodies"
MOST_KEPT = 120
RETURN = '{"actionType": "direct", "intent": "return", "data": {"done": true}}'
STEP = '{{"actionType": "direct", "intent": "print", "message": "step {number} of {steps}, and a few words more"}}'
TOKEN = 4


class Steps(ModelServer):
    """Answers a conversation with one `print` a turn, and after so many turns with `return`, each after a latency.

    Asked for `BODIES`, it gives the bodies of the last requests, at most `MOST_KEPT`.
    """

    def __init__(self, latency_s: float, steps: int) -> None:
        super().__init__()
        self._latency_s, self._steps = latency_s, steps

    async def _answer(self, asked: Asked, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if asked.path == BODIES:
            bodies = [dict(request.body) for request in self.requests if request.path != BODIES]
            return await super()._answer(asked, Answer(page=json.dumps(bodies)), writer)
        del self.requests[:-MOST_KEPT]
        await asyncio.sleep(self._latency_s)
        return await super()._answer(asked, Answer(pieces=self._pieces(asked)), writer)

    def _pieces(self, asked: Asked) -> tuple[str, ...]:
        turns = sum(message["role"] == "assistant" for message in asked.body["messages"])
        text = STEP.format(number=turns + 1, steps=self._steps) if turns < self._steps else RETURN
        return tuple(text[start : start + TOKEN] for start in range(0, len(text), TOKEN))


@asynccontextmanager
async def serving(latency_s: float, steps: int) -> AsyncIterator[str]:
    """The address of such a server, which runs as long as the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.serving", str(latency_s), str(steps)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def _serve(latency_s: float, steps: int) -> None:
    """Say where the server is, then serve until standard input ends."""
    async with Steps(latency_s, steps) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2])))
