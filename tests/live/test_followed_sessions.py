"""Sessions of `koi chat`, `koi rpc` and `koi serve http`, followed by other processes."""

from __future__ import annotations

import os

from tests.dap.client import wait_until
from tests.live.following import ROLE, Follower, at_terminal, following, question, socket_of, sockets
from tests.message_cases import CASES
from tests.projects import Project
from tests.rpc.processes import rpc
from tests.service.serving_process import ServiceProcess, is_event

CHAT = (
    f"{ROLE}agent A : W {{ on chat(text: string) {{ const given = {question('Name?')};"
    " console.log(`${text} ${given.answer}`) } }"
)


def test_a_question_of_rpc_is_answered_by_a_follower(project: Project) -> None:
    """Under one id; the client hears that it is closed, and has no answer to give any more."""
    project.write("a.koi", CHAT)
    with rpc(project, "a.koi") as client, following(project) as follower:
        client.send("prompt", message="hello")
        request = client.until("question")["id"]
        assert request == follower.until("question")["id"]
        assert follower.ask("answer", request=request, answer="Zoe")["success"]

        assert {"type": "request_closed", "id": request, "reason": "answered"} == client.until("request_closed")
        assert "unknown_request" == client.ask("answer", request=request, answer="late")["error_code"]
        assert client.seen[-1]["type"] == "response"


def test_a_follower_hears_what_the_client_answered(project: Project) -> None:
    """And gives a session its next message when it waits for one, with the response before what that causes."""
    project.write("a.koi", CHAT)
    with rpc(project, "a.koi") as client, following(project) as follower:
        client.send("prompt", message="hello")
        request = client.until("question")["id"]
        client.ask("answer", request=request, answer="Ann")
        assert "answered" == follower.until("request_closed")["reason"]
        follower.until("call_ended")

        assert {"call": "call-2", "name": "A.chat"} == follower.ask("prompt", message="again")["data"]
        assert "call-2" == follower.until("call_started")["call"]
        assert "agent_busy" == follower.ask("prompt", message="more")["error_code"]
        assert follower.ask("abort")["data"]["aborted"]
        assert follower.until("call_ended")["aborted"]
        client.close_input()
        follower.to_end()


def test_messages_over_http_go_where_all_messages_go(project: Project) -> None:
    """To the same handler, with the same payload, or refused with the same words, as by any other surface."""
    names = [f"case{number}" for number, _ in enumerate(CASES)]
    for name, case in zip(names, CASES, strict=True):
        project.write(f"{name}.koi", case.source)
    service = ServiceProcess(project.folder, tuple(f"{name}.koi" for name in names))
    service.start()
    try:
        for name, case in zip(names, CASES, strict=True):
            run = service.begin(program=name)
            response = service.command(run, "prompt", message=case.text, name=case.name)
            assert case.refused == response.get("error", "")
            if case.call is not None:
                started = service.follow_until(run, is_event("call_started"))[-1][1]["event"]
                assert case.call == (started["name"].partition(".")[0], started["args"])
    finally:
        service.end()


def test_a_new_session_has_a_socket_of_its_own(project: Project) -> None:
    """That of the run before is gone, and its followers hear the end."""
    project.write("a.koi", CHAT)
    with rpc(project, "a.koi") as client:
        first = socket_of(project)
        follower = Follower(first)
        follower.follow()
        client.ask("new_session")
        follower.to_end()

        assert [first] != sockets(project)
        assert socket_of(project) != first
        follower.close()


def test_a_conversation_is_answered_elsewhere(project: Project) -> None:
    """The person at the terminal is told, and what they type next is a message again."""
    project.write("a.koi", CHAT)
    with at_terminal(project, "chat", "a.koi", "--plain") as terminal, following(project) as follower:
        terminal.expect_exact("Ctrl-D ends")
        terminal.sendline("hello")
        terminal.expect_exact("Name?")
        follower.ask("answer", request=follower.until("question")["id"], answer="Zoe")
        terminal.expect_exact("answered elsewhere")
        terminal.expect_exact("hello Zoe")
        terminal.sendline("again")
        assert ["hello", "again"] == [follower.seen_call(number)["args"] for number in (1, 2)]


def test_a_session_of_a_service_is_answered_at_its_socket(project: Project) -> None:
    """And the readers of its stream hear of it."""
    project.write("a.koi", CHAT)
    service = ServiceProcess(project.folder, ("a.koi",))
    service.start()
    try:
        run = service.begin(message="hello")
        reading = service.follow(run)
        asked = next(message for _, message in reading if message["type"] == "question")
        with following(project) as follower:
            follower.ask("answer", request=asked["id"], answer="Zoe")
        rest = []
        for _, message in reading:
            rest.append(message)
            if is_event("call_ended")(message):
                break
    finally:
        service.end()

    assert "answered" in [message.get("reason") for message in rest]
    assert [] == sockets(project)


def test_a_session_without_followers_takes_two_files(project: Project) -> None:
    """Its journal and its socket; what followers took is free again when they have gone."""
    project.write("a.koi", f"{ROLE}agent A : W {{ on chat(text: string) {{ console.log(text) }} }}")
    service = ServiceProcess(project.folder, ("a.koi",), is_forked=False)
    service.start()
    try:
        service.wait_for_state(service.begin(message="hello"), "idle")
        wait_until(lambda: len(sockets(project)) == 1)
        before = count_files(service)
        for _ in range(2):
            with following(project) as follower:
                assert follower.ask("get_state")["success"]
                assert count_files(service) > before
            wait_until(lambda: count_files(service) <= before)
        for _ in range(10):
            service.wait_for_state(service.begin(message="hello"), "idle")
        wait_until(lambda: count_files(service) <= before + 20)
    finally:
        service.end()


def count_files(service: ServiceProcess) -> int:
    """How many files a service has open."""
    assert service.process is not None
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))
