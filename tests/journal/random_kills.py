"""Programs of many kinds that are killed at random moments, in processes of their own, and resumed until they end.

Run as `python -m tests.journal.random_kills --kills 300 --seed 1 [--only NAME]`. What each run printed and did outside
is held against a run that nobody disturbed: an effect may be there twice only where a doubt about it was settled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.journal.killable import ANSWERS, PROGRAMS, TOOL
from tests.journal.killing import RESUME, RUN, forked, load_all

MOST_ROUNDS = 20
# What a process ends with that was killed, ended before it could do so in order, or ended in order.
KILLED = (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM)
IS_OVER = "has ended well, so there is nothing to go on with"


@dataclass(slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        killed: the signals that ended its processes.
        settled: the intents of effects whose doubts were settled.
    """

    printed: list[str]
    effects: Counter[str]
    errors: str
    code: int
    seconds: float = 0.0
    killed: list[int] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)


def ended(words: Sequence[str], folder: Path, number: int, delay_s: float | None) -> int:
    """How a command ended that is sent a signal after some time, unless it has ended by then."""

    def send_later() -> None:
        if delay_s is not None:
            # A process of its own sends it: the timer of this one is Koi's, and threads do not survive a fork.
            target = os.getpid()
            if os.fork() == 0:
                time.sleep(delay_s)
                if os.getppid() == target:
                    os.kill(target, number)
                os._exit(0)

    return forked(words, folder, send_later)


def carried_out(name: str, folder: Path, chance: random.Random | None, seconds: float) -> Outcome:
    """What comes of a program that is killed again and again, at moments up to so many seconds after its start."""
    folder.mkdir()
    (folder / "main.koi").write_text(PROGRAMS[name].replace("PORT", folder.parent.joinpath("port").read_text()))
    (folder / "tool.py").write_text(TOOL)
    (folder / "answers.json").write_text(json.dumps(ANSWERS.get(name, [])))
    (folder / "effects").touch()
    words, code, killed, begun = RUN, KILLED[0], [], time.monotonic()
    while code in KILLED and len(killed) < MOST_ROUNDS:
        number = signal.SIGKILL if chance is None or chance.random() < 0.8 else signal.SIGTERM
        is_doomed = chance is not None and (not killed or chance.random() < 0.5)
        code = ended(words, folder, number, chance.uniform(0, seconds) if chance and is_doomed else None)
        if code in KILLED:
            killed.append(number)
        # One without a header was killed before its run began.
        if any(path.stat().st_size for path in folder.glob(".koi/runs/*.jsonl")):
            words = RESUME
    took = time.monotonic() - begun
    entries = [line for path in folder.glob(".koi/runs/*.jsonl") for line in path.read_text().splitlines()]
    settled = [json.loads(line)["intent"] for line in entries if '"kind":"doubt_settled"' in line]
    told = (folder / "err").read_text()
    if killed and IS_OVER in told:  # it was killed behind its end
        code = 0
    printed, effects = (folder / "out").read_text().splitlines(), (folder / "effects").read_text().splitlines()
    return Outcome(printed, Counter(effects), told, code, took, killed, settled)


def faults(whole: Outcome, now: Outcome) -> Iterator[str]:
    """What is wrong with a run that was killed."""
    if now.code:
        yield f"it ended with {now.code}"
    if whole.printed != now.printed and whole.printed != without_repeated(now.printed, len(now.killed)):
        yield f"it printed {now.printed}, not {whole.printed}"
    lost, more = whole.effects - now.effects, now.effects - whole.effects
    if lost:
        yield f"it never did {dict(lost)}"
    if more.total() > len(now.settled):
        yield f"it did {dict(more)} too often; doubts: {now.settled}"


def without_repeated(lines: Sequence[str], most: int) -> list[str]:
    """Lines without doubled ones: a process may be killed when it has shown one and not noted it yet."""
    kept: list[str] = []
    for line in lines:
        if kept and kept[-1] == line and most:
            most -= 1
        else:
            kept.append(line)
    return kept


@contextmanager
def http_server(folder: Path) -> Iterator[None]:
    """A server that notes what is sent to it in the folder of the program that is running; its port is in `port`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            with (folder / "again" / "effects").open("a") as file:
                file.write(f"post {body}\n")
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (folder / "port").write_text(str(server.server_port))
        yield
        server.shutdown()


def undisturbed(name: str, folder: Path) -> Outcome:
    """What the program comes to by itself. Raises AssertionError when it fails."""
    whole = carried_out(name, folder, None, 0)
    shutil.rmtree(folder)
    assert not whole.code, (name, whole.errors)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill programs, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PROGRAMS, help="One program instead of all.")
    options = parser.parse_args(arguments)
    chance, wrong = random.Random(options.seed), 0
    kills: Counter[str] = Counter()
    names = [options.only] if options.only else list(PROGRAMS)
    load_all()
    with tempfile.TemporaryDirectory() as base, http_server(Path(base)):
        folder = Path(base) / "again"
        undisturbed(names[0], folder)  # compiles and warms what all of them need
        wholes = {name: undisturbed(name, folder) for name in names}
        while kills.total() < options.kills:
            for name, whole in wholes.items():
                now = carried_out(name, folder, chance, whole.seconds)
                kills[name] += len(now.killed)
                for fault in faults(whole, now):
                    wrong += 1
                    sys.stdout.write(f"{name}, killed by {now.killed}: {fault}\n{now.errors}\n")
                shutil.rmtree(folder)
    sys.stdout.write(f"{kills.total()} kills, seed {options.seed}, {dict(kills)}: {wrong} wrong\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
