"""`koi rpc` while a program computes and waits for nothing: it hears the client and signals all the same."""

from __future__ import annotations

import signal
import time

import pytest

from tests.projects import Project
from tests.rpc.processes import Process, rpc

BUSY = {
    "a loop": "while (true) {}",
    "a loop that catches": 'while (true) { try { throw new Error("no") } catch (e) { continue } }',
    "a loop of values": "while (true) { await null }",
    "a callback": "[1].forEach(() => { while (true) {} })",
}
TOOL = """
    def begin():
        open("begun", "w").close()
    """
# What computes has five seconds to end by itself, which tests would spend computing.
IMPATIENT = """
    from koi_lang.rpc import control, stdio

    control.GRACE_S = stdio.GRACE_S = 0.2
    """
PROGRAM = """
    import tool from "./tool.py"
    role R { can execute }
    agent Main : R {
      on busy(args: Json) { tool.begin(); BODY }
      on slow(args: Json) { const end = Date.now() + 700; while (Date.now() < end) {}; return "done" }
      on say(args: Json) { return args.text }
    }
    """


def written(project: Project, body: str = "while (true) {}", more: str = "") -> Project:
    """The program, with something that computes, and more code of Python beside it."""
    project.write("a.koi", PROGRAM.replace("BODY", body))
    project.write("tool.py", more + TOOL)
    return project


def begin(koi: Process, project: Project) -> None:
    """Have the program compute."""
    koi.send("run_playbook", name="Main.busy")
    while not (project.folder / "begun").exists():
        assert koi.process.poll() is None
        time.sleep(0.01)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", list(BUSY))
def test_abort_ends_code_that_computes(project: Project, way: str) -> None:
    """The call ends as any other that is aborted, and the session goes on."""
    with rpc(written(project, BUSY[way]), "a.koi") as koi:
        begin(koi, project)
        koi.send("abort")
        while (response := koi.until("response"))["command"] != "abort":
            pass

        assert {"aborted": True, "queued": []} == response["data"]
        assert True is next(m["event"]["aborted"] for m in koi.seen if m.get("event", {}).get("type") == "call_ended")
        koi.ask("run_playbook", name="Main.say", args={"text": "still here"})
        assert "still here" == koi.until("call_ended")["result"]
        koi.close_input()
        assert 0 == koi.ended()


def test_a_closed_input_ends_code_that_computes(project: Project) -> None:
    """The call has some time; then everything ends, and nothing of it is left running."""
    with rpc(written(project, more=IMPATIENT), "a.koi") as koi:
        begin(koi, project)
        koi.close_input()

        assert koi.until("call_ended")["aborted"]
        assert 0 == koi.ended()


def test_quit_ends_code_that_computes(project: Project) -> None:
    """Its response says that something was cut off."""
    with rpc(written(project, more=IMPATIENT), "a.koi") as koi:
        begin(koi, project)
        koi.send("quit")

        assert koi.until("call_ended")["aborted"]
        assert 0 == koi.ended()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
@pytest.mark.parametrize("body", ["while (true) {}", "await new Promise(() => {})"])
def test_signals_end_a_session(project: Project, number: signal.Signals, code: int, body: str) -> None:
    """Whether its code computes or waits; the journal tells that it was interrupted, so that it can go on."""
    with rpc(written(project, body), "a.koi") as koi:
        begin(koi, project)
        koi.process.send_signal(number)

        assert code == koi.ended()
        assert "Traceback" not in koi.errors()
    assert "interrupted" in project.koi("runs", "list").stdout


def test_a_call_that_computes_for_a_while_comes_to_its_end(project: Project) -> None:
    """Nobody ends it unasked, and what the client has sent meanwhile is answered in order."""
    with rpc(written(project), "a.koi") as koi:
        koi.ask("run_playbook", name="Main.slow")
        for number in range(3):
            koi.send("get_state", id=number)
        koi.close_input()

        assert 0 == koi.ended()
        ends = [event for m in koi.seen if (event := m.get("event", {})).get("type") == "call_ended"]
        assert ["done"] == [event["result"] for event in ends]
        assert [0, 1, 2] == [m["id"] for m in koi.seen if m["type"] == "response" and "id" in m]
