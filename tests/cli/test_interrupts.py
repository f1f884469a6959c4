"""Ctrl-C and other signals: they end a run in order, and at once the second time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

TOOL = """
    import asyncio
    import time

    def nap():
        time.sleep(3600)

    async def nap_in_thread():
        await asyncio.to_thread(time.sleep, 3600)
    """


def program(code: str) -> str:
    """A program that says that it has begun and then does something."""
    tool = 'import tool from "./tool.py"' if "tool." in code else ""
    agent = f'agent A : Worker {{\n  on go(args: Json) {{\nconsole.log("begun")\n{code}\n  }}\n}}\n'
    return f"{tool}\nrole Worker {{ can execute }}\n{agent}run A.go({{}})\n"


@contextmanager
def started(project: Project, code: str) -> Iterator[subprocess.Popen[str]]:
    """A run that has begun; it is killed where a test fails, which would wait for it otherwise."""
    project.write("tool.py", TOOL)
    project.write("a.koi", program(code))
    words, pipe = forks.koi("run", "a.koi"), subprocess.PIPE
    with subprocess.Popen(
        words,
        cwd=project.folder,
        env=project.environment,
        text=True,
        stdout=pipe,
        stderr=pipe,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        try:
            assert "begun\n" == process.stdout.readline()
            yield process
        except BaseException:
            process.kill()
            raise


SIGNALS = {
    signal.SIGINT: (130, "interrupted; Ctrl-C once more ends it at once"),
    signal.SIGTERM: (143, "ended by SIGTERM"),
    signal.SIGHUP: (129, "ended by SIGHUP"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("code", ["while (true) {}", "await new Promise(() => {})", "tool.nap()"])
def test_a_signal_ends_a_run_in_order(project: Project, number: signal.Signals, code: str) -> None:
    """The first signal ends code that computes, waits or is in Python, and tells how the run goes on."""
    with started(project, code) as process:
        process.send_signal(number)
        _, told = process.communicate(timeout=LIMIT_S)

    assert re.fullmatch(SIGNALS[number][1] + "\n`koi resume [0-9a-f]+` goes on\n", told), told
    assert SIGNALS[number][0] == process.returncode


def test_a_second_interrupt_ends_at_once(project: Project) -> None:
    """Code that cleans up for long is not waited for when Ctrl-C is pressed again; a signal sent twice is one."""
    waits = 'try { await new Promise(() => {}) } finally { console.log("cleaning"); tool.nap() }'
    with started(project, waits) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert "cleaning\n" == process.stdout.readline()
        time.sleep(0.4)  # what comes sooner is taken for the same signal
        process.send_signal(signal.SIGINT)

        assert 130 == process.wait(LIMIT_S)


def test_code_that_computes_while_it_ends_does_not_silence_the_first_interrupt(project: Project) -> None:
    """That a second Ctrl-C ends it at once is told while `finally` keeps everything else waiting."""
    with started(project, "try { [1].forEach(() => { while (true) {} }) } finally { while (true) {} }") as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert SIGNALS[signal.SIGINT][1] + "\n" == process.stderr.readline()
        process.send_signal(signal.SIGINT)

        assert 130 == process.wait(LIMIT_S)


def test_what_is_ignored_stays_ignored(project: Project) -> None:
    """A run started with `nohup`, or in the background of a script, goes on when its terminal leaves."""
    project.write("a.koi", program('setTimeout(() => console.log("ended"), 500)'))
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-m", "koi_lang", "run", "a.koi"]
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert "begun\n" == process.stdout.readline()
        process.send_signal(signal.SIGHUP)

        assert ("ended\n", 0) == (process.stdout.read(), process.wait(LIMIT_S))


def test_threads_do_not_keep_a_run_that_has_failed(project: Project) -> None:
    """Nothing can end a function in a thread, so a run whose time is up, or that was interrupted, leaves it behind."""
    project.write("tool.py", TOOL)
    project.write("a.koi", program("await tool.nap_in_thread()"))

    limited = project.koi("run", "a.koi", "--max-time", "300ms")
    with started(project, "await tool.nap_in_thread()") as interrupted:
        interrupted.send_signal(signal.SIGINT)

        assert (4, 130) == (limited.returncode, interrupted.wait(LIMIT_S))
    assert "the run took longer than its budget of 0.3 s" in limited.stderr


def test_a_conversation_with_code_that_computes_can_be_ended(project: Project) -> None:
    """Ctrl-C ends `koi chat` where lines are read, also while a message is being worked on without a pause."""
    handler = 'on chat(args: { message: string }) { console.log("begun")\nlet n = 0\nwhile (n >= 0) { n++ } }'
    project.write("a.koi", f"role Worker {{ can execute }}\nagent A : Worker {{ {handler} }}\n")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        forks.koi("chat", "a.koi"), cwd=project.folder, env=project.environment, text=True, stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert "begun\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)

        assert 130 == process.wait(LIMIT_S)
