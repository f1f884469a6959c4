"""What a service meets that it did not choose: a full disk, journals of others, taken ports, wrong positions."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.service.serving_process import ROOT, TOKEN, ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on add(args: Json) { this.state.count += 1; console.log(this.state.count) }
  on count(args: Json) {
    while (true) { console.log("x".repeat(200)); await new Promise((done) => setTimeout(done, 5)) }
  }
}
"""


def limit_files(service: ServiceProcess, size: int) -> None:
    """Have files of the service grow no further than that, as on a full disk."""
    assert service.process is not None
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def numbers(service: ServiceProcess, run: str) -> list[int]:
    """The numbers of the entries of a run."""
    return [entry["n"] for entry in service.get(f"api/runs/{run}/entries?limit=1000")["entries"]]


def test_a_full_disk_stops_sessions_and_damages_none(start_service: Callable[..., ServiceProcess]) -> None:
    """A session says why it has stopped, also to late readers; it goes on when there is room, as others do."""
    service = start_service(main=PROGRAM, is_forked=False)
    run = service.begin(handler="Main.add", payload={})
    service.wait_for_state(run, "idle")
    service.command(run, "run_playbook", name="Main.count", args={})
    limit_files(service, 12_000)
    told, late = (service.follow_until(run, lambda message: message["type"] == "session_failed") for _ in range(2))
    failed = told[-1][1]
    assert "cannot be written any more" in failed["error"]
    assert failed == late[-1][1]
    assert service.get("api/health")["ok"]
    refused = service.request("POST", "api/runs", {"handler": "Main.add", "payload": {}})
    assert refused.status_code in (202, 400), refused.text

    limit_files(service, resource.RLIM_INFINITY)
    before = numbers(service, run)
    assert list(range(1, len(before) + 1)) == before
    service.command(run, "abort")
    assert service.command(run, "run_playbook", name="Main.add", args={})["success"]
    service.wait_for_state(run, "idle")
    after = service.get(f"api/runs/{run}/entries?limit=1000")["entries"]
    assert list(range(1, len(after) + 1)) == [entry["n"] for entry in after]
    assert "2" == [entry["message"] for entry in after if entry["kind"] == "printed"][-1]


def test_a_journal_of_another_version_is_left_alone(start_service: Callable[..., ServiceProcess]) -> None:
    """What cannot be read is told with the format that it has, and nothing of it is changed."""
    service = start_service(main=PROGRAM)
    run = service.begin(handler="Main.add", payload={})
    service.wait_for_state(run, "idle")
    service.end()
    path = service.folder / ".koi" / "runs" / f"{run}.jsonl"
    first, _, rest = path.read_bytes().partition(b"\n")
    other = json.dumps({**json.loads(first), "journal": 99}).encode() + b"\n" + rest
    path.write_bytes(other)
    service.start()

    refused = service.command(run, "get_state")
    assert "journal format 99" in refused["error"]
    assert [run] == [each["id"] for each in service.get("api/runs")["runs"]]
    assert 400 == service.request("GET", f"api/runs/{run}/entries").status_code
    assert other == path.read_bytes()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", ["x", "-1", "1.2.3", "1e9", "٣", "9" * 40, "1;2"])
def test_positions_that_are_none_are_refused(service: ServiceProcess, given: str) -> None:
    """Whoever asks for what is behind something else than an entry is told so."""
    run = service.begin()
    for answer in (
        service.request("GET", f"api/runs/{run}/events?since={given}"),
        service.request("GET", f"api/runs/{run}/entries?since={given}"),
    ):
        assert (400, "invalid_request") == (answer.status_code, answer.json()["code"])


def serve(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What becomes of a service that cannot begin."""
    command = forks.koi("serve", "http", *words)
    variables = {"PYTHONPATH": str(ROOT), "KOI_SERVE_TOKEN": TOKEN, "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT_S)


def test_what_cannot_begin_says_why(tmp_path: Path) -> None:
    """A port that is taken, certificates, and no program without errors: one sentence, one thing to do, and the end."""
    (tmp_path / "main.koi").write_text(PROGRAM)
    (tmp_path / "broken.koi").write_text("agent Main : Nobody { on add() { } }")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = [
            serve(tmp_path, "main.koi", "--http", at),
            serve(tmp_path, "main.koi", "--certfile", "cert.pem"),
            serve(tmp_path, "broken.koi", "--http", "127.0.0.1:0"),
        ]

    assert [2, 2, 2] == [each.returncode for each in ended]
    expected = ("cannot listen at", "certfile", "Nobody")
    assert all(words in each.stderr for words, each in zip(expected, ended, strict=True)), ended
    assert not any("Traceback" in each.stderr for each in ended)
