"""Runs of a service: begun, followed, answered, asleep, gone on with after the end of the process."""

from __future__ import annotations

import json
import signal
import socket
import struct
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.serving_process import LIMIT_S, TOKEN, ServiceProcess, is_event

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}


def is_question(message: dict[str, Any]) -> bool:
    """Whether a message asks the person."""
    return message["type"] == "question"


def numbers(messages: list[tuple[str, dict[str, Any]]]) -> list[int]:
    """The numbers of the entries among messages."""
    return [message["n"] for _, message in messages if "n" in message]


def test_a_run_is_followed_and_answered(service: ServiceProcess) -> None:
    """A run asks its question over the stream, goes on with the answer, and the others hear that it was given."""
    run = service.begin(**START)
    asked = service.follow_until(run, is_question)
    assert "rpc_ready" == asked[0][1]["type"]
    assert "waiting" == service.get(f"api/runs/{run}")["state"]

    answered = service.command(run, "answer", request=asked[-1][1]["id"], answer="yes")
    rest = service.follow_until(run, is_event("call_ended"), since=asked[-1][0])

    assert answered["success"]
    assert list(range(1, rest[-1][1]["n"] + 1)) == numbers(asked) + numbers(rest)
    assert rest[-1][1]["event"]["result"] == {
        "brief": "Tea reached Europe on Dutch ships, and all of it is one plant.",
        "published": True,
    }
    assert service.wait_for_state(run, "idle")["open"] == []


def test_other_readers_hear_that_a_question_was_answered(service: ServiceProcess) -> None:
    """A request that one client has answered is closed for all of them."""
    run = service.begin(**START)
    other = service.follow(run)
    question = next(message for _, message in other if is_question(message))

    service.command(run, "answer", request=question["id"], answer="no")

    closed = next(message for _, message in other if message["type"] == "request_closed")
    assert closed == {"type": "request_closed", "id": question["id"], "reason": "answered"}


def test_a_killed_process_loses_nothing(start_service: Callable[..., ServiceProcess]) -> None:
    """Sessions that wait for an answer go on after SIGKILL, and no model is asked again for what is known."""
    service = start_service()
    runs = [service.begin(**START) for _ in range(3)]
    before = [service.follow_until(run, is_question) for run in runs]

    assert -signal.SIGKILL == service.end(signal.SIGKILL)
    service.start()
    for run, told in zip(runs, before, strict=True):
        service.command(run, "get_state")
        again = service.follow_until(run, is_question, since=told[-1][0])
        assert {"resumed"} == {message["event"]["type"] for _, message in again if "n" in message}
        assert service.command(run, "answer", request=again[-1][1]["id"], answer="yes")["success"]
        rest = service.follow_until(run, is_event("call_ended"), since=again[-1][0])
        whole = service.follow_until(run, is_event("call_ended"))

        assert rest[-1][1]["event"]["ok"] is True
        assert list(range(1, whole[-1][1]["n"] + 1)) == numbers(whole)
        assert 4 == sum(is_event("model_answered")(message) for _, message in whole)


def test_what_cannot_be_begun_leaves_nothing(service: ServiceProcess) -> None:
    """A payload of another type is refused with the sentence of the command line, and no run is left of it."""
    known = {run["id"] for run in service.get("api/runs")["runs"]}

    answer = service.request("POST", "api/runs", {"handler": "Editor.start", "payload": {"topic": 3}})

    assert (400, "invalid_request") == (answer.status_code, answer.json()["code"])
    assert "`Editor.start`" in answer.json()["message"]
    assert known == {run["id"] for run in service.get("api/runs")["runs"]}


def test_a_deleted_run_is_gone(service: ServiceProcess) -> None:
    """One that is at work is not deleted; afterwards neither journal nor files are left."""
    run = service.begin(**START)
    service.follow_until(run, is_question)
    assert 409 == service.request("DELETE", f"api/runs/{run}").status_code

    service.command(run, "abort")
    assert 204 == service.request("DELETE", f"api/runs/{run}").status_code
    assert 404 == service.request("GET", f"api/runs/{run}").status_code
    assert [] == [path for path in (service.folder / ".koi").rglob("*") if run in path.name]


def test_a_session_keeps_its_run(service: ServiceProcess) -> None:
    """Commands that put another run in the place of that of a session are refused."""
    run = service.begin()

    refused = service.command(run, "new_session")

    assert not refused["success"]
    assert "idle" == service.get(f"api/runs/{run}")["state"]


def test_a_socket_follows_and_answers(service: ServiceProcess) -> None:
    """Over a WebSocket messages come down, commands go up, and what is no command is refused without an end."""
    run = service.begin(**START)
    headers = {"Authorization": f"Bearer {service.token}"}
    address = f"{service.url.replace('http', 'ws', 1)}/api/runs/{run}/ws?since=0"

    with connect(address, additional_headers=headers) as client:
        received = iter(lambda: json.loads(client.recv(timeout=LIMIT_S)), None)
        question = next(message for message in received if is_question(message))
        client.send("no JSON")
        refused = next(message for message in received if message["type"] == "response")
        assert "parse_error" == refused["error_code"]
        client.send(json.dumps({"id": 7, "type": "answer", "request": question["id"], "answer": "yes"}))
        rest = list(takewhile(lambda message: not is_event("call_ended")(message), received))

    assert {"type": "response", "command": "answer", "id": 7, "success": True} in rest


def test_clients_that_leave_after_the_handshake_are_no_fault(start_service: Callable[..., ServiceProcess]) -> None:
    """However early they go, with or without a goodbye, nothing is written into the log."""
    service = start_service()
    run = service.begin(**START)
    host, port = service.url.removeprefix("http://").split(":")
    lines = [
        f"GET /api/runs/{run}/ws?since=0 HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", f"Authorization: Bearer {TOKEN}",
    ]  # fmt: skip
    for number in range(12):
        with socket.create_connection((host, int(port))) as client:
            if number % 2:  # the system then resets the connection
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall("\r\n".join([*lines, "", ""]).encode())
            if number % 3 == 0:
                client.recv(10)
    service.wait_for_state(run, "waiting")
    assert service.process is not None
    service.process.send_signal(signal.SIGTERM)

    assert "Traceback" not in service.process.communicate(timeout=LIMIT_S)[1]


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403)]
)
def test_a_socket_needs_the_token_and_an_own_page(
    service: ServiceProcess, headers: dict[str, str], status: int
) -> None:
    """Without the token, or from a page of another host, there is no connection."""
    address = f"{service.url.replace('http', 'ws', 1)}/api/runs/{service.begin()}/ws"

    with pytest.raises(InvalidStatus) as refused, connect(address, additional_headers=headers):
        pass

    assert status == refused.value.response.status_code


def test_examples_are_told(start_service: Callable[..., ServiceProcess]) -> None:
    """A page learns which messages people may begin with."""
    agent = (
        'agent Host : Guide { examples "Where is tea?", "Hello" on chat(args: { message: string }) { return "here" } }'
    )
    service = start_service(host=f"role Guide {{ can advise }}\n{agent}")

    (program,) = service.get("api/program")["programs"]

    assert ["Where is tea?", "Hello"] == program["chat"][0]["examples"] == program["agents"][0]["examples"]


def test_sessions_have_files_of_their_own(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """What a session writes stands in its own folder, unless `koi.toml` says that the program shares the project."""
    handler = 'on chat(args: { message: string }) { await writeFile("said.txt", args.message) }'
    text = f'import "std/files"\nrole Guide {{ can write }}\nagent Host : Guide {{ {handler} }}'
    (tmp_path / "koi.toml").write_text('[serve]\nshared = ["common"]\n')
    service = start_service(common=text, own=text)

    for program in ("own", "common"):
        service.follow_until(service.begin(program=program, message=program), is_event("call_ended"))

    found = {path.read_text(): path.relative_to(tmp_path).parts[:1] for path in tmp_path.rglob("said.txt")}
    assert {"own": (".koi",), "common": ("said.txt",)} == found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_approval_outlives_the_process(start_service: Callable[..., ServiceProcess], number: int) -> None:
    """What waits for leave has done nothing: it is asked for again, and done once somebody allows it."""
    service = start_service()
    run = service.begin(handler="FrontDesk.chat", message="Publish the piece about tea")
    asked = service.follow_until(run, lambda message: message["type"] == "approval_request")[-1][1]

    service.end(number)
    service.start()
    service.command(run, "get_state")
    again = service.follow_until(run, lambda message: message["type"] == "approval_request")[-1][1]
    assert service.command(run, "approve", request=again["id"], decision="yes")["success"]
    told = service.follow_until(run, is_event("call_ended"))

    assert asked["preview"] == again["preview"]
    assert told[-1][1]["event"]["ok"] is True
    assert "Dutch ships" in service.request("GET", f"api/runs/{run}/files/published.md").text
