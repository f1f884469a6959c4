"""Messages that go out: signed, tried again, kept over restarts, in nobody's way, to nobody who may not be reached."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.service.deliveries import DAY_S, PAUSES_S
from koi_lang.service.store import Database
from koi_lang.service.webhooks import HookEvent, HookSender, Webhooks, signature
from tests.limits import LIMIT_S
from tests.service.receiver import Receiver, receiving

SECRET = b"a-secret-of-the-service-0123456789"
KEY = "sk-abcdefghijklmnop0123456789ABCDEF"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on this machine."""
    with receiving() as server:
        yield server


class Clock:
    """A clock that is set by a test."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self.now


def webhooks(folder: Path, *addresses: str, allow: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> Webhooks:
    """What tells some addresses of runs that ended, as in a new process."""
    about = {name: more.pop(name) for name in ("is_refused", "try_s") if name in more}
    sender = HookSender(SECRET, Allowed.of(allow), **{"try_s": 5.0, **about})
    return Webhooks(Database.connect(folder), {"run.ended": addresses}, sender, redactor(), **more)


def ended(number: int = 1, **fields: Any) -> HookEvent:
    """That a call has ended."""
    return HookEvent("run.ended", f"run.ended:{number}", "0123456789ab", {"call": f"call-{number}", **fields})


async def until(holds: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(limit_s):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def states(hooks: Webhooks) -> list[tuple[str, int, str]]:
    """What is known of all deliveries."""
    return [(each["state"], each["tries"], each["problem"]) for each in hooks.list_deliveries()]


def deliver(hooks: Webhooks, *events: HookEvent) -> None:
    """Tell some events, and wait until all have arrived or failed once."""

    def is_over() -> bool:
        return all(state == "delivered" or problem for state, _, problem in states(hooks))

    async def main() -> None:
        async with hooks.sending():
            for event in events:
                hooks.tell(event)
            await until(is_over)

    asyncio.run(main())


def test_a_message_is_signed(tmp_path: Path, receiver: Receiver) -> None:
    """The receiver knows who has sent it and when, and the same event is told once."""
    deliver(webhooks(tmp_path, receiver.url("ok")), ended(result={"words": 9}), ended())
    (got,) = receiver.received
    at = int(got.headers["koi-signature"].partition(",")[0].removeprefix("t="))

    assert f"t={at},v1={signature(SECRET, at, got.body)}" == got.headers["koi-signature"]
    assert abs(time.time() - at) < 60
    assert ("application/json", "run.ended") == (got.headers["content-type"], got.headers["koi-event"])
    assert {
        "id": got.id,
        "event": "run.ended",
        "created": at,
        "run": "0123456789ab",
        "data": {"call": "call-1", "result": {"words": 9}},
    } == {**json.loads(got.body), "created": at}


def test_a_message_leads_to_the_run(tmp_path: Path, receiver: Receiver) -> None:
    """Where clients reach the service is in it, with the page of the run; what is about no run has no address."""
    hooks = webhooks(tmp_path, receiver.url("ok"), public_url="https://koi.example.org/desk")
    deliver(hooks, ended(1), replace(ended(2), run=""))
    urls = {json.loads(got.body)["run"]: json.loads(got.body).get("url") for got in receiver.received}

    assert {"0123456789ab": "https://koi.example.org/desk/#/run/0123456789ab", None: None} == urls


def test_secrets_do_not_go_out(tmp_path: Path, receiver: Receiver) -> None:
    """A key in a result is replaced, and the body stays JSON; a result that is too large is left out."""
    hooks = webhooks(tmp_path, receiver.url("ok"))
    deliver(hooks, ended(1, result=f'the key is "{KEY}"'), ended(2, result="x" * 300_000))
    bodies = {json.loads(got.body)["data"]["call"]: json.loads(got.body)["data"] for got in receiver.received}

    assert KEY not in str(bodies)
    assert "the key is" in bodies["call-1"]["result"]
    assert {"call": "call-2", "is_cut": True} == bodies["call-2"]


def test_five_tries_are_made_in_a_day(tmp_path: Path, receiver: Receiver) -> None:
    """Each has the same id; between them more and more time passes; then it is given up, and listed."""
    clock, told = Clock(), list[str]()
    hooks = webhooks(tmp_path, receiver.url("fail"), now=clock, note=told.append)

    def has_come(number: int) -> bool:
        return len(receiver.received) == number and states(hooks)[0][0] != "sending"

    async def main() -> None:
        async with hooks.sending():
            hooks.tell(ended())
            for number, pause_s in enumerate([*PAUSES_S, 10 * DAY_S], 1):
                await until(partial(has_come, number))
                clock.now += pause_s - 1
                hooks._news.set()
                await asyncio.sleep(0.02)
                assert number == len(receiver.received)
                clock.now += 1
                hooks._news.set()

    asyncio.run(main())
    assert {5: 1} == {len(receiver.received): len({got.id for got in receiver.received})}
    assert [("failed", 5, "it answered with status 500")] == states(hooks)
    assert sum(PAUSES_S) == DAY_S
    assert "was given up" in told[0]
    assert str(receiver.port) not in told[0]


def test_what_fails_once_arrives_later(tmp_path: Path, receiver: Receiver) -> None:
    """A receiver that was down is told when it is there again."""
    clock = Clock()
    receiver.failing = 1
    hooks = webhooks(tmp_path, receiver.url("fail"), now=clock)
    deliver(hooks, ended())
    clock.now += PAUSES_S[0]
    hooks = webhooks(tmp_path, receiver.url("fail"), now=clock)

    async def main() -> None:
        async with hooks.sending():
            await until(lambda: states(hooks)[0][0] == "delivered")

    asyncio.run(main())
    assert [("delivered", 2, "")] == states(hooks)


def test_a_receiver_that_hangs_holds_up_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """Others are told while it has not answered, nor the one whose answer drips in."""
    hooks = webhooks(tmp_path, *(receiver.url(path) for path in ("hang", "drip", "ok")), try_s=3600.0)

    async def main() -> None:
        async with hooks.sending():
            for number in range(4):
                hooks.tell(ended(number))
            await until(lambda: len(receiver.at("ok")) == 4)

    asyncio.run(main())
    assert {""} == {problem for _, _, problem in states(hooks)}


def test_a_try_ends_in_time(tmp_path: Path, receiver: Receiver) -> None:
    """Where no answer comes, and where one drips in."""
    hooks = webhooks(tmp_path, receiver.url("hang"), receiver.url("drip"), try_s=0.5)
    deliver(hooks, *map(ended, range(4)))

    assert ["no answer within 0.5 s"] * 8 == [problem for _, _, problem in states(hooks)]


def test_what_comes_back_is_not_read(tmp_path: Path, receiver: Receiver) -> None:
    """Gigabytes in an answer cost nothing, and a redirect leads nowhere."""
    deliver(webhooks(tmp_path, receiver.url("flood"), receiver.url("redirect")), ended())

    assert receiver.flooded < 64 << 20
    assert [] == receiver.at("ok")
    assert {("delivered", 1, ""), ("waiting", 1, "it answered with status 307, and is not followed elsewhere")} == set(
        states(webhooks(tmp_path))
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"])
def test_private_hosts_are_not_told(tmp_path: Path, receiver: Receiver, host: str) -> None:
    """What `std/http` may not reach is not reached, however it is written."""
    hooks = webhooks(tmp_path, f"http://{host}:{receiver.port}/ok", allow=())
    deliver(hooks, ended())

    assert ([], 1, True) == (receiver.received, len(states(hooks)), "no public address" in states(hooks)[0][2])


def test_hosts_that_rules_deny_are_not_told(tmp_path: Path, receiver: Receiver) -> None:
    """Rules for pages count, too."""
    hooks = webhooks(tmp_path, receiver.url("ok"), is_refused=lambda host: host == "127.0.0.1")
    deliver(hooks, ended())

    assert [] == receiver.received
    assert "denies `127.0.0.1`" in states(hooks)[0][2]


def test_a_name_is_looked_up_once(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that was found to be allowed is the one that is reached: a name cannot become another one between."""
    asked = []

    def look_up(host: Any, port: int, *more: Any, **named: Any) -> list[Any]:
        asked.append(str(host))
        numbers = ["127.0.0.1" if asked.count("hook.example") == 1 else "10.0.0.1"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in numbers]

    hooks = webhooks(tmp_path, f"http://hook.example:{receiver.port}/ok", allow=("hook.example",))
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    deliver(hooks, ended())

    assert (1, "hook.example") == (asked.count("hook.example"), receiver.received[0].headers["host"].partition(":")[0])


def test_an_address_without_a_hook_is_told_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """What a database has brought along, or waited when its hook was taken away, is given up."""
    webhooks(tmp_path, receiver.url("gone")).tell(ended())
    hooks = webhooks(tmp_path, receiver.url("ok"))
    deliver(hooks, ended(2))

    assert [("delivered", 1, ""), ("failed", 0, "no hook has this address")] == sorted(states(hooks))
    assert ["/ok"] == [got.path for got in receiver.received]


def test_a_killed_process_loses_no_message(tmp_path: Path, receiver: Receiver) -> None:
    """What was told, and what was on its way when SIGKILL came, is sent by the next process, under the same id."""
    process = os.fork()
    if not process:
        hooks = webhooks(tmp_path, receiver.url("ok"), receiver.url("hang"))

        async def main() -> None:
            hooks.tell(ended(1))
            async with hooks.sending():
                hooks.tell(ended(2))
                await until(lambda: [state for state, _, _ in states(hooks)].count("delivered") == 2)
                hooks.tell(ended(3))
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            asyncio.run(main())
        finally:
            os._exit(1)
    assert -signal.SIGKILL == os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    before = {got.id for got in receiver.at("hang")}
    hooks = webhooks(tmp_path, receiver.url("ok"), receiver.url("hang"), try_s=3600.0)

    def has_arrived() -> bool:
        calls = {json.loads(got.body)["data"]["call"] for got in receiver.at("ok")}
        times = Counter(got.id for got in receiver.at("hang"))
        return calls == {"call-1", "call-2", "call-3"} and len(times) == 3 and all(times[id] > 1 for id in before)

    async def go_on() -> None:
        async with hooks.sending():
            await until(has_arrived)

    asyncio.run(go_on())
    assert 3 == len({got.id for got in receiver.at("ok")})
