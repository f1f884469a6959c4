"""A run that works is followed, answered and steered over its socket."""

from __future__ import annotations

import signal
import socket
import stat
from queue import Queue
from typing import Any

import pytest

from koi_lang.service.live.run_socket import FollowerThread
from tests.limits import LIMIT_S
from tests.live.following import (
    at_terminal,
    following,
    journal_numbers,
    let_go,
    program,
    question,
    socket_of,
    sockets,
    started,
    wait_for,
)
from tests.projects import Project

ASKS = program(f'console.log("one"); const given = {question("Name?")}; console.log(`hello ${{given.answer}}`)')
WORKS = "run a.koi --allow shell".split()


def test_all_that_happens_is_told_once(project: Project) -> None:
    """First what the journal holds, then what happens, each entry with its number; the end of the run ends it."""
    project.write("a.koi", program(f'console.log("one"); {wait_for(project)}; console.log("two")'))
    with started(project, *WORKS), following(project) as client:
        client.until("printed")
        let_go(project)
        client.to_end()

    assert client.ready is not None
    assert ("rpc_ready", "a.koi", ["A"]) == tuple(client.ready[name] for name in ("type", "program", "agents"))
    assert journal_numbers(project) == client.entries()
    assert [] == sockets(project)


def test_a_client_goes_on_where_it_was(project: Project) -> None:
    """What lies before the entry that it has is not told again."""
    project.write("a.koi", program(f'console.log("one"); {wait_for(project)}; console.log("two")'))
    with started(project, *WORKS), following(project) as first:
        first.until("printed")
        with following(project, since=first.entries()[-1]) as second:
            let_go(project)
            second.to_end()
            first.to_end()

    assert journal_numbers(project) == first.entries()
    assert second.entries() == first.entries()[-len(second.entries()) :]
    assert second.entries()[0] > 3


def test_the_socket_is_for_this_user_alone(project: Project) -> None:
    """As is its folder."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi"):
        path = socket_of(project)

        assert [0o600, 0o700] == [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]


def test_a_client_answers_what_the_terminal_asks(project: Project) -> None:
    """The prompt ends with a line that says so, the run goes on, and other clients hear that it is answered."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as terminal, following(project) as first, following(project) as second:
        terminal.expect_exact("Name?")
        asked = [client.until("question")["id"] for client in (first, second)]
        assert first.ask("answer", request=asked[0], answer="Zoe")["success"]

        assert "answered" == second.until("request_closed")["reason"]
        terminal.expect_exact("» answered elsewhere: Zoe\r\nhello Zoe\r\n")


def test_who_is_late_is_told(project: Project) -> None:
    """An answer to what somebody else has answered is refused."""
    project.write("a.koi", program(f"{question('Name?')}; {wait_for(project)}"))
    with at_terminal(project, *WORKS) as terminal, following(project) as first, following(project) as second:
        terminal.expect_exact("Name?")
        request = second.until("question")["id"]
        first.ask("answer", request=request, answer="Zoe")
        second.until("answered")

        assert "unknown_request" == second.ask("answer", request=request, answer="late")["error_code"]


def test_the_terminal_answers_what_clients_are_asked(project: Project) -> None:
    """They hear that it is closed."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as terminal, following(project) as client:
        client.until("question")
        terminal.expect_exact("Name?")
        terminal.sendline("Ann")

        assert "answered" == client.until("request_closed")["reason"]
        terminal.expect_exact("hello Ann")
        assert "elsewhere" not in terminal.before


def test_a_question_that_is_open_is_told_to_who_comes_later(project: Project) -> None:
    """With what is known of it, and `get_state` lists it."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as terminal:
        terminal.expect_exact("Name?")
        with following(project) as client:
            request = client.until("question")
            state = client.ask("get_state")["data"]

    assert ("Name?", [request]) == (request["question"], state["requests"])
    assert "waiting" in [message["state"] for message in client.seen if message["type"] == "state"]


def test_a_client_allows_what_nobody_at_a_terminal_could(project: Project) -> None:
    """A nightly run waits for whoever follows it; without one nothing is allowed, at once."""
    shell = 'await callAction("shell", { command: "echo done > done.txt", description: "to test" })'
    project.write("a.koi", program(f"{wait_for(project)}; {shell}"))
    allow = ("run", "a.koi", "--allow", "shell:cat *")
    with started(project, *allow) as run, following(project) as client:
        client.until("run_started")
        client.ask("get_state")
        let_go(project)
        request = client.until("approval_request")
        client.ask("approve", request=request["id"], decision="yes")
        assert 0 == run.wait()

    assert (project.folder / "done.txt").exists()
    with started(project, *allow) as run:
        let_go(project)
        assert 77 == run.wait()


def test_who_only_looks_keeps_nothing_open(project: Project) -> None:
    """A client that does not answer is not waited for."""
    project.write("a.koi", program(f"{wait_for(project)}; {question('Name?')}"))
    with started(project, *WORKS) as run, following(project, answers=False) as client:
        client.ask("get_state")
        let_go(project)

        assert 75 == run.wait()


def test_without_a_journal_there_is_no_socket(project: Project) -> None:
    """And nothing is said of that."""
    project.write("a.koi", program(f'console.log("one"); {wait_for(project)}'))
    with started(project, *WORKS, "--no-record") as run:
        assert run.stdout is not None
        assert "one\n" == run.stdout.readline()
        assert [] == sockets(project)
        let_go(project)
        assert (0, "") == (run.wait(), run.communicate()[1])


@pytest.mark.parametrize("is_late", [False, True])
def test_secrets_stay_out_of_what_followers_are_told(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Of questions that are asked while they follow, and of those that were open before."""
    monkeypatch.setenv("SERVICE_API_KEY", "sk-0123456789abcdef0123")
    project.write("a.koi", program(f"{wait_for(project)}; {question('Is it sk-0123456789abcdef0123?')}"))
    with at_terminal(project, *WORKS) as terminal:
        path = socket_of(project)
        if is_late:
            let_go(project)
            terminal.expect_exact("Is it sk-")
        with following(project) as client:
            if not is_late:
                client.until("handler_started")
                let_go(project)
            told = client.until("question")["question"]

    assert "Is it [redacted]?" == told
    assert path.stem == (client.ready or {})["run"]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system masks no signals")
def test_signals_are_left_to_the_main_thread() -> None:
    """One that the thread at the socket took would not end what the main thread waits in, such as a Python function."""
    masks = Queue[set[Any]]()
    with socket.socket(socket.AF_UNIX) as listening:
        thread = FollowerThread(listening, lambda *_: masks.put({*signal.pthread_sigmask(signal.SIG_BLOCK, ())}))

        assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= masks.get(timeout=LIMIT_S)
        assert thread.end()
