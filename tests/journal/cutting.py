"""Programs of many kinds, cut behind any entry of their journal and resumed, again and again.

Runs for long with `python -m tests.journal.cutting --minutes 10 --seed 1`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from koi_lang.llm.messages import Request
from koi_lang.runtime.journal.entries import JournalEntry
from tests.journal.again import Recorder, Tape, printed_in
from tests.playbook.playing import Player, Voice, act, ask, done

MODULE = """
import asyncio, random
def note(log, name):
    with open(log, "a") as file:
        file.write(f"{name}\\n")
    return name
async def slow(log, name, most_ms=3):
    await asyncio.sleep(random.random() * most_ms / 1000)
    return note(log, name)
async def fails(log, name):
    await slow(log, name)
    raise ValueError(name)
class Box:
    def __init__(self): self.items = []
    def add(self, n):
        self.items.append(n)
        return sum(self.items)
def box(): return Box()
def pair(log, name): return (note(log, name), {1: b"x"})
def first(pair): return pair[0]
"""
ROLE = "role R { can execute, can delegate }\n"
TEAM = """
import out from "./cuts.py"
team T { one: One, two: Two }
agent One : R { state { seen = [] }
  on work(x: Json) { this.state.seen.push(await out.slow(x.log, "one " + x.n)); return this.state.seen.length }
}
agent Two : R { uses team T
  on work(x: Json) { return await send peers.event("deep").any()(x) }
  on deep(x: Json) { const a = await out.slow(x.log, "two " + x.n); return a + out.note(x.log, "deep " + x.n) }
}
"""
CODE = {
    "races": """
        for (let n = 0; n < 4; n++) {
          console.log(await Promise.race(["a", "b", "c"].map(name => out.slow(x.log, name + n))))
        }
    """,
    "timers": """
        let n = 0
        const seen = []
        await new Promise(done => {
          const timer = setInterval(async () => {
            n += 1
            if (n == 3) clearInterval(timer)
            seen.push(await out.slow(x.log, "tick " + n))
            console.log("tick", seen.length)
            if (seen.length == 3) done()
          }, 2)
        })
        const late = new Promise(done => setTimeout(() => done("late"), 2))
        console.log(typeof await Promise.race([late, out.slow(x.log, "early")]))
    """,
    "sends": """
        const all = await Promise.all([1, 2, 3].map(async n => await send peers.event("work").all()({ n, log: x.log })))
        console.log(all.length, (await send peers.event("work").any()({ n: 4, log: x.log })))
    """,
    "failures": """
        const both = n => [out.fails(x.log, n), out.slow(x.log, n + n)]
        const outcomes = await Promise.allSettled(["a", "b"].flatMap(both))
        console.log(outcomes.map(each => each.status).join())
        try { await send peers.event("work").any()({ n: 1, log: x.log }) timeout 2s } finally { console.log("cleaned") }
        try { await out.fails(x.log, "c") } catch (e) { console.log(e.message, out.note(x.log, "caught")) }
    """,
    "jumps": """
        let n = 0
        rows: do {
          for (const name of ["a", "b", "c"]) {
            switch (await out.slow(x.log, name + n)) {
              case "b0": continue rows
              case "a1": console.log("one", await send peers.event("work").any()({ n, log: x.log }))
              case await out.slow(x.log, "case " + name + n):
              default: console.log("rest"); break
              case "c1": break rows
            }
          }
        } while (await out.slow(x.log, "while " + n++))
        console.log(n, out.note(x.log, "end"))
    """,
    "generators": """
        async function* lines(name, count) {
          try {
            for (let n = 0; n < count; n++) { yield await out.slow(x.log, name + n) }
            return out.note(x.log, name + " end")
          } finally { console.log(await out.slow(x.log, "close " + name)) }
        }
        async function* both() {
          const last = yield* lines("a", 2)
          yield last
          for await (const line of lines("b", 5)) {
            yield await send peers.event("work").any()({ n: line, log: x.log })
            if (line === "b1") break
          }
        }
        function* numbers() { try { yield 1; yield 2 } finally { out.note(x.log, "numbers") } }
        for await (const line of both()) console.log(line)
        for (const n of numbers()) { console.log(await out.slow(x.log, "number " + n)); break }
        const steps = lines("c", 3)
        console.log((await Promise.all([steps.next(), steps.next(), steps.return(7)])).map(step => step.value).join())
    """,
    "objects": """
        const box = out.box()
        for (let n = 1; n < 4; n++) { console.log(box.add(n), out.first(out.pair(x.log, "pair " + n))) }
        console.log(await out.slow(x.log, "between"), box.items.length)
        return box.add(10)
    """,
}
PLAYBOOK = 'agent Main : R { uses team T  on go(x: Json) { playbook "Lead the work." } }'


def coding(body: str) -> str:
    """A program with some code."""
    return f"{ROLE}{TEAM}agent Main : R {{ uses team T  on go(x: Json) {{ {body} }} }}"


def leading(log: str) -> Callable[[], Voice]:
    """A model that takes its time, between the pieces of its answers, too."""
    members = [ask(f"{name}::work", {"n": n, "log": log}) for n in (1, 2) for name in ("one", "two")]
    answers = [
        {"batch": [{"parallel": members}, act("print", message="first")]},
        {
            "batch": [
                ask("one::work", {"n": 3, "log": log}, id="last"),
                act("print", message="seen ${last.output}"),
                done(),
            ]
        },
    ]

    def voice() -> Voice:
        async def speak(request: Request) -> AsyncIterator[str]:
            text = json.dumps(answers[min(len(request.messages) // 2, 1)])
            for at in range(0, len(text), 60):
                await asyncio.sleep(random.random() * 0.001)
                yield text[at : at + 60]

        model = Voice(speak)
        model.provider = "scripted"  # asked again after a cut, it answers the same
        return model

    return voice


def recorders(play: Player, log: Path) -> dict[str, Recorder]:
    """The programs by name."""
    (play.folder / "cuts.py").write_text(MODULE)
    given = {"folder": play.folder}
    found = {name: Recorder(play, coding(body), services=given) for name, body in CODE.items()}
    return {**found, "playbook": Recorder(play, f"{ROLE}{TEAM}{PLAYBOOK}", leading(str(log)), given)}


def effects_in(entries: Sequence[JournalEntry]) -> Counter[str]:
    """What some entries tell of effects that have ended, by the names that they leave."""
    ended = [entry for entry in entries if entry.kind in ("done", "failed") and "fields" in entry.data]
    return Counter(str(e.data["fields"]["args"][1]) for e in ended if len(e.data["fields"].get("args", ())) > 1)


def resume(recorder: Recorder, log: Path, cut: Sequence[JournalEntry]) -> Tape:
    """What comes of a run that goes on; what had not ended by then is as if it had never been done."""
    log.write_text("".join(f"{name}\n" for name in effects_in(cut).elements()))
    return recorder.again(cut, {"log": str(log)}, "retry")


def check(recorder: Recorder, whole: Tape, cut: Sequence[JournalEntry], log: Path) -> Tape:
    """Resume a run that was cut, and see that it came to what it should. Raises AssertionError."""
    rest = resume(recorder, log, cut)
    about = (len(cut), cut[-1], rest.played.told)
    twice = {name: n for name, n in Counter(log.read_text().splitlines()).items() if n > 1}
    assert not rest.played.told, about
    assert not twice, (about, twice)
    assert printed_in(cut) == rest.printed[: len(printed_in(cut))], about
    assert set(effects_in(whole.entries)) == set(log.read_text().splitlines()), about
    assert len(whole.printed) == len(rest.printed), about
    return rest


def check_everywhere(recorder: Recorder, log: Path) -> int:
    """Cut a run behind each of its entries, and what was resumed once more; gives how many cuts there were."""
    log.write_text("")
    whole = recorder.run({"log": str(log)})
    assert not whole.played.told, whole.played.told
    for n in range(2, len(whole.entries)):
        rest = check(recorder, whole, whole.entries[:n], log)
        check(recorder, whole, rest.entries[: random.randrange(n, len(rest.entries))], log)
    return 2 * (len(whole.entries) - 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Cut programs for some minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    random.seed(options.seed)
    until, cuts = time.monotonic() + options.minutes * 60, 0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        programs: dict[str, Any] = recorders(Player(Path(folder)), log)
        while time.monotonic() < until:
            cuts += sum(check_everywhere(recorder, log) for recorder in programs.values())
    sys.stdout.write(f"{cuts} cuts, seed {options.seed}: every run came to its end, and did nothing twice\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
