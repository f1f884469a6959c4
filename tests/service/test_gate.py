"""Who may reach a service."""

from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from koi_lang.http_server.address import Address
from koi_lang.http_server.guard import ServerNames
from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess


@pytest.mark.parametrize("token", ["", "wrong", "a-token-for-test"])
def test_without_the_token_nothing_is_told(service: ServiceProcess, token: str) -> None:
    """Only whether the service answers is told to everybody."""
    stranger = replace(service, token=token)

    refused = [stranger.request("GET", path) for path in ("api/status", "api/runs", "api/nothing")]

    assert {401} == {answer.status_code for answer in refused}
    assert {"no_token"} == {answer.json()["code"] for answer in refused}
    told = "nobody is known by this token" if token else "a bearer token is needed"
    assert {told} == {answer.json()["message"] for answer in refused}
    assert stranger.get("api/health")["ok"] is True


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
def test_pages_of_others_are_refused(service: ServiceProcess, headers: dict[str, str], status: int) -> None:
    """A page of another host cannot use the service, even with the token."""
    assert status == service.request("GET", "api/status", **headers).status_code


def test_a_browser_logs_in_once(service: ServiceProcess) -> None:
    """The cookie stands for the token, and no page can read it or have it sent by another one."""
    answer = service.request("POST", "api/login", {"token": service.token})
    cookie = answer.headers["set-cookie"]

    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    shown = replace(service, token="").request("GET", "api/status", Cookie=cookie.partition(";")[0])
    assert "admin" == shown.json()["user"]


OWN, OTHER = "http://127.0.0.1:8421", "http://127.0.0.1:3000"


@pytest.mark.parametrize(
    ("origin", "host", "is_other"),
    [
        (OWN, "127.0.0.1:8421", False),
        (OWN, "localhost:8421", False),
        ("http://[::1]:8421", "localhost:8421", False),
        (None, "localhost:8421", False),
        ("https://koi.example.org", "127.0.0.1:8421", False),
        ("https://koi.example.org", "koi.example.org", False),
        ("https://koi.example.org:8443", "koi.example.org", False),
        ("http://localhost", "localhost", False),
        ("http://localhost:80", "127.0.0.1", False),
        (OTHER, "127.0.0.1:8421", True),
        (OTHER, "localhost:8421", True),
        ("http://localhost", "localhost:8421", True),
        ("http://localhost:8421", "localhost", True),
        ("https://koi.example.org:8443", "koi.example.org:443", True),
        ("http://127.0.0.1:99999", "127.0.0.1:8421", True),
    ],
)
def test_pages_of_other_ports(origin: str | None, host: str, is_other: bool) -> None:
    """They are told by the port where the name is that of the service; another name is that of a proxy before it."""
    names = ServerNames.of(Address("127.0.0.1", 8421, None, known_as=("koi.example.org",)))

    assert is_other == names.is_other_port(origin, host)


def test_a_cookie_counts_for_pages_of_its_own_port(service: ServiceProcess) -> None:
    """A browser sends it for those of other ports of the machine, too, which get neither an answer nor a WebSocket."""
    cookie = service.request("POST", "api/login", {"token": service.token}).headers["set-cookie"].partition(";")[0]
    run, stranger = service.begin(), replace(service, token="")
    address = f"{service.url.replace('http', 'ws')}/api/runs/{run}/ws"
    codes = [
        stranger.request("GET", "api/status", Cookie=cookie, Origin=origin).status_code
        for origin in (service.url, OTHER)
    ]
    with connect(address, additional_headers={"Cookie": cookie}, origin=service.url) as opened:
        assert opened.recv(LIMIT_S)
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, additional_headers={"Cookie": cookie}, origin=OTHER)

    assert [200, 403] == codes
    assert 200 == service.request("GET", "api/status", Origin=OTHER).status_code


@pytest.mark.parametrize("path", ["api/runs", "api/command", "api/login"])
def test_a_form_of_another_page_does_nothing(service: ServiceProcess, path: str) -> None:
    """What a page can send without being asked, a form with the cookie of its reader, is refused twice over."""
    cookie = service.request("POST", "api/login", {"token": service.token}).headers["set-cookie"].partition(";")[0]
    known = len(service.get("api/runs")["runs"])
    for headers in ({"Origin": "http://evil.example"}, {}):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            sent = {"Cookie": cookie, "Content-Type": kind, **headers}
            answer = httpx2.post(f"{service.url}/{path}", content=b'{"handler": "Editor.start"}', headers=sent)
            assert answer.status_code in (403, 415), (sent, answer.text)

    assert known == len(service.get("api/runs")["runs"])


def test_a_stranger_sends_no_more_than_a_token(service: ServiceProcess) -> None:
    """What is not known to be of a user is not kept in memory."""
    answer = replace(service, token="").request("POST", "api/login", {"token": "x" * 2_000_000})

    assert (413, "too_large") == (answer.status_code, answer.json()["code"])
