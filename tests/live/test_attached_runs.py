"""Runs of other processes in a service: followed, answered and steered by whoever may see all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.live.following import at_terminal, journal_numbers, program, question, socket_of
from tests.projects import Project
from tests.service.serving_process import ServiceProcess, is_event

ASKS = program(f'console.log("one"); const given = {question("Name?")}; console.log(`hello ${{given.answer}}`)')


@pytest.fixture
def service(project: Project) -> Any:
    """A service in the folder of the other process, of another program."""
    project.write("a.koi", ASKS)
    project.write("served.koi", program('console.log("served")'))
    process = ServiceProcess(project.folder, ("served.koi",))
    process.start()
    yield process
    process.end()


def is_question(message: dict[str, Any]) -> bool:
    """Whether a message asks the person."""
    return message["type"] == "question"


def test_a_run_of_a_terminal_is_answered_in_a_browser(project: Project, service: ServiceProcess) -> None:
    """Its stream is that of any other run: the past, what is open, what happens, each entry once."""
    with at_terminal(project, "run", "a.koi") as terminal:
        terminal.expect_exact("Name?")
        run = socket_of(project).stem
        (listed,) = service.get("api/runs")["runs"]
        asked = service.follow_until(run, is_question)
        given = {"request": asked[-1][1]["id"], "answer": "Zoe"}
        answered = service.request("POST", f"api/runs/{run}/answer", given)
        terminal.expect_exact("» answered elsewhere: Zoe\r\nhello Zoe")
        whole = service.follow_until(run, is_event("run_ended"))

    assert 200 == answered.status_code
    assert (run, "a", False, "working") == tuple(listed[name] for name in ("id", "program", "hosted", "state"))
    assert ("rpc_ready", "working") == (asked[0][1]["type"], asked[0][1]["state"])
    assert journal_numbers(project) == [message["n"] for _, message in whole if "n" in message]


def test_the_stream_lasts_to_the_end_of_the_run(project: Project, service: ServiceProcess) -> None:
    """What happens while somebody reads is told while it happens; a question that was answered there is closed."""
    with at_terminal(project, "run", "a.koi") as terminal:
        terminal.expect_exact("Name?")
        reading = service.follow(socket_of(project).stem)
        seen = [next(message for _, message in reading if is_question(message))]
        terminal.sendline("Ann")
        for _, message in reading:
            seen.append(message)
            if message == {"type": "state", "state": "ok"}:
                break

    assert "answered" in [message.get("reason") for message in seen]
    assert "hello Ann" in [message["event"].get("message") for message in seen if "n" in message]


def test_a_run_that_is_over_is_read_and_not_commanded(project: Project, service: ServiceProcess) -> None:
    """Commands are refused with what to do; ids lead nowhere else."""
    project.write("b.koi", program('console.log("one")'))
    project.koi("run", "b.koi")
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")

    whole = service.follow_until(journal.stem, is_event("run_ended"))
    told = service.get(f"api/runs/{journal.stem}")
    entries = service.get(f"api/runs/{journal.stem}/entries")["entries"]
    refused = service.command(journal.stem, "pause")

    assert journal_numbers(project) == [message["n"] for _, message in whole if "n" in message]
    assert (("ok", []), journal_numbers(project)) == ((told["state"], told["open"]), [each["n"] for each in entries])
    assert ("session_over", "no process works on this run") == (refused["error_code"], refused["error"])
    for run in ("..%2Fruns%2F" + journal.stem, "nothing", "%2Fetc%2Fpasswd"):
        assert 404 == service.request("GET", f"api/runs/{run}/events").status_code
