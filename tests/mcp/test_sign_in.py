"""Servers that want a person to sign in: a real authorization server on this machine, and a browser that obeys."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from koi_lang.errors import AgentError
from koi_lang.runtime.mcp.authorization import Authorization, SignInContext
from koi_lang.runtime.mcp.sign_in import PersonSignIn, SignIn
from koi_lang.setup.keys.store import KeyStore
from tests import forks
from tests.limits import LIMIT_S
from tests.mcp.conftest import Refusal, Shelf, call
from tests.mcp.test_errands import Person
from tests.playbook.playing import Played, act

GUARDED = Path(__file__).with_name("guarded.py")
ECHO = call("echo", text="a")


@dataclass
class Gate:
    """A guarded server that listens, and what it has noted."""

    url: str
    events: Path

    @property
    def noted(self) -> list[str]:
        """What happened, in order."""
        return self.events.read_text("utf-8").split() if self.events.exists() else []


@contextmanager
def guarded(folder: Path, habit: str = "") -> Iterator[Gate]:
    """A guarded server for a while."""
    events = folder / f"events{habit}"
    command = forks.python(str(GUARDED), *([habit] if habit else []))
    with subprocess.Popen(command, env={**os.environ, "EVENTS": str(events)}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Gate(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", events)
        finally:
            process.kill()


def visit(url: str) -> int:
    """The status of a page, wherever it leads; 0 for a connection that breaks off."""
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, http.client.HTTPException):
        return 0


@dataclass
class Browser:
    """Opens pages as a person's browser does, and follows where they lead; it keeps them."""

    pages: list[str] = field(default_factory=list)
    is_there: bool = True

    def open(self, url: str) -> bool:
        """Go to a page, where there is a browser."""
        self.pages.append(url)
        if self.is_there:
            visit(url)
        return self.is_there


@dataclass
class Desk:
    """A person's machine: tokens in a folder, a browser, and what was learnt to be secret."""

    shelf: Shelf
    gate: Gate
    browser: Browser = field(default_factory=Browser)
    secrets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = KeyStore(self.shelf.play.folder / "config")
        self.sign_in = SignIn(self.store, self.browser.open, lambda name, secret: self.secrets.append(secret))

    def play(self, *actions: object, approvals: tuple[str, ...] = ("yes",), **options: object) -> Played:
        """What comes of some answers where a person gives theirs."""
        host = Person(approvals=list(approvals)) if approvals else None  # type: ignore[arg-type]
        source = self.shelf.program(type="http", url=self.gate.url, **options)
        return self.shelf.play(source, [*actions, act("return", data={})], host=host, sign_in=self.sign_in)


@pytest.fixture
def desk(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk before a guarded server; there is no keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    with guarded(shelf.play.folder) as gate:
        yield Desk(shelf, gate)


def test_a_person_signs_in_once(desk: Desk) -> None:
    """After a yes and a browser there are tools; the next run uses the tokens that were kept."""
    first = desk.play(ECHO)
    second = desk.play(ECHO, approvals=())

    assert '✅ call_mcp -> {"result":"a"}' in first.feedback[1]
    assert '✅ call_mcp -> {"result":"a"}' in second.feedback[1]
    assert (["registered", "asked"], 1) == (desk.gate.noted, len(desk.browser.pages))


def test_tokens_are_kept_beside_the_keys(desk: Desk) -> None:
    """They are in the file of keys, under the address of the server, readable by nobody else."""
    desk.play(ECHO)
    (name,) = desk.store.places()

    assert f"MCP_TOKENS {desk.gate.url}" == name
    assert 0o600 == desk.store.path.stat().st_mode & 0o777
    assert {"access-", "refresh"} == {secret[:7] for secret in desk.secrets if "-" in secret[:8]}


def test_nobody_can_sign_in(desk: Desk) -> None:
    """Without a person there is one message that says what to do; no client is registered for nothing."""
    played = desk.play(ECHO, approvals=())

    told = f"the MCP server `files` wants you to sign in. Sign in with `koi connect {desk.gate.url}`"
    assert told in played.feedback[1]
    assert "files cannot be used now: the MCP server `files` wants you to sign in" in played.requests[0].system
    assert ([], []) == (desk.gate.noted, desk.browser.pages)


def test_no_browser(desk: Desk) -> None:
    """Without a browser the message names the way that works with one elsewhere."""
    desk.browser.is_there = False
    told = desk.play(ECHO).feedback[1]

    assert "there is no browser to sign in to the MCP server `files`" in told
    assert f"`koi connect {desk.gate.url} --no-browser`" in told


def test_forty_at_once_ask_once(desk: Desk) -> None:
    """Forty agents and servers of one address that start at once ask the person once, and all of them go on."""
    servers = "".join(f'mcp s{n} = {{ type: "http", url: "{desk.gate.url}" }}\n' for n in range(8))
    uses = ", ".join(f"s{n}" for n in range(8))
    calls = ", ".join(f's{n % 8}.echo({{ text: "a{n}" }})' for n in range(40))
    handler = f"on go() {{ return await Promise.all([{calls}]) }}"
    source = f"role R {{ can call_mcp }}\n{servers}agent Main : R {{ uses mcp {uses}\n{handler} }}"
    host = Person(approvals=["yes"])
    played = desk.shelf.play(source, [], host=host, sign_in=desk.sign_in)

    assert [{"result": f"a{n}"} for n in range(40)] == played.result, played.told
    assert (1, 1, ["registered", "asked"]) == (len(host.asked), len(desk.browser.pages), desk.gate.noted)


def test_tokens_are_renewed(shelf: Shelf, desk: Desk) -> None:
    """A token that has expired is renewed without the person, in the same run and in the next."""
    with guarded(shelf.play.folder, "renews") as gate:
        other = Desk(shelf, gate)
        first, second = other.play(ECHO, ECHO), other.play(ECHO, approvals=())

        assert all('✅ call_mcp -> {"result":"a"}' in text for text in (*first.feedback[1:], *second.feedback[1:]))
        assert 1 == gate.noted.count("asked")
        assert "renewed" in gate.noted


def test_renewing_needs_no_address(shelf: Shelf, desk: Desk) -> None:
    """Tokens are renewed also while somebody else has the port to which the browser was led: nobody is asked."""
    with guarded(shelf.play.folder, "renews") as gate:
        other = Desk(shelf, gate)
        other.play(ECHO)
        kept = json.loads(other.store.value(f"MCP_TOKENS {gate.url}") or "")
        kept["tokens"]["access_token"] = "no longer valid"
        other.store.keep(f"MCP_TOKENS {gate.url}", json.dumps(kept))
        port = int(kept["client"]["redirect_uris"][0].partition("127.0.0.1:")[2].partition("/")[0])
        with socket.create_server(("127.0.0.1", port)):
            again = other.play(ECHO, approvals=())

    assert '✅ call_mcp -> {"result":"a"}' in again.feedback[1]


def test_nobody_signs_in_over_http(tmp_path: Path) -> None:
    """Tokens are not sent to another machine in a way that others could read."""
    url = "http://far.example/mcp"
    person = PersonSignIn(SignIn(KeyStore(tmp_path), lambda url: True), Person(approvals=["yes"]))

    async def refused() -> None:
        requests = Authorization("far", url, {}, SignInContext(person, lambda waits: None)).async_auth_flow(
            httpx2.Request("POST", url)
        )
        await anext(requests)
        await requests.asend(httpx2.Response(401))

    with pytest.raises(AgentError, match="others could read what is sent to it"):
        asyncio.run(refused())


def test_tokens_that_cannot_be_renewed(shelf: Shelf, desk: Desk) -> None:
    """Where the server renews nothing, the person is asked again; without one the message says what to do."""
    with guarded(shelf.play.folder, "forgets") as gate:
        other = Desk(shelf, gate)
        other.play(ECHO)
        again = other.play(ECHO, approvals=())

    assert "wants you to sign in. Sign in with `koi connect" in again.feedback[1]


def test_a_refusal(shelf: Shelf, desk: Desk) -> None:
    """What the page says is what the person is told, without anything secret."""
    with guarded(shelf.play.folder, "refuses") as gate:
        told = Desk(shelf, gate).play(ECHO).feedback[1]

    assert "signing in to the MCP server `files` failed: not you" in told


def test_a_no(desk: Desk) -> None:
    """A person who does not agree is led nowhere, and is not asked again for the next call."""
    played = desk.play(ECHO, ECHO, approvals=("no", "yes"))

    assert ["wants you to sign in" in text for text in played.feedback[1:]] == [True, True]
    assert [] == desk.browser.pages


def test_a_token_of_ones_own_counts(desk: Desk) -> None:
    """Where the options have an `Authorization`, nobody is asked to sign in."""
    told = desk.play(ECHO, headers={"Authorization": "Bearer mine"}).feedback[1]

    assert ("HTTP 401 Unauthorized" in told, desk.browser.pages) == (True, [])


class Narrow(Refusal):
    """Answers that more than the token allows is needed."""

    def do_POST(self) -> None:
        """Refuse."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(403)
        self.send_header("WWW-Authenticate", 'Bearer error="insufficient_scope", scope="write"')
        self.end_headers()


def test_more_than_was_agreed_to(desk: Desk) -> None:
    """Where a call needs more than somebody has agreed to, the message does not name a command that cannot help."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Narrow) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        desk.gate = Gate(f"http://127.0.0.1:{server.server_port}/mcp", desk.gate.events)
        told = desk.play(ECHO, approvals=()).feedback[1]
        server.shutdown()
        thread.join()

    assert "wants you to agree to more than you have when you signed in. Run the program once in a terminal" in told


def test_tokens_belong_to_an_address(desk: Desk, shelf: Shelf) -> None:
    """A server of the same name at another address does not get the tokens of the first."""
    desk.play(ECHO)
    with guarded(shelf.play.folder, "renews") as gate:
        elsewhere = Desk(shelf, gate)
        played = elsewhere.play(ECHO, approvals=())

    assert "wants you to sign in" in played.feedback[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "path", ["/callback?code=x", "/callback?code=x&state=wrong", "/favicon.ico", "/" + "x" * 20_000]
)
def test_strangers_cannot_answer(desk: Desk, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else sends to the address on this machine is turned away, and the person can still sign in."""
    opened = desk.browser.open

    def interfere(url: str) -> bool:
        redirect = url.partition("redirect_uri=")[2].partition("&")[0]
        here = urllib.request.unquote(redirect).removesuffix("/callback")  # type: ignore[attr-defined]
        assert visit(here + path) in (0, 404)
        return opened(url)

    desk.sign_in.open_page = interfere

    assert '✅ call_mcp -> {"result":"a"}' in desk.play(ECHO).feedback[1]


def test_a_damaged_record(desk: Desk) -> None:
    """Tokens that cannot be read count as none."""
    desk.store.keep(f"MCP_TOKENS {desk.gate.url}", json.dumps({"tokens": {"access_token": 5}}))

    assert '✅ call_mcp -> {"result":"a"}' in desk.play(ECHO).feedback[1]


@pytest.mark.parametrize(
    ("client", "issuer", "why"),
    [
        ({"client_secret": "a-long-secret"}, "https://elsewhere.example/", "issuer mismatch"),
        ({"private_key": "-----BEGIN no key at all"}, "", "its `private_key` cannot sign"),
        ({"assertion": "a-long-token"}, "https://elsewhere.example/", "issuer mismatch"),
        ({"identity": {"token": "a-long-token", "url": "http://idp.example/"}}, "", "others could read what is sent"),
        ({"identity": {"token": "a-long-token", "url": "HERE/nowhere"}}, "", "gave no token: HTTP 404"),
    ],
)
def test_a_client_that_signs_in_for_itself_asks_nobody(
    desk: Desk, client: dict[str, Any], issuer: str, why: str
) -> None:
    """Nobody is asked and no page is opened; its secret goes to the issuer that it names, and to no other."""
    here = desk.gate.url.removesuffix("/mcp")
    named = issuer or f"{here}/"
    if "identity" in client:
        client = {"identity": {**client["identity"], "url": client["identity"]["url"].replace("HERE", here)}}
    grant = "client_credentials" if {"client_secret", "private_key"} & client.keys() else "jwt_bearer"
    oauth = {"client_id": "ours", "grant": grant, "issuer": named, **client}
    played = desk.play(ECHO, approvals=(), oauth=oauth)

    assert why in played.feedback[1]
    assert [] == desk.browser.pages
    assert "token" not in desk.gate.noted
    assert {client.get("identity", {}).get("token") or next(iter(client.values()))} <= {*desk.secrets}
