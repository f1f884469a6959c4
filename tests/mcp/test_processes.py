"""Servers as processes: nothing that they have started is left, however the run ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from tests.mcp.conftest import Shelf, call
from tests.projects import Project

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="THE END OF STRANGE PROCESSES CANNOT BE SEEN HERE"
)
LIMIT_S = 20
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
def test_nothing_is_left_after_a_run(shelf: Shelf, habit: str) -> None:
    """A server and what it has started are gone when the run ends, also if they want to go on."""
    played = shelf.code("await files.spawn()  return 1", habit)

    assert (1, 2) == (played.result, len(shelf.processes())), played.told
    assert [True, True] == [is_gone(pid) for pid in shelf.processes()]


def test_nothing_is_left_of_a_server_that_died(shelf: Shelf) -> None:
    """What a server has started that dies is gone before the next one answers."""
    played = shelf(call("spawn"), call("die"), call("echo", text="a"), **shelf.raw())
    _, child, _ = shelf.processes()

    assert '✅ call_mcp -> {"result":"a"}\nContinue.' == played.feedback[3]
    assert is_gone(child)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("habit", ["", "deaf"])
def test_nothing_is_left_of_a_killed_run(shelf: Shelf, number: signal.Signals, habit: str) -> None:
    """However a run is killed, its servers and what these have started end, too."""
    project = Project(shelf.play.folder)
    project.write(
        "main.koi", shelf.program(code=f"on code(args) {{ {WAITS} }}", **shelf.raw(habit)) + "run Main.code({})"
    )
    words = [sys.executable, "-m", "koi_lang", "run", "main.koi", "--quiet"]
    with subprocess.Popen(words, cwd=project.folder, env=project.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)

    assert [True, True] == [is_gone(pid) for pid in shelf.processes()]
