"""Pages of other origins that `[serve]` lists: what they may do over HTTP, and in Chromium."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.limits import LIMIT_S
from tests.service.conftest import desk_in
from tests.service.serving_process import TOKEN, ServiceProcess
from tests.web.conftest import open_browser

APP, STRANGER = "https://app.example.org", "https://other.example.org"
START = {"handler": "Editor.start", "payload": {"topic": "tea"}}


class PageHandler(BaseHTTPRequestHandler):
    """Answers with an empty page."""

    def do_GET(self) -> None:
        """Answer a request."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>app</title>")

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


@contextmanager
def page_of_others() -> Iterator[str]:
    """The origin of a server with an empty page."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), PageHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    """The origin of a page of others on this machine."""
    with page_of_others() as origin:
        yield origin


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, other: str) -> Iterator[ServiceProcess]:
    """A service that answers pages of others."""
    folder = tmp_path_factory.mktemp("origins")
    words = desk_in(folder)
    (folder / "koi.toml").write_text(f'[serve]\norigins = ["{APP}", "{other}"]\n')
    service = ServiceProcess(folder, words)
    service.start()
    yield service
    service.end()


def preflight(service: ServiceProcess, origin: str) -> httpx2.Response:
    """The answer to what a browser asks before a page of an origin posts."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    return replace(service, token="").request("OPTIONS", "api/runs", Origin=origin, **asked)


def test_a_listed_page_is_answered_by_its_origin(service: ServiceProcess) -> None:
    """Browsers let it send its token and read the answer, also one that refuses; no other page is let."""
    asked = preflight(service, APP)
    answer = service.request("GET", "api/status", Origin=APP)
    refused = replace(service, token="wrong").request("GET", "api/status", Origin=APP)

    assert (200, APP) == (asked.status_code, asked.headers["access-control-allow-origin"])
    assert {"authorization", "idempotency-key", "last-event-id"} <= {
        each.strip().lower() for each in asked.headers["access-control-allow-headers"].split(",")
    }
    for each in (answer, refused):
        assert (APP, "Origin") == (each.headers["access-control-allow-origin"], each.headers["vary"])
        assert "WWW-Authenticate" in each.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in each.headers
    assert [200, 401] == [answer.status_code, refused.status_code]
    for each in (preflight(service, STRANGER), service.request("GET", "api/status", Origin=STRANGER)):
        assert each.status_code in (400, 403)
        assert "access-control-allow-origin" not in each.headers


def test_a_cookie_does_not_count_for_listed_pages(service: ServiceProcess, other: str) -> None:
    """Neither for one of another site nor for one of another port, to which browsers send it; nor do these sign in."""
    login = service.request("POST", "api/login", {"token": TOKEN})
    stranger = replace(service, token="")
    sent = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
    address = f"{service.url.replace('http', 'ws')}/api/runs/{service.begin()}/ws"

    assert 200 == stranger.request("GET", "api/status", **sent, Origin=service.url).status_code
    for origin in (APP, other):
        assert 401 == stranger.request("GET", "api/status", **sent, Origin=origin).status_code
        assert 403 == stranger.request("POST", "api/login", {"token": TOKEN}, Origin=origin).status_code
        assert 403 == stranger.request("POST", "api/logout", **sent, Origin=origin).status_code
        with pytest.raises(InvalidStatus, match="401"):
            connect(address, additional_headers=sent, origin=origin)


@pytest.mark.parametrize("origin", [APP, None])
def test_a_web_socket_shows_its_token_as_a_subprotocol(service: ServiceProcess, origin: str | None) -> None:
    """A page can add no header; the token is none of the subprotocols that are agreed on."""
    address = f"{service.url.replace('http', 'ws')}/api/runs/{service.begin()}/ws"
    with connect(address, origin=origin, subprotocols=["koi", f"bearer.{quote(TOKEN, safe='')}"]) as socket:
        assert "rpc_ready" in str(socket.recv(LIMIT_S))
        assert "koi" == socket.subprotocol
    with pytest.raises(InvalidStatus, match="401"):
        connect(address, origin=origin, subprotocols=["koi", "bearer.wrong"])


# What a page does with the service at an address, and a token: a run, its stream, its WebSocket, a refusal.
USE = """async ([url, token]) => {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  const body = JSON.stringify({ handler: "Editor.start", payload: { topic: "tea" } });
  const { id } = await (await fetch(`${url}/api/runs`, { method: "POST", headers, body })).json();
  const events = await fetch(`${url}/api/runs/${id}/events`, { headers: { ...headers, "Last-Event-ID": "0" } });
  const reader = events.body.pipeThrough(new TextDecoderStream()).getReader();
  const told = (await reader.read()).value;
  await reader.cancel();
  const socket = new WebSocket(`${url.replace("http", "ws")}/api/runs/${id}/ws`, ["koi", `bearer.${encodeURIComponent(token)}`]);
  const first = await new Promise((resolve, reject) => Object.assign(socket, { onmessage: resolve, onclose: reject }));
  const refused = await fetch(`${url}/api/status`, { credentials: "omit" });
  return [told.includes("rpc_ready"), JSON.parse(first.data).type, socket.protocol, refused.status, refused.headers.get("WWW-Authenticate")];
}"""  # noqa: E501
ASK = "async (url) => fetch(`${url}/api/status`, { credentials: 'include' }).then(() => 'answered', () => 'refused')"


@pytest.mark.needs("chromium")
def test_a_page_of_others_uses_the_service(service: ServiceProcess, other: str) -> None:
    """In a browser that is signed in a listed page gets by with its token, and one that is not listed gets nothing."""
    with open_browser() as browser, page_of_others() as stranger:
        page = browser.new_page()
        page.goto(f"{service.url}/#token={TOKEN}")
        page.wait_for_selector("main h1, main #message")
        page.goto(other)
        used = page.evaluate(USE, [service.url, TOKEN])
        by_cookie = page.evaluate(ASK, service.url)
        page.goto(stranger)
        by_stranger = page.evaluate(ASK, service.url)

    assert [True, "rpc_ready", "koi", 401, 'Bearer realm="koi"'] == used
    assert ["refused", "refused"] == [by_cookie, by_stranger]
