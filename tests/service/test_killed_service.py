"""A service that is killed at work: its sessions go on by themselves, and what they did is not done again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.service.serving_process import ServiceProcess

PROGRAM = """
import "std/files"
role Worker { can execute, can read, can write }
agent Main : Worker {
  uses skill FileChanges
  state { done: number = 0 }
  on work(args: { name: string }) {
    for (let n = 0; n < 6; n++) {
      try { await appendFile("log.txt", `${n} `) } catch (error) { console.log("in doubt", n) }
      this.state.done++
      await new Promise((done) => setTimeout(done, 60))
    }
    console.log("complete", this.state.done)
  }
}
"""


def printed(service: ServiceProcess, run: str) -> list[str]:
    """What a run has printed."""
    entries = service.get(f"api/runs/{run}/entries?limit=1000")["entries"]
    return [entry["message"] for entry in entries if entry["kind"] == "printed"]


def log_of(service: ServiceProcess, run: str) -> list[str]:
    """What a run has written to its file."""
    return service.request("GET", f"api/runs/{run}/files/log.txt").text.split()


@pytest.mark.parametrize("count", [3, pytest.param(10, marks=pytest.mark.thorough)])
def test_sessions_at_work_go_on_after_sigkill(start_service: Callable[..., ServiceProcess], count: int) -> None:
    """Killed twice at any moment, each comes to its end; an effect took place once, or is in doubt."""
    service = start_service(main=PROGRAM)
    runs = [service.begin(handler="Main.work", payload={"name": str(n)}) for n in range(count)]
    for pause_s in (0.1, 0.15):
        time.sleep(pause_s)
        assert -signal.SIGKILL == service.end(signal.SIGKILL)
        service.start()
    for run in runs:
        service.follow_until(run, lambda message: message["type"] == "event" and "complete" in str(message))
        told, log = printed(service, run), log_of(service, run)
        doubted = {line.rpartition(" ")[2] for line in told if line.startswith("in doubt")}
        assert "complete 6" == told[-1]
        assert len(log) == len(set(log))
        assert {*map(str, range(6))} == {*log} | doubted

    assert count == len(service.get("api/runs")["runs"])
