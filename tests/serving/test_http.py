"""Who may reach a server over HTTP, and where it listens."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client

from koi_lang.cli import main
from koi_lang.http_server.address import Address
from koi_lang.settings.service import DEFAULT_ADDRESS
from tests.serving.conftest import AUTHORIZED, INITIALIZE, LIMIT_S, PROGRAM, TOKEN, Listening, Place, listening, posted


def status(server: Listening, **headers: str) -> int:
    """What comes of a request to begin a session."""
    return asyncio.run(posted(server, "initialize", INITIALIZE, **headers)).status_code


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN],
)
def test_who_does_not_show_the_token_is_refused(server: Listening, authorization: str) -> None:
    """Without the right bearer token there is no answer but 401, which says what is needed."""
    response = asyncio.run(posted(server, "initialize", INITIALIZE, Authorization=authorization))

    assert (401, 'Bearer realm="koi"') == (response.status_code, response.headers["WWW-Authenticate"])
    assert "bearer token" in response.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_token_opens(server: Listening, scheme: str) -> None:
    """With the token a session begins."""
    assert 200 == status(server, Authorization=f"{scheme} {TOKEN}")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:80"}, 421),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost"}, 200),
    ],
)
def test_pages_of_others_are_refused(server: Listening, headers: dict[str, str], code: int) -> None:
    """A web page that has its own name lead to this machine cannot use a server, even with the token."""
    assert code == status(server, **headers)


NONSENSE = (
    b"",
    b"{",
    b"[]",
    b"[1]",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"jsonrpc":"2.0","id":{},"method":"x"}',
    b"x" * 20_000_000,
)


def test_forty_clients_beside_a_hostile_one(server: Listening) -> None:
    """Each has a session of its own, whatever somebody else sends meanwhile, who is refused."""

    async def count(http: httpx2.AsyncClient) -> Any:
        begun = await http.post(server.url, json=request("initialize", INITIALIZE))
        own = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
        add = request("tools/call", {"name": "add", "arguments": {"amount": 2}})
        answers = [await http.post(server.url, json=add, headers=own) for _ in range(2)]
        await http.delete(server.url, headers=own)
        return [re.findall(r'"count":(\d+)\}', answer.text)[0] for answer in answers]

    async def disturb(http: httpx2.AsyncClient) -> list[int]:
        kind = {"Content-Type": "application/json"}
        return [(await http.post(server.url, content=body, headers=kind)).status_code for body in NONSENSE]

    async def play() -> tuple[Any, list[int]]:
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=AUTHORIZED, timeout=LIMIT_S) as http:
            counts, codes = await asyncio.gather(asyncio.gather(*(count(http) for _ in range(40))), disturb(http))
            return counts, codes

    assert ([["2", "4"]] * 40, [*[400] * 7, 413]) == asyncio.run(play())


def request(method: str, params: Any) -> dict[str, Any]:
    """A request of the protocol."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_other_paths_do_not_exist(server: Listening) -> None:
    """There is one address, and nothing beside it."""
    response = httpx2.get(server.url.replace("/mcp", "/"), headers=AUTHORIZED)

    assert 404 == response.status_code


def test_a_token_is_made_and_shown(place: Place) -> None:
    """Without a token on the command line or in the environment, a long one is made and shown once."""
    environment = {**place.environment, "KOI_SERVE_TOKEN": ""}
    command = place.command(str(PROGRAM), "--http", "127.0.0.1:0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=place.folder) as process:
        assert process.stderr is not None
        url, token = "", ""
        while not token:
            line = process.stderr.readline()
            url = url or "".join(re.findall(r"serving `served` at (\S+)", line))
            token = "".join(re.findall(r"with this token: (\S+)$", line))

        assert ["served"] == asyncio.run(names(place, url, token))
        process.terminate()
        assert token not in process.communicate(timeout=LIMIT_S)[1]

    assert len(token) >= 40


def test_a_token_that_was_given_is_not_shown() -> None:
    """A token from the environment does not come into the terminal, and so into the logs of services."""
    advice = Address("127.0.0.1", 8420, TOKEN).advice

    assert advice.endswith("with the token that was given\n")
    assert TOKEN not in advice


async def names(place: Place, url: str, token: str) -> list[str]:
    """The name of a server as a client gets it."""
    async with place.http(url, token) as client:
        return [client.server_info.name]


@pytest.fixture(scope="module")
def open_server(place: Place) -> Iterator[Listening]:
    """A server that lets everybody in, at an address without a host, under a further name."""
    yield from listening(place, str(PROGRAM), "--no-token", "--http", ":0", "--name", "box.example")


def test_without_a_token(open_server: Listening) -> None:
    """Everybody on this machine can be let in."""
    assert 200 == status(open_server, Authorization="")


def test_further_names(open_server: Listening) -> None:
    """A name that clients use for the machine can be allowed."""
    names = ("box.example:80", "box.example", "bo.example")

    assert [200, 200, 421] == [status(open_server, Host=name) for name in names]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--http", "nonsense"], "error: `--http nonsense` is no address\n  = help: Write --http 127.0.0.1:8420.\n"),
        (["--http", "127.0.0.1:70000"], "error: `--http 127.0.0.1:70000` is no address\n"),
        (["--http", "[::1:80"], "error: `--http [::1:80` is no address\n"),
        (["--http", "0.0.0.0:0", "--no-token"], "error: without a token only this machine may be served\n"),
        (["--http", "--token", "a b"], "error: the token is empty, or holds spaces or special characters\n"),
        (["--http", "--token", ""], "error: the token is empty, or holds spaces or special characters\n"),
        (["--token", "x"], "error: over stdio there is no token and no name\n"),
    ],
)
def test_wrong_addresses_and_tokens(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    """What cannot be is refused before anybody connects, with one message."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", "mcp", str(PROGRAM), *words])

    printed, message = capsys.readouterr()
    assert (2, "") == (ended.value.code, printed)
    assert message.startswith(told)


def test_the_advice_about_an_address_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    """An address that is none is answered with the one that the command would take by itself."""
    with pytest.raises(SystemExit):
        main(["serve", "http", str(PROGRAM), "--http", "nonsense"])

    assert f"= help: Write --http {DEFAULT_ADDRESS}.\n" in capsys.readouterr().err
    assert "127.0.0.1:8421" == DEFAULT_ADDRESS


def test_a_port_that_is_taken(place: Place) -> None:
    """A server that cannot listen says where, and ends."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"127.0.0.1:{other.getsockname()[1]}"
        done = place.koi(str(PROGRAM), "--quiet", "--http", where)

    assert done.stderr.endswith(
        f"error: cannot listen at {where}: address already in use\n  = help: Choose another one: --http HOST:PORT.\n"
    )


def test_the_client_of_the_library_finds_the_protocol(place: Place, server: Listening) -> None:
    """A client that looks for the newest protocol finds it."""

    async def play() -> str:
        async with place.http(server.url, mode="auto") as client:
            return version(client)

    assert "2026-07-28" == asyncio.run(play())


def version(client: Client) -> str:
    """The protocol that a client speaks."""
    return str(client.session.protocol_version)
