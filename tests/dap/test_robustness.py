"""Bad input of clients and journals, and the end of every process of a session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from koi_lang.dap import adapter
from tests.dap.client import Client, RefusedError, debugging, wait_until
from tests.dap.programs import TEAM, record, write_team
from tests.limits import LIMIT_S
from tests.projects import Project

ENDLESS = """
    role Worker { can execute }
    agent Loop : Worker {
      on start(args: Json) {
        let n = 0
        while (true) {
          n += 1
        }
      }
    }
    run Loop.start({})
    """


def processes_in(session: Path) -> list[int]:
    """The processes that have been started in a folder and are not over."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found += [int(process.name)] if (process / "cwd").resolve() == session else []
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_killed_adapter_leaves_no_process(project: Project, is_stopped: bool) -> None:
    """After `kill -9` of the adapter neither the debuggee nor its run is there, stopped or computing without end."""
    path = project.write("loop.koi", ENDLESS)
    words = [sys.executable, "-m", "koi_lang", "debug", "loop.koi"]
    pipe = subprocess.PIPE

    with subprocess.Popen(words, cwd=project.folder, env=project.environment, stdin=pipe, stdout=pipe) as process:
        client = Client(process)
        client.launch({path: [4] if is_stopped else []})
        if is_stopped:
            assert client.stop() == "breakpoint 4 Loop.start"
        wait_until(lambda: len(processes_in(project.folder)) == 3)
        os.kill(process.pid, signal.SIGKILL)
        assert process.stdin is not None
        process.stdin.close()

    wait_until(lambda: not processes_in(project.folder))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_a_client_that_dies_ends_the_session(project: Project) -> None:
    """The end of stdin, in the middle of a message, ends the adapter and everything that it has started."""
    path = project.write("loop.koi", ENDLESS)

    with debugging(project, "loop.koi") as client:
        client.launch({path: [4]})
        assert client.stop() == "breakpoint 4 Loop.start"
        client.write(b'Content-Length: 500\r\n\r\n{"seq": 9')

    wait_until(lambda: not processes_in(project.folder))


def test_a_run_is_paused_and_ended(project: Project) -> None:
    """Code that computes without end is stopped by a pause, goes on, and is ended by `terminate`."""
    path = project.write("loop.koi", ENDLESS)

    with debugging(project, "loop.koi") as client:
        client.launch({path: [6]})
        assert client.stop() == "breakpoint 6 Loop.start"
        client.set_breakpoints(path)
        client.request("continue", threadId=1)
        with pytest.raises(RefusedError, match="the program is running"):
            client.request("stackTrace", threadId=1)
        assert client.go("pause").startswith("pause ")
        assert client.evaluate("n > 0") == "true"
        client.request("continue", threadId=1)
        client.request("terminate")
        assert client.event("exited")["body"]["exitCode"] == 130


def test_a_breakpoint_moves_to_code_and_says_so(project: Project) -> None:
    """One on a comment moves to the next line that does something; one behind all code, or in another file, is none."""
    path = project.write("loop.koi", "// A comment.\n" + ENDLESS.lstrip("\n"))
    other = project.write("other.koi", TEAM)

    with debugging(project, "loop.koi") as client:
        told = client.launch({path: [1, 99], other: [8]})
        assert [(each["verified"], each["line"], each.get("message")) for each in told] == [
            (True, 5, "moved to the next line that does something"),
            (False, 99, "nothing is done at this line or behind it"),
            (False, 8, "this file is no part of the program"),
        ]
        assert client.stop() == "breakpoint 5 Loop.start"


def test_breakpoints_have_conditions_counts_and_messages(project: Project) -> None:
    """They are expressions of Koi; one that has no value is told, and stops."""
    path = project.write("loop.koi", ENDLESS.replace("while (true)", "while (n < 9)"))

    with debugging(project, "loop.koi") as client:
        client.launch({path: [{"line": 6, "condition": "n % 2 == 1", "hitCondition": "2"}]})
        assert client.stop() == "breakpoint 6 Loop.start"
        assert client.evaluate("n") == "3"
        client.set_breakpoints(
            path, {"line": 6, "logMessage": "n is {n}, {nothing}"}, {"line": 6, "condition": "m > 1"}
        )
        assert client.go() == "breakpoint 6 Loop.start"
        assert client.output("important") == "the condition `m > 1` has no value: there is no `m` here\n"
        assert client.output("console") == "n is 4, {there is no `nothing` here}\n"
        assert client.evaluate("n = 6") == "6"
        assert client.go() == "breakpoint 6 Loop.start"
        assert client.evaluate("n") == "7"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "nothing is named to debug"),
        ({"program": "missing.koi"}, "cannot be read"),
        ({"program": "broken.koi"}, "error"),
        ({"program": "team.koi", "args": [1]}, "`args` is no object"),
        ({"program": "team.koi", "cwd": "nowhere"}, "`cwd` is no folder"),
        ({"program": "team.koi", "env": "X"}, "`env` is no object"),
        ({"run": "0123"}, "there are no journals"),
    ],
)
def test_what_cannot_be_launched_is_told(project: Project, given: dict[str, object], told: str) -> None:
    """The client gets the reason as the answer to `launch`, and the session is over."""
    write_team(project)
    project.write("broken.koi", "agent {")

    with debugging(project) as client:
        client.request("initialize")
        with pytest.raises(RefusedError, match=told):
            client.request("launch", **given)
        assert client.event("terminated")


@pytest.mark.parametrize("data", [b"Content-Length: x\r\n\r\n", b"Content-Length: 3\r\n\r\n[1]", b"\xff" * 20000])
def test_what_is_no_message_ends_the_session(project: Project, data: bytes) -> None:
    """A client that speaks something else is told, and served no more."""
    write_team(project)

    with debugging(project, "team.koi") as client:
        client.write(data)
        assert client.event("output")["body"]["output"].startswith("error: ")


def test_a_session_without_a_run_is_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for where no program runs: not the end of a run, nor what a run may take for its end."""
    monkeypatch.setattr(adapter, "END_S", 2 * LIMIT_S)

    async def begin_and_end() -> bool:
        debuggee = await adapter.DebuggeeProcess.start()
        async with asyncio.timeout(LIMIT_S):
            await debuggee.end()
        return debuggee.ended.is_set()

    assert asyncio.run(begin_and_end())


def test_an_unknown_request_is_refused(project: Project) -> None:
    """A request that nobody knows, or that lacks something, is refused, and the session goes on."""
    write_team(project)

    with debugging(project, "team.koi") as client:
        client.request("initialize")
        with pytest.raises(RefusedError, match="`gotoTargets` is not known here"):
            client.request("gotoTargets")
        client.request("launch", answers="answers.json")
        with pytest.raises(RefusedError, match="the request lacks something"):
            client.request("setBreakpoints")


def cut(path: Path) -> None:
    """Tear the last line of a journal."""
    path.write_bytes(path.read_bytes()[:-20])


def test_a_torn_journal_is_replayed_as_far_as_it_goes(project: Project) -> None:
    """What is missing at its end is told, and everything before can be debugged."""
    path = write_team(project)
    run = record(project)
    cut(project.folder / ".koi" / "runs" / f"{run}.jsonl")

    with debugging(project, run) as client:
        client.launch({path: [16]})
        assert client.stop() == "breakpoint 16 Lead.report"
        assert client.output("important").startswith("note: ")


def test_a_changed_program_is_told(project: Project) -> None:
    """A recorded run of a program that has changed is replayed, and the person knows that it is another one."""
    path = write_team(project)
    run = record(project)
    project.write("team.koi", TEAM.replace("counted.words }", "counted.words + 1 }"))

    with debugging(project, run) as client:
        client.launch({path: [16]})
        assert client.stop() == "breakpoint 16 Lead.report"
        assert "has changed since the run was recorded" in client.output("important")
        assert client.variables()["args"] == "{ words: 6 }"


def test_a_folder_that_is_not_trusted_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its settings allow does not count, which the person hears before the program starts."""
    monkeypatch.delenv("KOI_TRUST_FOLDER")
    project.write("koi.toml", '[shell]\nallow = ["ls"]\n')
    path = project.write("a.koi", "role R { can execute }\nagent A : R { on a(args: Json) {\n1 + 1\n} }\nrun A.a({})\n")

    with debugging(project, "a.koi") as client:
        client.launch({path: [3]})
        assert client.stop() == "breakpoint 3 A.a"
        assert "commands run without a question: `ls`" in client.output("important")


def test_standard_input_may_be_nothing(project: Project) -> None:
    """Where nobody sends anything, as with `</dev/null`, the session ends in order."""
    words = [sys.executable, "-m", "koi_lang", "debug"]
    done = subprocess.run(
        words,
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
    )

    assert (0, b"") == (done.returncode, done.stderr)
    assert b'"event": "terminated"' in done.stdout


WITHOUT_A_PERSON = """
    role R { can execute }
    agent A : R {
      on go() { playbook 'Print "hello".' }
      on act() { console.log((await this.callAction("shell", { command: "echo ran", description: "act" })).stdout) }
    }
    run A.go({})
    run A.act({})
    """


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_program_is_debugged_without_model_and_person(project: Project, is_allowed: bool) -> None:
    """A rehearsal follows playbooks, and rules of the command line allow what would be asked for; `launch` has none."""
    project.write("a.koi", WITHOUT_A_PERSON)
    words = ("--allow", "run:echo *") if is_allowed else ()

    with debugging(project, "a.koi", *words) as client:
        client.launch({}, rehearse=True, allow=["run:echo *"])
        shown = ""
        while "wants to run" not in shown and "ran\n" not in shown:
            shown += client.event("output")["body"]["output"]
        assert is_allowed == ("wants to run" not in shown)
