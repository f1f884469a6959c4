"""Programs with errors, and such that change while sessions run: others are served, and sessions stay with theirs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project
from tests.service.serving_process import ROOT, TOKEN, ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on add(args: { n: int in LEAST.. }) { this.state.count += args.n; console.log(this.state.count) }
}
"""
FIRST, SECOND = PROGRAM.replace("LEAST", "1"), PROGRAM.replace("LEAST", "2")
BROKEN = "agent Main : Nobody { on add() { } }"


def reload(service: ServiceProcess) -> subprocess.CompletedProcess[str]:
    """What `koi service reload` does."""
    words = forks.koi("service", "reload", service.url)
    variables = {
        "PYTHONPATH": str(ROOT),
        "KOI_SERVE_TOKEN": TOKEN,
        "PATH": "/usr/bin:/bin",
        "HOME": str(service.folder),
    }
    return subprocess.run(words, capture_output=True, text=True, env=variables, timeout=LIMIT_S)


def add(service: ServiceProcess, run: str = "", n: int = 1) -> str:
    """A run, a new one by default, in which something was added."""
    run = run or service.begin(program="main")
    response = service.command(run, "run_playbook", name="Main.add", args={"n": n})
    assert response["success"], response
    service.wait_for_state(run, "idle")
    return run


def is_of_second(service: ServiceProcess, run: str) -> bool:
    """Whether a run is with the second version, which takes larger numbers alone."""
    return bool(not service.command(run, "run_playbook", name="Main.add", args={"n": 1})["success"])


def printed(service: ServiceProcess, run: str) -> list[str]:
    """What a run has printed."""
    entries = service.get(f"api/runs/{run}/entries")["entries"]
    return [entry["message"] for entry in entries if entry["kind"] == "printed"]


def test_sessions_stay_with_what_they_were_begun_with(
    start_service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """New sessions get the new version, old ones the old one, also when they slept; after a restart all do."""
    (tmp_path / "koi.toml").write_text("[serve.limits]\nidle = 0.3\n")
    service = start_service(main=FIRST, other=FIRST)
    old = add(service)
    (tmp_path / "main.koi").write_text(SECOND)
    done = reload(service)
    assert (0, ["main: loaded anew", "other: as it was"]) == (done.returncode, done.stdout.splitlines()), done.stderr
    service.wait_for_state(old, "asleep")
    new = add(service, n=2)
    assert is_of_second(service, new)
    add(service, old)
    assert (["1", "2"], ["2"]) == (printed(service, old), printed(service, new))

    service.end()
    service.start()
    add(service, old, 2)
    assert is_of_second(service, old)
    assert ["1", "2", "4"] == printed(service, old)
    branch = service.request("POST", f"api/runs/{old}/branch", {}).json()["id"]
    add(service, branch, 2)
    assert "6" == printed(service, branch)[-1]


def test_a_program_with_errors_does_not_hold_up_others(
    start_service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """At the start and later: it says what is wrong, others are served, and what was served before stays."""
    service = start_service(main=FIRST, broken=BROKEN)
    programs = {each["name"]: each for each in service.get("api/program")["programs"]}
    assert (True, False) == (programs["main"]["ok"], programs["broken"]["ok"])
    assert "Nobody" in programs["broken"]["error"]
    refused = service.request("POST", "api/runs", {"program": "broken"})
    assert (409, "program_broken") == (refused.status_code, refused.json()["code"])
    (tmp_path / "main.koi").write_text(BROKEN)
    done = reload(service)

    assert 1 == done.returncode
    assert "Nobody" in done.stdout
    assert ["1"] == printed(service, add(service))


def test_a_service_without_a_model_names_its_settings(start_service: Callable[..., ServiceProcess]) -> None:
    """Who asks for a handler has no `-m`: the message tells what whoever runs the service does."""
    service = start_service(a='role W { can execute } agent A : W { on go(args: Json) { playbook "Greet Ada." } }')

    asked = Project(service.folder).koi("ask", service.url, "A.go", KOI_SERVE_TOKEN=TOKEN)

    assert "error: no model is configured" in asked.stderr
    assert "`[models]` of `koi.toml`" in asked.stderr
    assert "-m" not in asked.stderr.split()
