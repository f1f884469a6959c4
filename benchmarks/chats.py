"""A long chat to what its requests share, and to what its journal takes on the disk and when the chat goes on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from benchmarks.measuring import Figure, environment
from benchmarks.playbooks import Quiet, count_shared
from benchmarks.programs import CHATTING
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program import loader
from koi_lang.runtime.journal.store import journals
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

SHORT, LONG, TIMES = 20, 1000, 3
MB = 1e6
QUESTION = "Question {0}: what do you think about the {0}th way to do it, in a sentence?"
ANSWER = "The {0}th way is a good one: it takes the least of everything, and it is soon changed."
# Runs a command, and tells its CPU seconds and the most bytes of memory that it had since it was executed.
MEASURED = """
import re, sys, time
from pathlib import Path
from koi_lang.cli import main
try:
    main(sys.argv[1:])
finally:
    most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(time.process_time(), int(most[1]) * 1024, file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class ChatCost:
    """What a process of a chat took."""

    cpu_s: float
    memory_mb: float


def figures(folder: Path) -> list[Figure]:
    """Shares of neighbouring requests, and a chat of 1,000 messages that is recorded and goes on."""
    place = folder / "chats"
    place.mkdir()
    path = place / "chat.koi"
    path.write_text(CHATTING, "utf-8")
    answers = [{"intent": "return", "data": ANSWER.format(number)} for number in range(LONG)]
    (place / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), "utf-8")
    shares = asyncio.run(_shares(loader.load(str(path)), answers[:SHORT]))
    live = _chat(place, "".join(f"{QUESTION.format(number)}\n" for number in range(LONG)))
    (journal,) = journals(place)
    size = journal.stat().st_size
    resumed = [_chat(place, "", "--resume", "last") for _ in range(TIMES)]
    return [
        Figure(f"of a request told before, {SHORT} messages", 90, [min(shares)], "%", at_least=True),
        Figure(f"journal of {LONG:,} messages", 5, [size / MB], "MB"),
        Figure(f"memory of a chat of {LONG:,} messages", 100, [live.memory_mb], "MB"),
        Figure(f"CPU until {LONG:,} messages go on", 3, [each.cpu_s for each in resumed], "s"),
        Figure(f"memory when {LONG:,} messages go on", 100, [each.memory_mb for each in resumed], "MB"),
    ]


async def _shares(module: ModuleType, answers: list[dict[str, str]]) -> list[float]:
    """Percent of each request of a chat but the first that the one before has begun with."""
    model = ScriptedModel(answers)
    async with Run(Services(lambda _: model, Quiet())) as run:
        for number in range(len(answers)):
            await run.call(module.Main, "chat", {"message": QUESTION.format(number)})
    told = [request.system + "".join(message.text for message in request.messages) for request in model.requests]
    return [count_shared(one, following) / len(following) * 100 for one, following in pairwise(told)]


def _chat(folder: Path, lines: str, *more: str) -> ChatCost:
    """What a conversation of some lines takes, from the start of its process to the end."""
    words = ("chat", "chat.koi", "--answers", "answers.jsonl", *more)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        cwd=folder, input=lines, check=True, capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    cpu_s, memory = done.stderr.splitlines()[-1].split()
    return ChatCost(float(cpu_s), int(memory) / MB)
