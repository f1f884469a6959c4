"""How long the event loop of a service is held: the CPU time of the process between two beats of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time

from tests.service.hosting import SessionHost, begin, called, play

HOST = "role Guide { can advise }\nagent Host : Guide { on chat(args: { message: string }) { return args.message } }\n"
AGENT = """agent Worker%d : Guide {
  on chat(args: { message: string, n: number }) {
    let i = 0
    const found = [1, 2, 3].map(x => x * args.n)
    while (i < args.n) {
      i = i + 1
      if (i > 5 && found.length > 2) { console.log(`at ${i} of ${args.n}`) }
      else { found.push(i) }
    }
    return { i, found, text: args.message }
  }
  on ask(args: { question: string }) { playbook \"\"\"
    Answer the question: ${args.question}
  \"\"\" }
}
"""


@asynccontextmanager
async def measured_holds() -> AsyncIterator[list[float]]:
    """A context in which the loop beats; the seconds of CPU between two beats, whichever thread took them."""
    holds: list[float] = []

    async def beat() -> None:
        while True:
            before = process_time()
            await asyncio.sleep(0.001)
            holds.append(process_time() - before)

    beating = asyncio.create_task(beat())
    try:
        yield holds
    finally:
        beating.cancel()


def test_a_large_program_is_loaded_beside_the_loop(tmp_path: Path) -> None:
    """A program of 1,200 lines is compiled, loaded and served while a session of its first version is answered."""
    (tmp_path / "host.koi").write_text(HOST)

    async def scenario(host: SessionHost) -> tuple[list[str], int, float]:
        session, answered = await begin(host), 0
        (tmp_path / "host.koi").write_text(HOST + "".join(AGENT % number for number in range(80)))
        async with measured_holds() as holds:
            reloading = asyncio.create_task(host.programs.reload_apart())
            while not reloading.done():
                await called(session, "Host.chat", message="hello")
                answered += 1
        return [program.name for program in await reloading], answered, max(holds)

    changed, answered, longest_s = play(tmp_path, scenario, "host.koi")
    assert ["host"] == changed
    assert answered > 3
    assert longest_s < 0.15
