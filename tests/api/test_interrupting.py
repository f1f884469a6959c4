"""Programs of `koi_lang.run` and `koi_lang.open` that compute, and whoever wants them to end."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

BUSY = """
    import tool from "./tool.py"
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { try { tool.begin(); BODY } finally { console.log("cleaned up") } } }
    run Main.go({})
    """
TOOL = 'def begin():\n    open("begun", "w").close()\n'
RUN = """
    import koi_lang
    try:
        koi_lang.run("busy.koi")
    except KeyboardInterrupt:
        print("interrupted")
    """
IN_THREADS = """
    import asyncio, threading, koi_lang

    async def serve():
        async with koi_lang.open("busy.koi", budget={"time": 1}, output=told.append) as program:
            try:
                await program.agent("Main").go({})
            except koi_lang.LimitReachedError as error:
                told.append(error.limit)

    told = []
    koi_lang.load("busy.koi")
    threads = [threading.Thread(target=asyncio.run, args=(serve(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(told))
    """


def busy(project: Project, body: str) -> Project:
    """A project with a program that computes, or waits."""
    project.write("busy.koi", BUSY.replace("BODY", body))
    project.write("tool.py", TOOL)
    return project


@pytest.mark.sampled(2)
@pytest.mark.parametrize("body", ["while (true) {}", "while (true) { await null }", "await new Promise(() => {})"])
def test_ctrl_c_ends_a_program(project: Project, body: str) -> None:
    """The first one, whether code computes or waits; it cleans up, and the journal tells that it was interrupted."""
    (project.folder / "run.py").write_text(RUN.replace("\n    ", "\n"))
    process = subprocess.Popen(
        forks.python("run.py"),
        cwd=busy(project, body).folder,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (project.folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)

    assert ("cleaned up\ninterrupted\n", "") == process.communicate(timeout=LIMIT_S)
    assert "interrupted" in project.koi("runs", "list").stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "body", ["while (true) {}", "while (args) {}", "while (true) { args }", "for (;;) {\n args\n }"]
)
def test_a_time_limit_ends_code_in_threads(project: Project, body: str) -> None:
    """Programs that are open in the threads of a server end as they do in the main thread, and clean up."""
    done = busy(project, body).fork_python(IN_THREADS)

    assert (str(sorted(["cleaned up", "time"] * 3)) + "\n", "") == (done.stdout, done.stderr)
