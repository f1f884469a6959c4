"""Who may reach a service."""

from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest

from tests.service.serving_process import ServiceProcess


@pytest.mark.parametrize("token", ["", "wrong", "a-token-for-test"])
def test_without_the_token_nothing_is_told(service: ServiceProcess, token: str) -> None:
    """Only whether the service answers is told to everybody."""
    stranger = replace(service, token=token)

    refused = [stranger.request("GET", path) for path in ("api/status", "api/runs", "api/nothing")]

    assert {401} == {answer.status_code for answer in refused}
    assert {"no_token"} == {answer.json()["code"] for answer in refused}
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
