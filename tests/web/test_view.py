"""`koi runs view`: recorded runs in a browser, without a service."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests import forks
from tests.journal.commands import Commands
from tests.service.serving_process import LIMIT_S, ROOT


@pytest.fixture
def view(koi: Commands, desk: Path) -> Iterator[str]:
    """The address that `koi runs view` says."""
    command = forks.koi("runs", "view", desk.stem[:6], "--no-open")
    environment = {**koi.project.environment, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=koi.folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait(LIMIT_S) == 0


def test_recorded_runs_are_shown_without_a_service(koi: Commands, desk: Path, view: str) -> None:
    """The address leads to the run and holds a token, without which nothing is told; no program can be begun."""
    page, _, fragment = view.partition("#")
    where, _, token = fragment.partition("&token=")
    base = page.removesuffix("dev")
    with httpx2.Client(headers={"Authorization": f"Bearer {token}"}) as client:
        runs = client.get(f"{base}api/dev/runs").json()["runs"]
        status = client.get(f"{base}api/status").json()
        begun = client.post(f"{base}api/runs", json={"handler": "Editor.start"}).status_code
        foreign = client.get(f"{base}api/dev/runs", headers={"Origin": "http://elsewhere.example"}).status_code
        home = client.get(base).status_code

    assert f"/run/{desk.stem}" == where
    assert (401, 404, 403, 307) == (httpx2.get(f"{base}api/dev/runs").status_code, begun, foreign, home)
    assert ([desk.stem], []) == ([run["id"] for run in runs], status["programs"])
    assert "127.0.0.1" in base


def test_a_run_that_is_not_there_is_told(koi: Commands, desk: Path) -> None:
    """Nothing is served for it."""
    done = koi("runs", "view", "nothing", "--no-open")

    assert done.code != 0
    assert "there is no run `nothing`" in done.err
