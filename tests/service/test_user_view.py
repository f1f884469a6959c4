"""What users who are no admins are shown: two users and an admin ask every route for texts of the operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from koi_lang.events import EVENTS
from koi_lang.rpc import dispatcher
from koi_lang.rpc.commands import all_commands
from koi_lang.runtime.journal.history import RESUMED
from koi_lang.service.user_view import COMMANDS, FIELDS
from koi_lang.settings.service import GRANTED_COMMANDS
from koi_lang.web.dev_routes import DEV_ROUTES
from koi_lang.web.operations import API, OPERATIONS
from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess, is_event
from tests.service.user_tokens import SETTINGS, TOKENS, as_user
from tests.serving.conftest import INITIALIZE

assert dispatcher
# Texts of the operator: in a playbook, a prompt, a line of code, an instruction to a model, an answer of a model.
OPERATOR = ("playbook-marker", "prompt-marker", "source-marker", "instruction-marker", "answer-marker")
# What ada has said, which bob may not learn.
ADA = "words-of-ada"
PROGRAM = '''
role Worker { can think, can execute, can delegate, can execute:shell }
prompt House = "House rule prompt-marker."
agent Main : Worker {
  expose mcp
  expose a2a
  on chat(args: { message: string }) {
    playbook """Answer with the rule playbook-marker: {{args.message}}""" + House
  }
  on fail(args: Json) { throw new Error(["torn", "source-marker"][0]) }
  on plain(args: Json) { playbook "Follow the playbook-marker." }
  on outline(): { title: string, parts: string[] } { answer "Outline it by the playbook-marker." }
}
'''
ANSWERS = {
    "Answer with the rule": [
        {"batch": [
            {"intent": "print", "message": "Good day."},
            {"id": "f", "intent": "format", "data": "a", "instruction": "instruction-marker"},
            {"id": "q", "intent": "prompt_user", "question": "Which?", "options": ["red", "green"]},
        ], "thought": "answer-marker"},
        {"batch": [
            {"id": "s", "intent": "shell", "command": "echo done", "description": "to see"},
            {"intent": "return", "data": "over"},
        ]},
    ],
    "instruction-marker": ["answer-marker"],
    "Outline it": [{"title": "All about tea", "parts": ["leaves", "water", "cups"]}],
}  # fmt: skip
# Bodies of requests, by the names of operations; the others have none.
BODIES: dict[str, dict[str, Any]] = {
    "login": {"token": TOKENS["bob"]},
    "startRun": {"handler": "Main.chat", "payload": {"message": "hi"}},
    "steerRun": {"message": "hi"},
    "approveRun": {"request": "request-1", "decision": "yes"},
    "answerRun": {"request": "request-1", "answer": "red"},
    "branchRun": {"at": 1},
    "command": {"type": "get_state"},
    "putFile": {"a": 1},
}
# What answers nothing about a run, or by a stream, which is walked by itself.
UNWALKED = ("events", "deleteFile", "deleteRun")
# Fields of commands that need some.
FIELDS_OF_COMMANDS: dict[str, dict[str, Any]] = {
    "prompt": {"message": "hi"},
    "run_playbook": {"name": "Main.fail", "args": {}},
    "branch": {"entry": 1},
    "resume_session": {"session": "ada"},
    "extension_command": {"name": "x"},
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with users, of a program full of markers."""
    folder = tmp_path_factory.mktemp("view")
    (folder / "koi.toml").write_text(SETTINGS)
    (folder / "main.koi").write_text(PROGRAM)
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    service = ServiceProcess(folder, ("main.koi", "--answers", "answers.json"))
    service.start()
    yield service
    service.end()


@pytest.fixture(scope="module")
def run(desk: ServiceProcess) -> str:
    """A run of ada in which one call has ended, one has failed, and one waits for an approval."""
    ada = as_user(desk, "ada")
    run = ada.begin(handler="Main.chat", payload={"message": ADA})
    (question,) = ada.wait_for_state(run, "waiting")["open"]
    ada.command(run, "answer", request=question["id"], answer="red")
    until_open(ada, run, question["id"])
    return run


def until_open(user: ServiceProcess, run: str, other: str) -> None:
    """Follow a run until something else is open, and allow it; then have a handler fail."""
    *_, (_, asked) = user.follow_until(run, lambda told: told["type"] == "approval_request" and told["id"] != other)
    assert user.command(run, "approve", request=asked["id"], decision="yes")["success"]
    user.wait_for_state(run, "idle")
    assert user.command(run, "run_playbook", name="Main.fail", args={})["success"]
    user.wait_for_state(run, "failed")


def requests_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """Every operation of the API and every route of the page for developers with what it answers."""
    for each in OPERATIONS:
        if each.name not in UNWALKED:
            path = f"{API}{each.path}".format(id=run, path="a.txt").lstrip("/")
            own = {"run": run} if each.name == "command" else {}
            body = BODIES[each.name] | own if each.name in BODIES else None
            yield each.name, user.request(each.method, path, body).text
    for route in DEV_ROUTES:
        for method in route.methods or ():
            path = route.path.format(id=run, name="main").lstrip("/")
            yield route.path, user.request(method, f"{path}?with={run}&at=1", {} if method == "POST" else None).text


def commands_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """Every command with its response."""
    for command in all_commands():
        yield command.name, json.dumps(user.command(run, command.name, **FIELDS_OF_COMMANDS.get(command.name, {})))
        if command.name in ("prompt", "run_playbook", "run") and user.request("GET", f"api/runs/{run}").is_success:
            user.wait_for_state(run, "idle", "failed", "waiting")
            user.command(run, "abort")
            user.wait_for_state(run, "idle", "failed")


def streams_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """What the streams tell of a run from its beginning on."""
    headers = {"Authorization": f"Bearer {user.token}"}
    if user.request("GET", f"api/runs/{run}").status_code == 200:
        told = user.follow_until(run, lambda message: is_event("call_ended")(message) and not message["event"]["ok"])
        yield "events", json.dumps(told)
    with connect(f"{user.url.replace('http', 'ws', 1)}/api/runs/{run}/ws", additional_headers=headers) as socket:
        said = ""
        with suppress(ConnectionClosed):  # the run is of another user
            while True:
                message = socket.recv(LIMIT_S)
                said += str(message)
                if '"call_ended"' in str(message) and '"ok":false' in str(message).replace(" ", ""):
                    break
        yield "ws", said


def agui_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """The events of AG-UI for a message."""
    messages = [{"id": "m1", "role": "user", "content": "hi"}]
    body = {"threadId": f"t-{user.token}", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}}
    headers = {"Authorization": f"Bearer {user.token}"}
    more = {"forwardedProps": {"handler": "Main.chat"}}
    yield "agui", httpx2.post(f"{user.url}/agui", json=body | more, headers=headers, timeout=LIMIT_S).text


def mcp_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """What `/mcp` lists but for prompts, which a program offers there, and its answers to a call and for a source."""
    headers = {"Accept": "application/json, text/event-stream"}
    started = user.request("POST", "mcp", rpc("initialize", INITIALIZE), **headers)
    headers |= {"Mcp-Session-Id": started.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
    for method in ("tools/list", "resources/list", "resources/templates/list"):
        yield method, user.request("POST", "mcp", rpc(method), **headers).text
    failing = {"name": "fail", "arguments": {}}
    yield "tools/call", user.request("POST", "mcp", rpc("tools/call", failing), **headers).text
    resource = {"uri": "koi://main.koi"}
    yield "resources/read", user.request("POST", "mcp", rpc("resources/read", resource), **headers).text
    yield "DELETE /mcp", user.request("DELETE", "mcp", **headers).text


def a2a_of(user: ServiceProcess, run: str) -> Iterator[tuple[str, str]]:
    """The cards of the agent, and its answers to a message that fails and to one that asks a person."""
    for path in (".well-known/agent-card.json", "a2a/Main/.well-known/agent-card.json"):
        yield path, user.request("GET", path).text
    for skill in ("fail", "chat"):
        said = {"messageId": skill, "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hi"}]}
        params = {"message": {**said, "metadata": {"skill": skill}}}
        yield skill, user.request("POST", "a2a/Main", rpc("message/send", params)).text


def rpc(method: str, params: Any = None) -> dict[str, Any]:
    """A request of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}


WALKS = {
    "streams": streams_of,
    "requests": requests_of,
    "commands": commands_of,
    "agui": agui_of,
    "mcp": mcp_of,
    "a2a": a2a_of,
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(("user", "words"), [("ada", OPERATOR), ("bob", (*OPERATOR, ADA))])
def test_no_route_shows_what_is_for_others(
    desk: ServiceProcess, run: str, user: str, words: tuple[str, ...], walk: str
) -> None:
    """No answer to a user has a text of the operator, says where the program is, or has words of another user."""
    answers = WALKS[walk](as_user(desk, user), run)

    assert [] == [(name, word) for name, text in answers for word in (*words, str(desk.folder)) if word in text]


def test_nobody_deletes_what_is_of_others(desk: ServiceProcess, run: str) -> None:
    """A run and a file of another are unknown and stay; those of one's own go, and nothing is told of them."""
    ada, bob = (as_user(desk, name) for name in ("ada", "bob"))
    own = ada.begin(program="main")
    written = [ada.request("PUT", f"api/runs/{each}/files/a.txt", {"a": 1}).status_code for each in (run, own)]
    paths = [f"api/runs/{each}{rest}" for rest in ("/files/a.txt", "") for each in (run, own)]
    refused = [bob.request("DELETE", path) for path in paths]
    deleted = [ada.request("DELETE", path) for path in paths if own in path]

    assert {201} >= {*written} - {200}
    assert [(404, "unknown_run")] * 4 == [(each.status_code, each.json()["code"]) for each in refused]
    assert [(204, "")] * 2 == [(each.status_code, each.text) for each in deleted]
    assert [200, 200, 404] == [ada.request("GET", path).status_code for path in (paths[0], paths[2], f"api/runs/{own}")]


def test_an_admin_is_shown_everything(desk: ServiceProcess, run: str) -> None:
    """The markers are in the run: the stream of an admin has all of them."""
    told = dict(streams_of(as_user(desk, "root"), run))

    assert [] == [(name, word) for name in ("events", "ws") for word in (*OPERATOR, ADA) if word not in told[name]]


def test_a_user_sees_what_was_said_done_asked_and_paid(desk: ServiceProcess, run: str) -> None:
    """The conversation, the actions with what they do, the question and the approval, and the tokens are there."""
    entries = as_user(desk, "ada").get(f"api/runs/{run}/entries")["entries"]
    kinds = {each["kind"]: each for each in entries}
    shell = next(each for each in entries if each.get("intent") == "shell" and each["kind"] == "begun")

    assert ADA == next(each for each in entries if each["kind"] == "call_started")["args"]["message"]
    assert ("Good day.", "Which?", "red") == (
        kinds["printed"]["message"], kinds["asked"]["question"], kinds["answered"]["answer"]
    )  # fmt: skip
    assert ("echo done", "yes") == (shell["fields"]["command"], kinds["approval_given"]["answer"])
    assert {"tokens", "usd"} <= kinds["model_answered"].keys()
    assert "text" not in kinds["model_answered"]


def test_a_typed_result_grows_for_its_user(desk: ServiceProcess) -> None:
    """The part that has arrived is told on the socket before the call has ended."""
    ada = as_user(desk, "ada")
    run = ada.begin()
    headers = {"Authorization": f"Bearer {ada.token}"}
    told = []
    with connect(f"{ada.url.replace('http', 'ws', 1)}/api/runs/{run}/ws", additional_headers=headers) as socket:
        socket.send(json.dumps({"type": "run_playbook", "name": "Main.outline", "args": {}}))
        while not told or not is_event("call_ended")(told[-1]):
            told.append(json.loads(socket.recv(LIMIT_S)))
    parts = [each["event"]["value"] for each in told if is_event("partial_result")(each)]
    result = told[-1]["event"]["result"]

    assert {"title": "All about tea", "parts": ["leaves", "water", "cups"]} == result
    assert len(parts) > 1
    assert all(part["title"] and result["title"].startswith(part["title"]) for part in parts)


@pytest.mark.parametrize(
    ("name", "type", "code"),
    [
        ("ada", "set_model", "admins_only"),
        ("ada", "extension_command", "admins_only"),
        ("eve", "set_model", None),
        ("eve", "extension_command", "admins_only"),
        ("root", "extension_command", "extension_command_not_handled"),
    ],
)
def test_a_user_chooses_no_model_unless_allowed(desk: ServiceProcess, name: str, type: str, code: str | None) -> None:
    """What is asked and paid is up to the operator, who may leave it to a user; nothing else comes with that."""
    user = as_user(desk, name)
    run = user.begin(program="main")
    fields = {"set_model": {"model": "bad/one"}, "extension_command": {"name": "x"}}[type]
    with connect(
        f"{user.url.replace('http', 'ws', 1)}/api/runs/{run}/ws",
        additional_headers={"Authorization": f"Bearer {user.token}"},
    ) as socket:
        socket.send(json.dumps({"type": type, **fields}))
        while (told := json.loads(socket.recv(LIMIT_S)))["type"] != "response":
            pass

    assert [code] * 2 == [told.get("error_code"), user.command(run, type, **fields).get("error_code")]


def test_the_list_names_what_there_is() -> None:
    """Every event and command on the list exists, and every command that is not on it is refused."""
    assert [] == [type for type in FIELDS if type not in EVENTS and type != RESUMED]
    others = {each.name for each in all_commands()} - {*COMMANDS, *GRANTED_COMMANDS}
    assert {"get_messages", "get_last_assistant_text", "get_entries", "get_tree", "session_info", "quit", "branch",
            "new_session", "resume_session"} == others  # fmt: skip
