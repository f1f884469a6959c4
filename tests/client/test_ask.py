"""`koi ask` as a process: output, result, exit codes, questions at a terminal, and Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.screens import Shown
from tests.client.stand_in import Reply, StandIn, event, refused, stream, told
from tests.client.test_calls import BEGUN, ENDED, READY, begin
from tests.projects import Project

PRINTED = event("printed", 2, message="Tides follow\nthe moon.")
QUESTION = {"type": "question", "id": "q1", "question": "Who signs?", "options": ["Ann", "Bob"], "timeout_s": 300.0}
APPROVAL = {
    "type": "approval_request", "id": "q2", "agent": "Ada", "what": "run `ls`", "detail": "to look", "timeout_s": 300.0,
}  # fmt: skip
DONE = told({"type": "response", "success": True})


@pytest.fixture
def shown(tmp_path: Path, service: StandIn) -> Any:
    """Begins `koi ask` in a terminal."""
    terminals: list[Shown] = []

    def show(*words: str) -> Shown:
        terminal = Shown(tmp_path, ["ask", service.url, "Ada.go", *words], 100, 24, KOI_SERVE_TOKEN="secret")
        terminals.append(terminal)
        return terminal

    yield show
    for terminal in terminals:
        terminal.child.close(force=True)


def test_output_and_result(service: StandIn, project: Project) -> None:
    """Standard output has what the program prints and what the handler gives, standard error what else there is."""
    begin(service, stream(("0.0", READY), ("2", PRINTED), ("3.1", {"type": "log", "text": "note"}), ("9", ENDED)))
    (project.folder / "token").write_text("secret\n")
    done = project.koi("ask", service.url, "Ada.go", '{"n": 1}', "--arg", "name=Bo", "--token-file", "token")

    assert (0, 'Tides follow\nthe moon.\n{\n  "words": 9\n}\n', "note\n") == (done.returncode, done.stdout, done.stderr)
    assert {"handler": "Ada.go", "payload": {"n": 1, "name": "Bo"}} == service.asked[0].body
    assert "Bearer secret" == service.asked[0].headers["authorization"]


def test_a_run_that_was_left(service: StandIn, project: Project) -> None:
    """By its id it is watched again from its beginning, and its result is given."""
    started = event("call_started", 1, call="call-1", name="Ada.go", args={})
    service.reply("/api/runs/r1/events", stream(("0.0", READY), ("1", started), ("2", PRINTED), ("9", ENDED)))
    done = project.koi("ask", service.url, "--run", "r1")
    nothing = project.koi("ask", service.url)

    assert (0, 'Tides follow\nthe moon.\n{\n  "words": 9\n}\n') == (done.returncode, done.stdout)
    assert (2, "error: there is nothing to ask for\n") == (nothing.returncode, nothing.stderr.split("  =")[0])


def test_a_result_for_programs(service: StandIn, project: Project) -> None:
    """With `--json` standard output is the result as JSON on one line, and nothing else."""
    begin(service, stream(("0.0", READY), ("2", PRINTED), ("9", ENDED)))
    done = project.koi("ask", service.url, "Ada.go", "--json")

    assert ({"words": 9}, "Tides follow\nthe moon.\n") == (json.loads(done.stdout), done.stderr)
    assert {"handler": "Ada.go", "payload": {}} == service.asked[0].body


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("reply", "words", "code", "message"),
    [
        (BEGUN, (), 1, "error: the city is unknown\n  = help: Name another.\n"),
        (refused(401, "no_token", "a bearer token is needed", "Send one."), (), 2, "error: a bearer token is needed\n"),
        (refused(404, "unknown_handler", "there is no `Ada.go`"), (), 2, "error: there is no `Ada.go`\n"),
        (refused(429, "over_limit", "the day's money is spent"), (), 1, "error: the day's money is spent\n"),
        (Reply(200, b"<html>"), (), 1, "is no service of Koi: its answer is no JSON\n"),
        (BEGUN, ("{nothing",), 2, "error: the payload is no JSON\n"),
        (BEGUN, ("[1]", "--arg", "a=1"), 2, "error: `--arg` sets fields, and the payload has none\n"),
        (BEGUN, ("--run", "r1"), 2, "error: both a handler and a run are given\n"),
        (BEGUN, ("--token-file", "none"), 2, "error: `none` cannot be read: no such file or directory\n"),
        (BEGUN, ("--token-file", "empty"), 2, "error: `empty` holds no token\n"),
    ],
)
def test_what_goes_wrong(
    service: StandIn, project: Project, reply: Reply, words: tuple[str, ...], code: int, message: str
) -> None:
    """Each failure is one message with the exit code of `koi run`, and no traceback."""
    failed = event(
        "call_ended", 9, call="call-1", name="Ada.go", ok=False, error="the city is unknown", help="Name another."
    )
    begin(service, stream(("0.0", READY), ("9", failed)))
    service.reply("/api/runs", reply)
    project.write("empty", "\n")
    done = project.koi("ask", service.url, "Ada.go", *words)

    assert (code, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_without_anybody_to_ask(service: StandIn, project: Project) -> None:
    """Where nobody is at a terminal nothing is allowed; others may answer, which is said."""
    begin(service, stream(("0.0", READY), ("0.1", APPROVAL), ("9", ENDED)))
    done = project.koi("ask", service.url, "Ada.go", "--json")

    assert [] == service.commands
    assert "nobody can be asked for permission to run `ls` here; it can be answered in the pages of" in done.stderr
    assert "within 5 minutes" in done.stderr


def test_questions_at_a_terminal(service: StandIn, shown: Any) -> None:
    """Questions and permissions are asked one after the other, and their answers sent."""
    begin(service, stream(("0.0", READY), ("0.1", QUESTION), ("0.2", APPROVAL), holds=True), stream(("9", ENDED)))
    service.reply("/api/command", DONE)
    terminal = shown()
    assert "  2. Bob\nWho signs?" in terminal.until("Who signs?")
    terminal.child.sendline("2")
    assert "to look" in terminal.until("Allow? [y]es, [a]lways, [N]o")
    terminal.child.sendline("y")

    assert '"words": 9' in terminal.end()
    answers = [{"request": "q1", "answer": "Bob"}, {"request": "q2", "decision": "yes"}]
    assert answers == [{k: v for k, v in each.items() if k not in ("run", "type")} for each in service.commands]


def test_a_question_that_others_answer(service: StandIn, shown: Any) -> None:
    """What somebody else has answered is not asked any more."""
    closed = {"type": "request_closed", "id": "q1", "reason": "answered"}
    begin(service, stream(("0.0", READY), ("0.1", QUESTION)), stream(("0.2", closed), ("9", ENDED)))
    text = shown().end()

    assert "(answered elsewhere)" in text
    assert '"words": 9' in text


@pytest.mark.parametrize(
    ("answer", "path", "code"), [("1", "/api/runs/r1/cancel", 1), ("2", None, 130), ("\x03", None, 130)]
)
def test_an_interrupt_asks_what_it_means(
    service: StandIn, shown: Any, answer: str, path: str | None, code: int
) -> None:
    """Ctrl-C can cancel the run or leave it; once more means to leave."""
    cancelled = event("call_ended", 9, call="call-1", name="Ada.go", ok=False, aborted=True)
    begin(service, stream(("0.0", READY), ("2", PRINTED), holds=True), stream(("9", cancelled)))
    service.reply("/api/runs/r1/cancel", told({}))
    terminal = shown()
    terminal.until("the moon.")
    terminal.child.sendintr()
    terminal.until("what is to be done?")
    terminal.child.send(answer if answer == "\x03" else f"{answer}\n")
    text = terminal.end()

    assert code == terminal.child.exitstatus, text
    assert ("`Ada.go` was cancelled" if path else "--run r1` goes on with it") in text
    assert (path in [asked.path for asked in service.asked]) is (path is not None)


def test_an_interrupt_and_going_on(service: StandIn, shown: Any) -> None:
    """Who goes on watching is asked again what was open, and sees the end."""
    begin(service, stream(("0.0", READY), ("0.1", QUESTION), holds=True), stream(("9", ENDED)))
    service.reply("/api/command", DONE)
    terminal = shown()
    terminal.until("Who signs?")
    terminal.child.sendintr()
    terminal.until("what is to be done?")
    terminal.child.sendline("3")
    terminal.until_gone("what is to be done? \n")
    terminal.child.sendline("Ann")

    assert '"words": 9' in terminal.end()
    assert ["Ann"] == [command["answer"] for command in service.commands]


def test_what_is_typed_steers_the_run(service: StandIn, shown: Any) -> None:
    """A line that answers nothing is said to the playbook that is at work."""
    begin(service, stream(("0.0", READY), ("2", PRINTED), holds=True), stream(("9", ENDED)))
    service.reply("/api/command", DONE)
    terminal = shown("--plain")
    terminal.until("the moon.")
    terminal.child.sendline("in fewer words")

    assert "» said: in fewer words" in terminal.end()
    assert [{"run": "r1", "type": "steer", "message": "in fewer words"}] == service.commands


def test_a_token_without_encryption(project: Project) -> None:
    """That a token can be read on its way is said before it is sent."""
    done = project.koi("ask", "http://no.invalid", "Ada.go", KOI_SERVE_TOKEN="secret")

    assert "warning: the token is sent to `no.invalid` without encryption" in done.stderr
    assert "secret" not in done.stderr
