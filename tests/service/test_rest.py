"""What can be done to runs by requests of their own: ended, held, answered, branched, looked into; and their files."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from koi_lang.runtime.schema import is_plainly_fitting, problems
from koi_lang.system.certificates import certificates
from koi_lang.web.operations import OPERATIONS
from tests.limits import LIMIT_S
from tests.service.serving_process import TOKEN, ServiceProcess

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}


@pytest.fixture
def waiting(service: ServiceProcess) -> str:
    """A run of the desk that waits for an answer."""
    run = service.begin(**START)
    service.wait_for_state(run, "waiting")
    return run


def post(service: ServiceProcess, run: str, what: str, **body: Any) -> httpx2.Response:
    """The answer to a request that does something to a run."""
    return service.request("POST", f"api/runs/{run}/{what}", body)


def test_a_run_is_answered_and_looked_into(service: ServiceProcess, waiting: str) -> None:
    """Its question is open until it is answered; entries, tree and costs tell what was recorded."""
    (question,) = service.get(f"api/runs/{waiting}")["open"]
    assert 409 == post(service, waiting, "answer", request="request-1", answer="yes").status_code
    assert 200 == post(service, waiting, "answer", request=question["id"], answer="yes").status_code
    service.wait_for_state(waiting, "idle")
    entries = service.get(f"api/runs/{waiting}/entries?since=3&limit=2")

    assert [4, 5] == [entry["n"] for entry in entries["entries"]]
    assert (5, True) == (entries["last"], entries["more"])
    assert [waiting] == [each["run"] for each in service.get(f"api/runs/{waiting}/tree")["runs"]]
    assert service.get(f"api/runs/{waiting}/cost")["requests"] > 0


def test_a_branch_has_another_answer(service: ServiceProcess, waiting: str) -> None:
    """It goes on from the entry with what is said now, in a journal of its own; the first one stays as it was."""
    (question,) = service.get(f"api/runs/{waiting}")["open"]
    post(service, waiting, "answer", request=question["id"], answer="yes")
    service.wait_for_state(waiting, "idle")
    entries = service.get(f"api/runs/{waiting}/entries")["entries"]
    answered = next(each["n"] for each in entries if each["kind"] == "done" and each.get("intent") == "prompt_user")
    branch = post(service, waiting, "branch", at=answered, answer="no").json()
    service.wait_for_state(branch["id"], "idle")
    results = [published(service, run) for run in (waiting, branch["id"])]

    assert [True, False] == results
    assert waiting == branch["parent"]
    assert 400 == post(service, waiting, "branch", at=1, answer="no").status_code
    assert 400 == post(service, waiting, "branch", at=100_000).status_code


def test_a_branch_tells_what_was_asked_and_allowed(service: ServiceProcess) -> None:
    """It has what was asked and allowed before its entry; what it does anew is asked about again."""
    run = service.begin(handler="FrontDesk.chat", message="Publish the piece about tea")
    (request,) = service.wait_for_state(run, "waiting")["open"]
    post(service, run, "approve", request=request["id"], decision="yes")
    service.wait_for_state(run, "idle")
    branch = post(service, run, "branch").json()["id"]
    service.wait_for_state(branch, "idle")
    entries = service.get(f"api/runs/{run}/entries")["entries"]
    allowed = next(each["n"] for each in entries if each["kind"] == "approval_given")
    service.request("DELETE", f"api/runs/{run}/files/published.md")  # to write it again changes something again
    asking = post(service, run, "branch", at=allowed).json()["id"]

    assert ["approval_requested", "approval_given"] == [kind for kind, *_ in dialogue(service, run)]
    assert dialogue(service, run) == dialogue(service, branch)
    assert "approval_request" == service.wait_for_state(asking, "waiting")["open"][0]["type"]


def dialogue(service: ServiceProcess, run: str) -> list[tuple[Any, ...]]:
    """What a run asked the person, and what the person said, with where and for whom."""
    entries = service.get(f"api/runs/{run}/entries")["entries"]
    names = ("kind", "path", "agent", "question", "what", "id", "answer")
    kinds = ("asked", "answered", "approval_requested", "approval_given")
    return [tuple(each.get(name) for name in names) for each in entries if each["kind"] in kinds]


def published(service: ServiceProcess, run: str) -> Any:
    """What the call of a run came to."""
    entries = service.get(f"api/runs/{run}/entries")["entries"]
    return next(each["result"]["published"] for each in reversed(entries) if each["kind"] == "call_ended")


def test_what_is_under_way_is_ended(service: ServiceProcess, waiting: str) -> None:
    """Cancelling ends the call and closes its questions; what sleeps is not woken for it."""
    assert post(service, waiting, "cancel").json()["aborted"]
    told = service.get(f"api/runs/{waiting}")

    assert ("idle", []) == (told["state"], told["open"])
    assert {"aborted": False, "queued": []} == post(service, waiting, "cancel").json()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("cancel", {"now": True}),
        ("steer", {}),
        ("steer", {"message": "x", "type": "abort"}),
        ("approve", {"request": "x", "decision": "perhaps"}),
        ("answer", {"request": 1, "answer": "x"}),
        ("messages", {"message": "x", "images": "y"}),
        ("calls", {"payload": {}}),
        ("branch", {"at": True}),
        ("branch", {"answer": "x"}),
    ],
)
def test_what_does_not_fit_is_refused(service: ServiceProcess, waiting: str, what: str, body: Any) -> None:
    """A field that is missing, wrong or not known is told, and nothing is done."""
    answer = service.request("POST", f"api/runs/{waiting}/{what}", body)

    assert 400 == answer.status_code
    assert {"code", "message", "help"} == answer.json().keys()
    assert "waiting" == service.get(f"api/runs/{waiting}")["state"]


@pytest.mark.parametrize(
    ("what", "body", "told"),
    [
        ("calls", {"handler": "Editor.start", "payload": {"topic": "tea"}}, "`POST /api/runs/ID/cancel`"),
        ("continue", {}, "`POST /api/runs/ID/cancel`"),
        ("answer", {"request": "request-99", "answer": "yes"}, "`open` of `GET /api/runs/ID`"),
        ("answer", {"request": "request-1"}, "answer: string"),
        ("approve", {"request": "request-1", "decision": "yes"}, "`POST /api/runs/ID/answer`"),
    ],
)
def test_help_names_what_a_client_of_http_can_send(
    service: ServiceProcess, waiting: str, what: str, body: Any, told: str
) -> None:
    """A refusal is explained with paths and fields of the API, not with commands of `koi rpc`."""
    help = post(service, waiting, what, **body).json()["help"]

    assert told in help
    assert not {"`steer`", "`follow_up`", "`abort`", "`get_state`", "`approve`", "`cancelled`"} & {*help.split()}


def test_a_run_without_work_has_nothing_to_continue(service: ServiceProcess, waiting: str) -> None:
    """Whoever ends a pause that there is not reads how a call is begun."""
    post(service, waiting, "cancel")

    assert "`POST /api/runs/ID/calls`" in post(service, waiting, "continue").json()["help"]


def send(service: ServiceProcess, method: str, path: str, content: Any = b"", **headers: str) -> httpx2.Response:
    """The answer to a request with a body of bytes."""
    shown = {"Authorization": f"Bearer {TOKEN}", **headers}
    return httpx2.request(
        method, f"{service.url}/{path}", content=content, headers=shown, timeout=LIMIT_S, verify=certificates()
    )


def test_files_are_sent_and_taken_back(service: ServiceProcess, waiting: str) -> None:
    """They come back as they were, to be saved and not shown, and belong to their session."""
    files = f"api/runs/{waiting}/files"
    page = b"<script>fetch('/api/runs')</script>"
    assert 201 == send(service, "PUT", f"{files}/notes/page.html", page).status_code
    answer = send(service, "GET", f"{files}/notes/page.html")

    assert (page, "attachment") == (answer.content, answer.headers["content-disposition"])
    assert "sandbox" in answer.headers["content-security-policy"]
    assert ["notes/page.html"] == [each["path"] for each in service.get(files)["files"]]
    assert [204, 404] == [send(service, "DELETE", f"{files}/notes/page.html").status_code for _ in range(2)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", ["..%2f..%2fservice.sqlite", "%2e%2e/x", "/etc/passwd", ".koi/x", "a%00b", "koi.toml"])
def test_files_lie_in_the_folder_of_the_session(service: ServiceProcess, waiting: str, path: str) -> None:
    """Whatever a path looks like, nothing outside is read or written."""
    for method in ("GET", "PUT", "DELETE"):
        answer = send(service, method, f"api/runs/{waiting}/files/{path}", b"x" if method == "PUT" else b"")
        assert answer.status_code in (400, 404), (method, answer.text)

    assert [] == service.get(f"api/runs/{waiting}/files")["files"]


def answer_to_headers(service: ServiceProcess, request: str, size: int) -> bytes:
    """The first line of the answer to a request whose body never comes."""
    host, _, port = service.url.rpartition("/")[2].partition(":")
    told = f"{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=LIMIT_S) as connection:
        connection.sendall(told.encode())
        return connection.recv(1000).partition(b"\r\n")[0]


def test_two_gigabytes_are_refused_early(service: ServiceProcess, waiting: str) -> None:
    """Where the size is said before anything is read; else as soon as there is too much of it."""
    sent = []

    def much() -> Iterator[bytes]:
        for _ in range(2 << 11):
            sent.append(1)
            yield b"x" * (1 << 20)

    path = f"api/runs/{waiting}/files/large"
    assert b" 413 " in answer_to_headers(service, f"PUT /{path}", 2 << 30)
    with suppress(httpx2.TransportError):  # it was closed while it was still being sent
        assert 413 == send(service, "PUT", path, much()).status_code
    assert len(sent) < 400
    assert [] == service.get(f"api/runs/{waiting}/files")["files"]


def test_a_request_that_is_sent_again_starts_nothing(service: ServiceProcess) -> None:
    """With the same key the answer is the same; another request is refused with it, one that failed may be mended."""
    again = {"Idempotency-Key": "key-1"}
    first, second = (service.request("POST", "api/runs", START, **again) for _ in range(2))
    other = service.request("POST", "api/runs", {**START, "payload": {"topic": "milk"}}, **again)
    wrong = service.request("POST", "api/runs", {"handler": "Editor.none"}, **{"Idempotency-Key": "key-2"})
    mended = service.request("POST", "api/runs", START, **{"Idempotency-Key": "key-2"})

    assert (202, 202, first.json()) == (first.status_code, second.status_code, second.json())
    assert ("true", None) == tuple(each.headers.get("Idempotency-Replayed") for each in (second, first))
    assert (409, 404, 202) == (other.status_code, wrong.status_code, mended.status_code)
    assert mended.json()["id"] != first.json()["id"]


def test_a_request_is_not_carried_out_again_after_a_crash(start_service: Callable[..., ServiceProcess]) -> None:
    """What was begun under a key is found under it when the process was killed."""
    service = start_service()
    first = service.request("POST", "api/runs", START, **{"Idempotency-Key": "key"}).json()
    service.end(9)
    service.start()
    second = service.request("POST", "api/runs", START, **{"Idempotency-Key": "key"}).json()

    assert first["id"] == second["id"]
    assert [first["id"]] == [run["id"] for run in service.get("api/runs")["runs"]]


BOMBS = {
    "deep": "[" * 50_000,
    "wide": "[" + "[]," * 300_000 + "[]]",
    "number": "9" * 100_000,
    "large": "x" * (30 << 20),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused(service: ServiceProcess, bomb: str) -> None:
    """Bodies that would take much memory or time are refused, and the service goes on."""
    answer = send(service, "POST", "api/runs", bomb.encode(), **{"Content-Type": "application/json"})

    assert answer.status_code in (400, 413)
    assert {"code", "message", "help"} == answer.json().keys()


@pytest.mark.parametrize("wrong", [["x"], {"x": 1}, 5, True])
def test_names_that_are_no_texts_are_refused(service: ServiceProcess, wrong: Any) -> None:
    """Whatever stands in place of the name of a program, a handler or a message is told, and breaks nothing."""
    bodies = ({"program": wrong}, {"handler": wrong}, {"message": wrong}, {"message": "hi", "handler": wrong})
    assert [400] * 4 == [service.request("POST", "api/runs", body).status_code for body in bodies]


def test_every_field_is_checked_whatever_it_is() -> None:
    """A request with one field of each kind of JSON value fits or is told; ids of commands are texts or numbers."""
    values = ("x", 1, 2.5, True, None, [], ["x"], {}, {"x": 1})
    wrong = {
        (each.name, name, json.dumps(value)): [*problems({name: value}, {**each.body, "required": ()})]
        for each in OPERATIONS
        if each.body is not None
        for name in each.body["properties"]
        for value in values
        if not is_plainly_fitting({name: value}, {**each.body, "required": ()})
    }
    fitting = [value for value in map(json.dumps, values) if not wrong.get(("command", "id", value))]
    assert ['"x"', "1", "2.5"] == fitting


@pytest.mark.parametrize("query", ["before=x", "state=zz", "limit=0", "limit=1e1", "limit=١", "nobody=1"])
def test_a_query_that_fits_no_schema_is_refused(service: ServiceProcess, query: str) -> None:
    """What would list nothing is told, as for every field of the document."""
    assert 400 == service.request("GET", f"api/runs?{query}").status_code


def test_the_service_describes_itself(service: ServiceProcess) -> None:
    """The document is one of OpenAPI and has the handlers of the programs; costs, models and audit are told."""
    document = service.get("api/openapi.json")
    assert [] == [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]
    assert "Editor.start" in json.dumps(document["components"]["schemas"]["StartRun"])
    assert ["day", "model"] == [service.get(f"api/cost?by={by}")["by"] for by in ("day", "model")]
    assert 400 == service.request("GET", "api/cost?by=moon").status_code
    assert "desk" == service.get("api/audit")["programs"][0]["name"]
    assert isinstance(service.get("api/models")["models"], list)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "api/runs", "GET, HEAD, POST"),
        ("POST", "api/status", "GET, HEAD"),
        ("GET", "api/login", "POST"),
        ("PATCH", "api/runs/x", "DELETE, GET, HEAD"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_refused_like_all_else(
    service: ServiceProcess, method: str, path: str, allowed: str
) -> None:
    """The answer is JSON, and names the methods of all operations at that path."""
    answer = service.request(method, path)

    assert (405, "wrong_method", allowed) == (answer.status_code, answer.json()["code"], answer.headers["allow"])
    assert f"`/{path}` does not take {method}" == answer.json()["message"]
