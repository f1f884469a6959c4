"""What code gets from outside is the same when its run goes on: nothing that had ended happens again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.journal.entries import JournalEntry
from tests.journal.again import Recorder, each_cut
from tests.playbook.playing import Player, Voice, ask, done, playbook_in
from tests.silence import SilentServer

ROLE = "role R { can execute, can delegate, can registry:write, can registry:read }\n"
MODULE = """
import asyncio, pathlib
class Thing:
    def __init__(self, n):
        self.n = n
    def double(self):
        return self.n * 2
def note(log, text):
    with open(log, "a") as file:
        file.write(f"{text}\\n")
    return len(text)
def fails(log, text):
    note(log, text)
    raise ValueError(f"no {text}")
async def slow(log, text, ms):
    await asyncio.sleep(ms / 1000)
    note(log, text)
    return text
def thing(n):
    return Thing(n)
async def after(log, text, other):
    pathlib.Path(log).touch()
    while other and other not in pathlib.Path(log).read_text().split():
        await asyncio.sleep(0.001)
    return note(log, text)
async def slow_thing(n, ms):
    await asyncio.sleep(ms / 1000)
    return Thing(n)
"""
TEAM = """
team T { worker: Worker }
agent Main : R { uses team T
  on go(x: Json) { %s }
}
agent Worker : R { state { n = 0 }
  on wait(x: Json) {
    this.state.n += 1
    console.log("waits", x.ms)
    await new Promise(done => setTimeout(done, x.ms))
    this.state.n += 10
    return x.ms
  }
  on look(x: Json) { return this.state.n }
  on work(x: Json) { %s }
  %s
}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What functions of Python leave outside."""
    return tmp_path / "log"


def alone(play: Player, body: str, worker: str = "return 0", more: str = "") -> Recorder:
    """The recorder of a program whose `Main.go` has some code, with a worker and a Python module."""
    (play.folder / "outside.py").write_text(MODULE)
    source = f'import out from "./outside.py"\n{ROLE}{TEAM % (body, worker, more)}'
    return Recorder(play, source, services={"folder": play.folder})


BODIES = {
    "clock": """
        const before = Date.now()
        console.log(before, new Date().toISOString(), performance.now())
        await new Promise(done => setTimeout(done, 2))
        console.log(Date.now() > before)
        return [Date.now(), Math.random(), crypto.randomUUID()]
    """,
    "timers": """
        const seen = []
        await new Promise(done => {
          let n = 0
          const timer = setInterval(() => {
            n += 1
            console.log("tick", n)
            if (n == 4) { clearInterval(timer); done() }
          }, 2)
        })
        setTimeout(() => { seen.push("late"); console.log("late") }, 2)
        await new Promise(done => setTimeout(done, 4))
        return seen
    """,
    "race": """
        const wait = async ms => await send peers.event("wait").any()({ ms: ms })
        console.log(await Promise.race([wait(9), new Promise(done => setTimeout(() => done("timer"), 2))]))
        console.log(await Promise.any([Promise.reject(new Error("no")), wait(1), wait(3)]))
        return await send peers.event("look").any()({})
    """,
    "chains": """
        const seen = []
        const wait = ms => new Promise(done => setTimeout(done, ms))
        const first = wait(1).then(x => 1).then(x => 2).then(x => 3).then(x => 4).then(x => 5).then(x => seen.push("a"))
        const second = wait(4).then(x => seen.push("b"))
        await Promise.all([first, second])
        return seen
    """,
    "pushes": """
        const seen = []
        await Promise.all([1, 2, 3, 4].map(async n => {
          await new Promise(done => setTimeout(done, (n * 7) % 5 + 1))
          seen.push(n)
          console.log("pushed", n)
        }))
        return seen
    """,
    "timeout": """
        try { await send peers.event("wait").any()({ ms: 3000 }) timeout 8ms } catch (e) { console.log(e.message) }
        console.log(await send peers.event("look").any()({}))
        console.log(await send peers.event("wait").any()({ ms: 1 }) timeout 9s)
        return await send peers.event("look").any()({})
    """,
    "background": """
        const wait = async ms => await send peers.event("wait").any()({ ms: ms })
        const [slow, fast] = [wait(7), wait(2)]
        console.log("between")
        return [await fast, await slow, (await Promise.allSettled([wait(1)])).length]
    """,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BODIES)
def test_a_run_that_is_cut_anywhere_comes_to_what_it_came_to(play: Player, name: str) -> None:
    """After any cut, what was printed is not printed again, and the result of the whole is the recorded one."""
    whole, *rest = each_cut(alone(play, BODIES[name]))

    assert not whole.played.told
    assert (len(whole.entries) - 1, whole.outcome) == (len(rest), rest[-1].outcome)


def test_the_order_in_which_things_ended_is_kept(play: Player, log: Path) -> None:
    """What was pushed when slow work ended stands in the list in the same order, though nothing is slow any more."""
    body = """
        const seen = []
        const push = async (text, other) => { await out.after(x.log, text, other); seen.push(text) }
        await Promise.all([push("a", "b"), push("b", "c"), push("c", "")])
        return seen
    """
    recorder, payload = alone(play, body), {"log": str(log)}
    whole = recorder.run(payload)
    again = recorder.again(whole.entries[:-1], payload)

    assert ["c", "b", "a"] == whole.played.result == again.played.result
    assert ["c", "b", "a"] == log.read_text().split()


def test_what_is_made_again_keeps_its_place(play: Player, log: Path) -> None:
    """An object that a journal cannot hold is made again, and what had ended after it still ends after it."""
    body = """
        const seen = []
        const push = async (name, work) => { await work; seen.push(name) }
        await Promise.all([push("thing", out.slow_thing(1, 20)), push("text", out.slow(x.log, "t", 60))])
        return seen
    """
    recorder, payload = alone(play, body), {"log": str(log)}
    whole = recorder.run(payload)

    again = recorder.again(whole.entries[:-1], payload, {entry.path: "retry" for entry in whole.entries})

    assert ["thing", "text"] == whole.played.result == again.played.result


NOTES = ("note", "fails", "slow")
PYTHON = """
    console.log(out.note(x.log, "one"))
    try { out.fails(x.log, "two") } catch (e) { console.log(e.name, e.message) }
    console.log(await out.slow(x.log, "three", 1))
    const thing = out.thing(4)
    console.log(thing.double(), thing.n)
    return out.note(x.log, "four")
"""


def test_functions_of_python_are_called_once(play: Player, log: Path) -> None:
    """Cut anywhere, only calls whose end is not in the journal are made; objects are made anew."""
    recorder, payload = alone(play, PYTHON), {"log": str(log)}
    whole = recorder.run(payload)
    assert (["3", "ValueError no two", "three", "8 4"], 4) == whole.outcome[:2]
    for n in range(1, len(whole.entries)):
        cut = whole.entries[:n]
        log.unlink(missing_ok=True)
        rest = recorder.again(cut, payload, {entry.path: "retry" for entry in cut})

        left = ["one", "two", "three", "four"][sum(is_note(entry) for entry in cut) :]
        assert (whole.outcome, left) == (rest.outcome, log.read_text().split() if left else []), cut[-1]


def is_note(entry: JournalEntry) -> bool:
    """Whether an entry tells the end of a function that leaves a note."""
    return entry.kind in ("done", "failed") and entry.data["intent"] in (
        "outside.note",
        "outside.fails",
        "outside.slow",
    )


def test_attempts_that_failed_are_not_made_again(play: Player, log: Path) -> None:
    """Each attempt of a handler comes to what it came to: failed, taken too long, or successful."""
    worker = """
        this.state.n += 1
        if (this.state.n == 1) { out.fails(x.log, "first") }
        if (this.state.n == 2) { out.note(x.log, "second"); await out.slow(x.log, "never", 5000) }
        return [out.note(x.log, "third"), this.state.n]
    """
    policy = 'resilience "work" { retry_max_attempts = 3  retry_delay = 1  timeout = 40 }'
    recorder = alone(play, 'return await send peers.event("work").any()(x)', worker, policy)
    payload = {"log": str(log)}
    whole = recorder.run(payload)
    again = recorder.again(whole.entries[:-1], payload)

    assert [5, 3] == whole.played.result == again.played.result
    assert ["first", "second", "third"] == log.read_text().split()


def test_what_took_too_long_is_not_begun_again(play: Player, log: Path) -> None:
    """A handler that was ended by a timeout gets as far as it had got; nothing of it is repeated."""
    worker = 'this.state.n += 1; out.note(x.log, "a"); await out.slow(x.log, "b", 5000); this.state.n += 100'
    body = """
        try { await send peers.event("work").any()(x) timeout 25ms } catch (e) { console.log(e.message) }
        return await send peers.event("look").any()({})
    """
    recorder, payload = alone(play, body, worker), {"log": str(log)}
    whole = recorder.run(payload)
    again = recorder.again(whole.entries[:-2], payload)

    assert (1, whole.outcome) == (whole.played.result, again.outcome)
    assert ["a"] == log.read_text().split()


def test_what_the_registry_gave_is_kept(play: Player, tmp_path: Path) -> None:
    """Code that runs again reads what it read, though the registry holds something else by then."""
    body = """
        await registry.set("n", 1)
        const value = await this.callAction("registry_get", { key: "n" })
        console.log(await registry.get("n"), await registry.has("x"), await registry.keys(""))
        return value.value
    """
    recorder = alone(play, body)
    whole = recorder.run()
    again = recorder.again(whole.entries[:-1])

    assert (1, ["1 false [ 'n' ]"]) == (whole.played.result, whole.printed)
    assert whole.outcome == again.outcome


# ---------------------------------------------------------------- servers


class Counter(ThreadingHTTPServer):
    """A server that counts what it is asked."""

    asked: list[str]


class Counting(BaseHTTPRequestHandler):
    """Answers with how often it was asked."""

    server: Counter

    def do_GET(self) -> None:
        """Count and answer."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.append(self.command)
        body = json.dumps({"asked": len(self.server.asked)}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def counter() -> Iterator[Counter]:
    """A server on this machine."""
    server = Counter(("127.0.0.1", 0), Counting)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


FETCH = """
    const got = await (await fetch(x.url)).json()
    const sent = await fetch(x.url, { method: "POST", body: "one" })
    return [got.asked, sent.status, (await sent.json()).asked]
"""


def test_servers_are_asked_once(play: Player, counter: Counter) -> None:
    """Answers of servers come from the journal."""
    recorder, payload = alone(play, FETCH), {"url": f"http://127.0.0.1:{counter.server_port}/"}
    whole = recorder.run(payload)
    again = recorder.again(whole.entries[:-1], payload)

    assert [1, 200, 2] == whole.played.result == again.played.result
    assert ["GET", "POST"] == counter.asked


def test_only_reading_is_repeated_unasked(play: Player, counter: Counter) -> None:
    """A GET that had begun is sent again; a POST is in doubt, and what is decided about it is done."""
    recorder, payload = alone(play, FETCH), {"url": f"http://127.0.0.1:{counter.server_port}/"}
    whole = recorder.run(payload)
    post = next(n for n, entry in enumerate(whole.entries, 1) if entry.kind == "begun")
    cut, path = whole.entries[:post], whole.entries[post - 1].path
    fresh = recorder.again(whole.entries[:2], payload)
    stopped, skipped = recorder.again, recorder.again(cut, payload, {path: "skip"})
    repeated = stopped(cut, payload, {path: "retry"})

    assert ["GET", "POST", "GET", "POST", "POST"] == counter.asked
    assert ([3, 200, 4], [1, 200, 5]) == (fresh.played.result, repeated.played.result)
    assert "its end is not known; it was not done again" in skipped.played.told


# ---------------------------------------------------------------- playbooks at the same time

SIDES = (
    ROLE
    + '''
team T { north: North, south: South, list: List }
agent List : R { state { seen = [] } on push(x: Json) { this.state.seen.push(x.name); console.log(this.state.seen) } }
agent North : R { uses team T on go(x: Json) { playbook """North.""" } }
agent South : R { uses team T on go(x: Json) { playbook """South.""" } }
agent Main : R { uses team T on go(x: Json) { playbook """Both sides.""" } }
'''
)


def sides_of(others: asyncio.Event) -> Voice:
    """A model that answers the first side when it has answered the second one."""

    async def speak(request: Request) -> AsyncIterator[str]:
        name = next(name for name in ("North", "South", "Both") if playbook_in(request).startswith(name))
        if name == "North":
            await others.wait()
        if len(request.messages) > 2:
            yield json.dumps(done())
        elif name == "Both":
            yield json.dumps({"batch": [{"parallel": [ask("north::go"), ask("south::go")]}]})
        else:
            yield json.dumps(ask("list::push", {"name": name}))
        if name == "South":
            others.set()

    return Voice(speak)


def test_models_answered_in_this_order(play: Player) -> None:
    """What two playbooks do at the same time is done in the order in which their models had answered."""
    others = asyncio.Event()
    recorder = Recorder(play, SIDES, lambda: sides_of(others))
    whole = recorder.run()
    again = recorder.again(whole.entries[:-1])
    fresh = recorder.again(whole.entries[:-3])

    assert ["[ 'South' ]", "[ 'South', 'North' ]"] == whole.printed
    assert {name: ["South", "North"] for name in "ab"} == {
        "a": again.played.state("List")["seen"],
        "b": fresh.played.state("List")["seen"],
    }
    assert () == again.played.requests


ABORT = """
    const c = new AbortController(), ended = []
    c.signal.addEventListener("abort", () => ended.push("told"))
    setTimeout(() => c.abort("enough"), 30)
    for (const signal of [c.signal, AbortSignal.timeout(20)]) {
        try { await fetch(x.url, { signal, method: "POST" }) } catch (e) { ended.push(e.name ?? e) }
    }
    return [ended, c.signal.aborted]
"""


def test_an_aborted_request_stays_aborted(play: Player) -> None:
    """Wherever the run is cut, its requests end by the same aborts, and what had ended is not asked again."""
    server = SilentServer(b"", drips=False)
    recorder, payload = alone(play, ABORT), {"url": server.url}
    whole, *rest = each_cut(recorder, payload)
    asked = server.count()
    again = recorder.again(whole.entries[:-1], payload)
    asked_at_last = server.count()
    server.close()

    assert [["told", "enough", "TimeoutError"], True] == whole.played.result == again.played.result
    assert {("told", "enough", "TimeoutError")} == {tuple(tape.played.result[0]) for tape in rest}
    assert asked == asked_at_last
