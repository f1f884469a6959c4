"""AbortController, AbortSignal and DOMException, and what they do to requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang.js.call_helpers import invoke, new
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.program import loader
from tests.differential.engines import koi_outputs, node_outputs
from tests.playbook.playing import Player
from tests.silence import SilentServer

BODIES = [
    """const c = new AbortController(), log = [], f = () => log.push("twice")
    c.signal.addEventListener("abort", e => log.push(e.type, e.target === c.signal), { once: true })
    c.signal.addEventListener("abort", f); c.signal.addEventListener("abort", f)
    const g = () => log.push("removed"); c.signal.addEventListener("abort", g)
    c.signal.removeEventListener("abort", g); c.signal.addEventListener("other", g)
    c.signal.onabort = () => log.push("first handler"); c.signal.addEventListener("abort", () => log.push("last"))
    c.signal.onabort = () => log.push("second handler")
    const any = AbortSignal.any([new AbortController().signal, c.signal])
    any.addEventListener("abort", () => log.push("any"))
    console.log(c.signal.aborted, c.signal.reason, c.signal, c)
    c.abort("why"); c.abort("again"); log.push("after")
    console.log(log, c.signal.reason, any.reason, AbortSignal.any([any]).reason, c.signal.aborted)
    c.signal.addEventListener("abort", () => log.push("late")); console.log(log.length)""",
    """for (const reason of [undefined, null, 0, "text"]) {
      const s = AbortSignal.abort(reason)
      try { s.throwIfAborted() } catch (e) { console.log(e === s.reason, String(e), e?.name, e?.code) }
    }
    console.log(new AbortController().signal.throwIfAborted())""",
    """const s = AbortSignal.timeout(5), t = AbortSignal.timeout(100000)
    await new Promise(done => setTimeout(done, 40))
    console.log(s.aborted, s.reason.name, s.reason.message, s.reason.code, s.reason instanceof DOMException, t.aborted)
    console.log(AbortSignal.any([t, s]).aborted, AbortSignal.any([]).aborted)""",
    """const e = new DOMException("m", "AbortError"), f = new DOMException("m", { name: "Own", cause: 1 })
    console.log(e.name, e.code, e.message, String(e), e instanceof Error, f.name, f.code, f.cause, JSON.stringify(e))
    console.log(new DOMException().name, new DOMException("x").code, Object.keys(e))
    for (const value of [() => 1, { a: [async () => 1] }, Map, Promise.resolve(1)]) {
      try { structuredClone(value) } catch (e) { console.log(e.name, e.code, e instanceof DOMException) }
    }""",
    """const e = structuredClone(Object.assign(new RangeError("m", { cause: { a: [1] } }), { code: 5 }))
    console.log(e.name, e.message, e.cause, e.code, e instanceof RangeError)
    console.log(structuredClone(Object.assign(new Error("x"), { name: "Mine" })).name)
    const o = { d: new Date(5), m: new Map([["k", new Set([1])]]), r: /a/gi, n: null, u: undefined, z: -0 }
    o.self = o; o.m.set(o, o.m)
    const c = structuredClone(o); console.log(c, c.self === c, c.m.get(c) === c.m, structuredClone("ab".match(/b/)))""",
    """const any = AbortSignal.any, timeout = AbortSignal.timeout
    for (const make of [
      () => new AbortSignal(), () => AbortController(), () => any([3]), () => any(3),
      () => timeout(-1), () => timeout("a"), () => timeout(), () => timeout(2 ** 32),
    ]) {
      try { make(); console.log("none") } catch (e) { console.log(e.name) }
    }""",
    """for (const signal of [AbortSignal.abort("own"), 5, AbortSignal.abort()]) {
      try { await fetch("http://127.0.0.1:9", { signal }) } catch (e) { console.log(e?.name ?? e, e?.message) }
    }""",
]

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Player]:
    """Plays programs; compiled ones are kept away from those of the person who runs the tests."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
    yield Player(tmp_path)
    loader.unload()


@pytest.fixture(params=[(b"", False), (HEAD, False), (HEAD, True)], ids=["silent", "half an answer", "dripping"])
def server(request: pytest.FixtureRequest) -> Iterator[SilentServer]:
    """A server that keeps everybody waiting."""
    made = SilentServer(*request.param)
    yield made
    made.close()


@pytest.mark.needs("node", "npm")
def test_they_do_what_they_do_in_node() -> None:
    """Listeners in their order, reasons, `any`, `timeout`, what is thrown, and copies of what can be copied."""
    assert node_outputs(BODIES) == koi_outputs(BODIES)


def test_they_are_shown_as_in_node() -> None:
    """A controller shows its signal, an exception its name."""
    controller = new(GLOBALS["AbortController"])
    before = inspect(controller)
    invoke(controller, "abort")

    assert [
        "AbortController { signal: AbortSignal { aborted: false } }",
        "AbortController { signal: AbortSignal { aborted: true } }",
        "[ [DOMException [AbortError]: This operation was aborted] ]",
    ] == [before, inspect(controller), inspect([controller.signal.reason])]


FORTY = """
  const c = new AbortController()
  const all = Array.from({ length: 40 }, () => fetch(x.url, { signal: c.signal, method: x.method }))
  setTimeout(() => c.abort(), 200)
  const ended = await Promise.allSettled(all)
  return [...new Set(ended.map(one => `${one.status} ${one.reason?.name} ${one.reason === c.signal.reason}`))]
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_abort_ends_requests(server: SilentServer, play: Player, method: str) -> None:
    """One signal ends forty requests: each is rejected with its reason, and each connection is closed."""
    source = f"role R {{ can execute }}\nagent Main : R {{ on go(x: Json) {{ {FORTY} }} }}"

    assert ["rejected AbortError true"] == play(source, [], payload={"url": server.url, "method": method}).result
    assert server.have_gone(40)
