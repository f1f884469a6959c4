"""What HTTP expects of refusals: headers that say what to do next, unknown fields of queries, close codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from koi_lang.service.errors import ServiceError
from koi_lang.web.answers import error_answer
from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess


@pytest.mark.parametrize("path", ["api/status?x=1", "api/runs?states=failed", "api/program?limit=1"])
def test_unknown_fields_of_a_query_are_refused(service: ServiceProcess, path: str) -> None:
    """A field that is misspelt is told, as one of a body is."""
    answer = service.request("GET", path)

    assert (400, "invalid_request") == (answer.status_code, answer.json()["code"])


def test_who_is_not_known_is_told_how_to_sign_in(service: ServiceProcess) -> None:
    """An answer with 401 names the scheme."""
    answer = replace(service, token="").request("GET", "api/status")

    assert (401, 'Bearer realm="koi"') == (answer.status_code, answer.headers["www-authenticate"])


@pytest.mark.parametrize(("code", "status"), [("limit_reached", 429), ("overloaded", 503)])
def test_who_comes_too_early_is_told_when_to_come(code: str, status: int) -> None:
    """A command that is refused for want of room says after how many seconds it may be sent again."""
    answer = error_answer(ServiceError(code, "full"))

    assert (status, True) == (answer.status_code, "retry-after" in answer.headers)
    assert code == json.loads(bytes(answer.body))["code"]


def read_all(socket: ClientConnection) -> Iterator[object]:
    """What a socket is sent until it is closed."""
    with suppress(ConnectionClosed):
        while True:
            yield socket.recv(LIMIT_S)


def test_a_binary_frame_closes_the_socket(service: ServiceProcess) -> None:
    """It is answered with the code for data of a kind that is not taken."""
    headers = {"Authorization": f"Bearer {service.token}"}
    address = f"{service.url.replace('http', 'ws', 1)}/api/runs/{service.begin()}/ws"
    with connect(address, additional_headers=headers) as socket:
        socket.send(b"binary")
        list(read_all(socket))

        assert 1003 == socket.close_code
