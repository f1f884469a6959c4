"""A conversation in a terminal to how long it takes from Enter to the first words of an answer."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pexpect

from benchmarks.measuring import Figure, environment
from benchmarks.programs import CHATTING
from tests.llm.server import Answer, ModelServer

TIMES, LIMIT_S = 6, 30.0
# So long a person looks at the input before they have typed.
TYPING_S = 2.0
WORDS = "Firstwords"
ANSWER = Answer((f'{{"intent": "return", "data": "{WORDS} of it', ' and the rest."}'), pause=True)
WHERE, HERE = b"\x1b[6n", "\x1b[1;1R"
# The least that a client can be: it has loaded the SDK before it asks for a line.
BARE = """
import asyncio, sys
import openai

async def answer(model, line):
    async with openai.AsyncOpenAI() as client:
        told = [{"role": "user", "content": line}]
        async for chunk in await client.chat.completions.create(model=model, messages=told, stream=True):
            print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="", flush=True)

asyncio.run(answer(sys.argv[1], input("idle> ")))
"""


def figures(folder: Path) -> list[Figure]:
    """The first words in `koi chat`, against a client that does nothing else."""
    place = folder / "talking"
    place.mkdir()
    (place / "chat.koi").write_text(CHATTING, "utf-8")
    return asyncio.run(_first_words(place))


async def _first_words(folder: Path) -> list[Figure]:
    chat, bare = ("-m", "koi_lang", "chat", "chat.koi", "-m", "openai/gpt-4o"), ("-c", BARE, "gpt-4o")
    async with ModelServer([ANSWER], ["gpt-4o"]) as server:
        await _until_words(chat, folder, server)
        pairs = [[await _until_words(words, folder, server) for words in (chat, bare)] for _ in range(TIMES)]
    ours, theirs = zip(*pairs, strict=True)
    usual_s = statistics.median(theirs)
    return [
        Figure("Enter to the first words in `koi chat`", 0.25, ours, "s"),
        Figure("the same against the bare SDK", 1.2, [each_s / usual_s for each_s in ours], "×"),
    ]


async def _until_words(words: Sequence[str], folder: Path, server: ModelServer) -> float:
    """Seconds until a client in a terminal shows the first words of an answer that has not ended."""
    server.go_on.clear()
    variables = {"OPENAI_API_KEY": "sk-not-a-real-key-000000", "OPENAI_BASE_URL": f"{server.url}/v1", "TERM": "xterm"}
    child = pexpect.spawn(
        sys.executable,
        list(words),
        cwd=folder,
        env={**environment(), **variables},
        dimensions=(40, 100),
        timeout=LIMIT_S,
    )
    child.delaybeforesend = None
    try:
        return await asyncio.to_thread(_send_line, child)
    finally:
        server.go_on.set()
        child.close(force=True)


def _send_line(child: pexpect.spawn[bytes]) -> float:
    _read_until(child, b"idle")
    child.send("Which one?")
    _read_for(child, TYPING_S)
    start_s = time.monotonic()
    child.send("\r")
    _read_until(child, WORDS.encode())
    return time.monotonic() - start_s


def _read_until(child: pexpect.spawn[bytes], text: bytes) -> None:
    """Take in what is shown, and tell where the cursor is when that is asked for."""
    while child.expect_exact([WHERE, text]) == 0:
        child.send(HERE)


def _read_for(child: pexpect.spawn[bytes], seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        if child.expect_exact([WHERE, pexpect.TIMEOUT], timeout=left_s) == 0:
            child.send(HERE)
