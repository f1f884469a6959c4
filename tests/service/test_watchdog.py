"""A call that computes without an `await` is ended, since nobody else in the process is served meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest

from koi_lang.service import host as hosts
from koi_lang.service.watchdog import Watchdog
from tests.service.hosting import SessionHost, begin, called, play, until_told
from tests.service.serving_process import ServiceProcess, is_event

PROGRAM = """
role Guide { can advise }
agent Host : Guide {
  on spin(args: { n: number }) { let i = 0; while (true) { i = i + args.n } }
  on chat(args: { message: string }) { return args.message }
}
"""


def test_what_computes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session is told why, and another one, which had to wait, goes on."""
    monkeypatch.setattr(hosts, "Watchdog", partial(Watchdog, most_s=0.1))
    (tmp_path / "host.koi").write_text(PROGRAM)
    lines: list[str] = []

    def is_end(told: bytes) -> bool:
        if told:
            lines.append(json.loads(told).get("text", ""))
        return b"call_ended" in told

    async def scenario(host: SessionHost) -> str:
        calm, spinning = await begin(host), await begin(host, "Host.spin", n=1)
        await until_told(spinning, is_end)
        await called(calm, "Host.chat", message="hello")
        return calm.state

    assert "idle" == play(tmp_path, scenario, "host.koi")
    assert any("without an `await`" in line for line in lines)


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
    assert "idle" == service.wait_for_state(spinning, "idle")["state"]
    service.command(calm, "prompt", message="hello")
    assert "hello" == service.follow_until(calm, is_event("call_ended"))[-1][1]["event"]["result"]
