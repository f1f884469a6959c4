"""Every route that names a run, by somebody whose run it is not: the answer is that for a run that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from koi_lang.web import app
from koi_lang.web.operations import API, OPERATIONS
from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import TOKENS, as_user

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}
UNKNOWN = "0123456789ab"
# What a request brings that would be carried out if the run were one's own.
BODY: dict[str, Any] = {
    "message": "x", "request": "request-1", "answer": "yes", "decision": "yes", "handler": "Desk.chat", "payload": {},
}  # fmt: skip


def paths() -> list[tuple[str, str, tuple[str, ...]]]:
    """Methods, paths and fields of the body of all requests that name a run."""
    bodies = {
        (str(each.method), API + each.path): tuple(each.takes.get("properties", ()))
        for each in OPERATIONS
        if isinstance(each.takes, Mapping)
    }
    found = [(sorted(route.methods or ()), route.path) for route in app.ROUTES if isinstance(route, Route)]
    return [
        (method, path.lstrip("/").replace("{path:path}", "x.txt"), bodies.get((method, path), ()))
        for methods, path in found
        if "{id}" in path
        for method in methods
        if method != "HEAD"
    ]


@pytest.fixture(scope="module")
def ada_run(shared: ServiceProcess) -> str:
    """A run of another user, which asks something."""
    ada = as_user(shared, "ada")
    run = ada.begin(**START)
    ada.wait_for_state(run, "waiting")
    return run


def test_the_run_is_there_for_its_owner(shared: ServiceProcess, ada_run: str) -> None:
    """What others are refused is something that the owner, an admin and whoever started the service get."""
    for service in (as_user(shared, "ada"), as_user(shared, "root"), shared):
        assert ada_run == service.get(f"api/runs/{ada_run}")["id"]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("method", "path", "fields"), paths())
def test_a_run_of_another_is_unknown(
    shared: ServiceProcess, ada_run: str, method: str, path: str, fields: tuple[str, ...]
) -> None:
    """Nothing is seen or done, and nothing tells that there is such a run."""
    bob = as_user(shared, "bob")
    body = None if method in ("GET", "DELETE") else {name: BODY[name] for name in fields if name in BODY}
    theirs, unknown = (bob.request(method, path.replace("{id}", run), body) for run in (ada_run, UNKNOWN))

    assert (404, "unknown_run") == (theirs.status_code, theirs.json()["code"])
    assert unknown.status_code == theirs.status_code
    assert unknown.text.replace(UNKNOWN, ada_run) == theirs.text
    assert unknown.headers.keys() == theirs.headers.keys()


@pytest.mark.parametrize("type", ["get_state", "abort", "answer", "prompt", "no_such_command"])
def test_commands_for_the_run_of_another_are_refused(shared: ServiceProcess, ada_run: str, type: str) -> None:
    """No command of `koi rpc` reaches it."""
    bob = as_user(shared, "bob")
    answers = [
        bob.request("POST", "api/command", {"run": run, "type": type, **BODY}).text.replace(run, "RUN")
        for run in (ada_run, UNKNOWN)
    ]

    assert answers[0] == answers[1]
    assert "there is no run `RUN`" in answers[0]
    assert "waiting" == as_user(shared, "ada").get(f"api/runs/{ada_run}")["state"]


def test_no_socket_opens_for_the_run_of_another(shared: ServiceProcess, ada_run: str) -> None:
    """The socket is closed with the same reason as that of a run that does not exist."""
    told = []
    for route in app.ROUTES:
        if not isinstance(route, WebSocketRoute):
            continue
        for run in (ada_run, UNKNOWN):
            address = f"ws{shared.url.removeprefix('http')}{route.path.replace('{id}', run)}"
            headers = {"Authorization": f"Bearer {TOKENS['bob']}"}
            with connect(address, additional_headers=headers) as socket, pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=LIMIT_S)
            told.append((closed.value.rcvd.code, closed.value.rcvd.reason.replace(run, "RUN")))  # type: ignore[union-attr]

    assert 2 <= len(told)
    assert {(4004, "there is no run `RUN`")} == set(told)


def test_lists_hold_nothing_of_others(shared: ServiceProcess, ada_run: str) -> None:
    """No answer to a request that names no run has the id of a run of another, or the name of its owner."""
    bob = as_user(shared, "bob")
    plain = [route.path for route in app.ROUTES if isinstance(route, Route) and "GET" in (route.methods or ())]
    texts = [bob.request("GET", path.lstrip("/")).text for path in plain if "{" not in path]

    assert 4 < len(texts)
    assert not [text for text in texts if ada_run in text or '"ada"' in text]


def test_a_run_cannot_be_asked_for_by_its_owner(shared: ServiceProcess, ada_run: str) -> None:
    """A filter for another user gives nothing to who is no admin."""
    answer = as_user(shared, "bob").request("GET", "api/runs?user=ada")

    assert ada_run not in answer.text
