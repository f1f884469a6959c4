"""Servers as processes: nothing that they have started is left, however the run ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import pytest

from koi_lang.runtime.mcp import process as server_process
from tests import forks
from tests.limits import LIMIT_S
from tests.mcp.conftest import Shelf, call
from tests.playbook.playing import Player
from tests.projects import Project

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="THE END OF STRANGE PROCESSES CANNOT BE SEEN HERE"
)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
CASES = [*product(SIGNALS, ["", "deaf"])]
WAITS = 'await files.spawn()  console.log("ready")  await new Promise(done => setTimeout(done, 60000))'


def is_gone(pid: int) -> bool:
    """Whether a process ends before long; one that nobody has asked about has ended, too."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], LIMIT_S)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("habit", ["", "deaf"])
def test_nothing_is_left_after_a_run(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, habit: str) -> None:
    """A server and what it has started are gone when the run ends, also if they want to go on."""
    monkeypatch.setattr(server_process, "LEAVE_S", 0.2)
    played = shelf.code("await files.spawn()  return 1", habit)

    assert (1, 2) == (played.result, len(shelf.processes())), played.told
    assert [True, True] == [is_gone(pid) for pid in shelf.processes()]


def test_nothing_is_left_of_a_server_that_died(shelf: Shelf) -> None:
    """What a server has started that dies is gone before the next one answers."""
    played = shelf(call("spawn"), call("die"), call("echo", text="a"), **shelf.raw())
    _, child, _ = shelf.processes()

    assert '✅ call_mcp -> {"result":"a"}\nContinue.' == played.feedback[3]
    assert is_gone(child)


@contextmanager
def waiting_run(shelf: Shelf, habit: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run that waits while its server has a child."""
    project = Project(shelf.play.folder)
    project.write(
        "main.koi", shelf.program(code=f"on code(args) {{ {WAITS} }}", **shelf.raw(habit)) + "run Main.code({})"
    )
    words = forks.koi("run", "main.koi", "--quiet")
    with subprocess.Popen(words, cwd=project.folder, env=project.environment, stdout=subprocess.PIPE) as running:
        yield running


def test_nothing_is_left_of_killed_runs(tmp_path: Path) -> None:
    """However a run is killed, its servers and what these have started end, too. The runs go on at the same time."""
    shelves = {(number, habit): shelf_in(tmp_path / f"{number.name}{habit}") for number, habit in CASES}
    with ExitStack() as runs:
        running = {case: runs.enter_context(waiting_run(shelf, case[1])) for case, shelf in shelves.items()}
        assert dict.fromkeys(CASES, b"ready\n") == {case: said(process) for case, process in running.items()}
        for (number, _), process in running.items():
            process.send_signal(number)

    assert {case: [True, True] for case in CASES} == {
        case: [is_gone(pid) for pid in shelf.processes()] for case, shelf in shelves.items()
    }


def shelf_in(folder: Path) -> Shelf:
    """Programs in a folder of their own."""
    folder.mkdir()
    return Shelf(Player(folder), folder / "pids")


def said(process: subprocess.Popen[bytes]) -> bytes:
    """The first line that a process writes."""
    assert process.stdout is not None
    return process.stdout.readline()
