"""A call that computes without an `await` is ended, since nobody else in the process is served meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from time import monotonic, thread_time
from typing import Any

import pytest

from koi_lang.runtime.journal.reader import read
from koi_lang.service import host as hosts
from koi_lang.service.hosted import HostedSession
from koi_lang.service.watchdog import Watchdog
from tests.limits import LIMIT_S
from tests.service.hosting import SessionHost, begin, called, play, until_told
from tests.service.serving_process import ServiceProcess, is_event

PROGRAM = """
role Guide { can advise }
agent Host : Guide {
  on spin(args: { n: number }) { let i = 0; while (true) { i = i + args.n } }
  on work(args: { rounds: number }) {
    let i = 0
    while (i < args.rounds) { i = i + 1 }
    await new Promise(resolve => setTimeout(resolve, 200))
    return i
  }
  on chat(args: { message: string }) { return args.message }
}
"""


def watch_within(monkeypatch: pytest.MonkeyPatch, max_s: float) -> list[str]:
    """Let steps of calls take some CPU time at most; the lines for the operator."""
    lines: list[str] = []

    def make(sessions: Callable[[], Iterable[HostedSession]], note: Callable[[str], None]) -> Watchdog:
        return Watchdog(sessions, lines.append, max_s)

    monkeypatch.setattr(hosts, "Watchdog", make)
    return lines


def test_what_computes_is_named_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that computes is warned of first, and ends with the reason; another session goes on."""
    operator = watch_within(monkeypatch, 0.1)
    (tmp_path / "host.koi").write_text(PROGRAM)
    heard: list[dict[str, Any]] = []

    def is_end(told: bytes) -> bool:
        heard.extend([json.loads(told)] if told else [])
        return b"call_ended" in told

    async def scenario(host: SessionHost) -> str:
        calm, spinning = await begin(host), await begin(host, "Host.spin", n=1)
        await until_told(spinning, is_end)
        await called(calm, "Host.chat", message="hello")
        return calm.state

    assert "idle" == play(tmp_path, scenario, "host.koi")
    warned, ended = operator
    assert "`Host.spin` computes for 0." in warned
    assert "`Host.spin` was ended: it computed for 0." in ended
    assert [warned, ended] == [f"session `{warned[9:21]}`: {told['text']}" for told in heard if told["type"] == "log"]
    assert (False, True, None) == tuple(heard[-1]["event"].get(name) for name in ("ok", "timed_out", "aborted"))
    assert "`Host.spin` was ended: it computed for" in heard[-1]["event"]["error"]


def test_what_computes_while_its_session_wakes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call at work when the service was killed computes again before its session is open, and is ended there."""
    operator = watch_within(monkeypatch, 0.1)
    (tmp_path / "host.koi").write_text(PROGRAM)

    async def scenario(host: SessionHost) -> str:
        session = await begin(host)
        await called(session, "Host.spin", n=1)
        await session.sleep()
        entries = session.feed.journal.read_bytes().splitlines(keepends=True)
        session.feed.journal.write_bytes(b"".join(takewhile(lambda entry: b"call_ended" not in entry, entries)))
        await session.wake()
        await session.wait_for_rest(LIMIT_S)
        return session.state

    assert "idle" == play(tmp_path, scenario, "host.koi")
    assert [True, True] == ["`Host.spin` was ended: it computed for" in line for line in operator[1::2]]


def test_a_blocking_call_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that sleeps without awaiting takes no CPU time, and is ended, too."""
    operator = watch_within(monkeypatch, 0.05)
    (tmp_path / "naps.py").write_text("import time\n\ndef nap(seconds): time.sleep(seconds)\n")
    program = 'import naps from "./naps.py"\n' + PROGRAM.replace(
        "on chat", "on nap(args) { while (true) { naps.nap(0.01) } }\n  on chat"
    )
    (tmp_path / "host.koi").write_text(program)

    async def scenario(host: SessionHost) -> None:
        await called(await begin(host), "Host.nap")

    play(tmp_path, scenario, "host.koi")
    assert "`Host.nap` was ended: it blocked for 0." in operator[-1]


@pytest.mark.timeout(method="thread")  # the other one takes SIGALRM, by which code that computes is interrupted
def test_a_search_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A regular expression that backtracks keeps the interpreter to itself, and is seen and ended all the same."""
    operator = watch_within(monkeypatch, 0.2)
    search = 'on search(args) { return /^(a+)+$/.test("a".repeat(60) + "!") }\n  on chat'
    (tmp_path / "host.koi").write_text(PROGRAM.replace("on chat", search))

    async def scenario(host: SessionHost) -> None:
        await called(await begin(host), "Host.search")

    play(tmp_path, scenario, "host.koi")
    assert "`Host.search` was ended: it computed for 0." in operator[-1]


def test_a_loop_that_many_make_late_ends_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred calls that compute a little each hold up the loop for long, and none of them does."""
    operator = watch_within(monkeypatch, 0.2)
    (tmp_path / "host.koi").write_text(PROGRAM)
    ended: list[Any] = []

    async def scenario(host: SessionHost) -> None:
        sessions = [await begin(host) for _ in range(100)]
        since = thread_time()
        await asyncio.gather(*(called(each, "Host.work", rounds=20000) for each in sessions))
        ended.append(thread_time() - since)
        ended.extend(read(each.feed.journal).entries[-1] for each in sessions)

    play(tmp_path, scenario, "host.koi")
    spent_s, *ends = ended
    assert spent_s > 0.4, "more work than a single call may do"
    assert [True] * 100 == [entry.data["ok"] for entry in ends]
    assert [] == operator


@pytest.mark.thorough
def test_what_computes_holds_up_nobody_for_ever(start_service: Callable[..., ServiceProcess]) -> None:
    """A call that never waits is ended, its client is told why, and the others go on."""
    service = start_service(host=PROGRAM)
    calm, spinning = service.begin(), service.begin()
    told = service.follow(spinning)
    assert "rpc_ready" == next(told)[1]["type"]

    service.command(spinning, "run_playbook", name="Host.spin", args={"n": 1})
    ended = list(takewhile(lambda told: not is_event("call_ended")(told[1]), told))

    assert any("without an `await`" in message.get("text", "") for _, message in ended)
    assert "failed" == service.wait_for_state(spinning, "failed")["state"]
    service.command(calm, "prompt", message="hello")
    assert "hello" == service.follow_until(calm, is_event("call_ended"))[-1][1]["event"]["result"]


LOOKING = """
import garbage from "./garbage.py"
role Guide { can advise }
agent Host : Guide { on chat(args: { message: string }) { return garbage.is_searched() } }
"""


def test_collections_leave_out_what_was_loaded(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Python looks for garbage among the objects of sessions alone; among all of them it would hold the loop."""
    text = "import gc\nLOADED = [[]]\ndef is_searched(): return any(each is LOADED for each in gc.get_objects())\n"
    (tmp_path / "garbage.py").write_text(text)
    service = start_service(host=LOOKING)
    run = service.begin()
    service.command(run, "prompt", message="hello")

    assert service.follow_until(run, is_event("call_ended"))[-1][1]["event"]["result"] is False


def test_the_lag_of_the_loop_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind code that held the loop it is late."""
    watch_within(monkeypatch, 1.0)
    (tmp_path / "host.koi").write_text(PROGRAM)

    async def scenario(host: SessionHost) -> float:
        assert host.watchdog is not None
        await asyncio.sleep(0)
        end = monotonic() + 0.3
        while monotonic() < end:
            pass
        return host.watchdog.lag_s

    assert play(tmp_path, scenario, "host.koi") > 0.2
