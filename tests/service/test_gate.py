"""Who may reach a service."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from koi_lang.http_server.address import Address
from koi_lang.http_server.guard import ServerNames
from koi_lang.service import users as user_sessions
from koi_lang.service.store import Database
from koi_lang.service.users import BROWSER_S, MAX_BROWSERS, BrowserSessions, Users, hash_of
from koi_lang.settings.service import UserSettings
from koi_lang.system.certificates import certificates
from tests.limits import LIMIT_S
from tests.service.conftest import desk_in
from tests.service.serving_here import served_here
from tests.service.serving_process import ServiceProcess
from tests.service.test_mcp_of_users import DESK
from tests.service.user_tokens import SETTINGS, TOKENS, as_user


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
    answer = service.request("GET", "api/status", **headers)

    assert status == answer.status_code
    assert (status == 403) == ("`origins`" in (answer.json().get("help") or ""))


def sign_in(service: ServiceProcess, **headers: str) -> str:
    """The cookie that a browser shows from now on."""
    answer = service.request("POST", "api/login", {"token": service.token}, **headers)
    return answer.headers["set-cookie"].partition(";")[0]


def asked_by(
    service: ServiceProcess, cookie: str, method: str = "GET", path: str = "api/status", **headers: str
) -> int:
    """The status of the answer to a browser that shows a cookie."""
    return replace(service, token="").request(method, path, Cookie=cookie, **headers).status_code


def test_a_browser_logs_in_once(service: ServiceProcess) -> None:
    """The cookie has an id in place of the token, and no page can read it or have it sent by another one."""
    answer = service.request("POST", "api/login", {"token": service.token})
    cookie, *attributes = answer.headers["set-cookie"].split("; ")

    assert f"koi_session_{service.url.rpartition(':')[2]}" == cookie.partition("=")[0]
    assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={BROWSER_S}"} == {*attributes}
    assert service.token not in cookie
    assert 401 == replace(service, token=cookie.partition("=")[2]).request("GET", "api/status").status_code
    shown = replace(service, token="").request("GET", "api/status", Cookie=f"theme=dark; {cookie}")
    assert "admin" == shown.json()["user"]


@pytest.mark.parametrize(
    ("authorization", "status"), [("Bearer nope", 401), ("Bearer", 200), ("Basic YTpi", 200), ("Bearer TOKEN", 200)]
)
def test_a_wrong_token_is_refused_beside_a_cookie(service: ServiceProcess, authorization: str, status: int) -> None:
    """A client with a mistyped token does not work in that browser alone; what a proxy asks for is no token."""
    sent = {"Authorization": authorization.replace("TOKEN", service.token)}

    assert status == asked_by(service, sign_in(service), **sent)


def test_a_cookie_by_tls_goes_by_tls_alone(service: ServiceProcess) -> None:
    """A proxy of this machine says by `X-Forwarded-Proto` how the browser has called."""
    sent = {"X-Forwarded-Proto": "https", "Origin": service.url.replace("http", "https")}
    answer = service.request("POST", "api/login", {"token": service.token}, **sent)

    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_each_sign_in_is_a_new_session(service: ServiceProcess) -> None:
    """An id that somebody else has put into the browser is not that of the session, and an earlier one is over."""
    first = sign_in(service)
    name = first.partition("=")[0]
    second = sign_in(service, Cookie=first, Origin=service.url)
    third = sign_in(service, Cookie=f"{name}=chosen", Origin=service.url)

    assert 3 == len({first, second, third})
    assert [401, 200, 200] == [asked_by(service, cookie) for cookie in (first, second, third)]
    assert 401 == asked_by(service, f"{name}=chosen")
    assert 200 == asked_by(service, f"{name}=chosen; {third}")


def test_a_token_in_a_cookie_is_forgotten(service: ServiceProcess) -> None:
    """Version 0.5 kept it there for a year; it counts no more, and the browser need not have it any longer."""
    sent = {"Cookie": f"koi_token={service.token}", "Origin": service.url}
    login = service.request("POST", "api/login", {"token": service.token}, **sent)

    assert 401 == asked_by(service, sent["Cookie"])
    assert ["koi_session", "koi_token"] == [
        each.partition("=")[0].rstrip("_0123456789") for each in login.headers.get_list("set-cookie")
    ]
    assert "Max-Age=0" in login.headers.get_list("set-cookie")[1]


def test_a_stream_ends_with_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody signs out: a stream that is open goes on no longer than the session lasts."""
    monkeypatch.setattr(user_sessions, "BROWSER_S", 1)

    async def scenario(url: str) -> list[int]:
        async with httpx2.AsyncClient(base_url=url, timeout=LIMIT_S) as client:
            headers = {"Authorization": "Bearer start"}
            run = (await client.post("/api/runs", json={}, headers=headers)).json()["id"]
            await client.post("/api/login", json={"token": "start"})
            streamed = await client.get(f"/api/runs/{run}/events")
            return [streamed.status_code, (await client.get("/api/status")).status_code]

    assert [200, 401] == asyncio.run(served_here(tmp_path, DESK, scenario))


def test_signing_out_ends_what_a_browser_has_open(service: ServiceProcess) -> None:
    """The id lets nobody in any more, its streams and WebSockets end, and those of others go on."""
    run, cookie, other = service.begin(), sign_in(service), sign_in(service)
    address = f"{service.url.replace('http', 'ws')}/api/runs/{run}/ws"
    socket, kept = (
        connect(address, origin=service.url, additional_headers={"Cookie": each}) for each in (cookie, other)
    )
    headers = {"Cookie": cookie}
    events = httpx2.stream("GET", f"{service.url}/api/runs/{run}/events", headers=headers, timeout=LIMIT_S)
    with socket, kept, events as followed:
        lines = followed.iter_lines()
        assert next(lines)
        answer = replace(service, token="").request("POST", "api/logout", Cookie=cookie, Origin=service.url)
        with pytest.raises(ConnectionClosed, match="signed out"):
            deque(iter(socket.recv, None))
        assert {"", "id", "data"} >= {line.partition(": ")[0] for line in lines}, "it ends in order"
        kept.send("{}")
        while "response" not in str(kept.recv(LIMIT_S)):
            pass

    assert (200, "0") == (answer.status_code, answer.headers["set-cookie"].partition("Max-Age=")[2].partition(";")[0])
    assert [401, 200] == [asked_by(service, each) for each in (cookie, other)]


def test_a_field_that_is_not_known_is_refused(service: ServiceProcess) -> None:
    """Also where a browser signs in."""
    refused = service.request("POST", "api/login", {"token": TOKENS["ada"], "other": 1}, Origin=service.url)

    assert (400, "there is no field `other`") == (refused.status_code, refused.json()["message"])


def test_signing_out_without_a_session_does_nothing(service: ServiceProcess) -> None:
    """Neither a stranger nor the owner of a token has something that would end."""
    stranger = replace(service, token="")

    assert [200, 200] == [each.request("POST", "api/logout").status_code for each in (stranger, service)]
    assert 200 == service.request("GET", "api/status").status_code


@pytest.fixture
def of_users(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service with users, which a test starts again."""
    words = desk_in(tmp_path)
    (tmp_path / "koi.toml").write_text(SETTINGS)
    service = ServiceProcess(tmp_path, words)
    service.start()
    yield service
    service.end()


def test_sessions_last_as_long_as_their_tokens(of_users: ServiceProcess) -> None:
    """Over restarts a browser stays signed in; where the user is gone, or has another token, it is not."""
    cookies = [sign_in(as_user(of_users, name)) for name in ("ada", "bob", "root")]
    place = of_users.folder / ".koi" / "service.sqlite"
    of_users.end()
    of_users.start()
    first = [asked_by(of_users, cookie) for cookie in cookies]
    of_users.end()
    changed = SETTINGS.replace(hash_of(TOKENS["ada"]), hash_of("another"))
    (of_users.folder / "koi.toml").write_text("\n".join(line for line in changed.splitlines() if "bob" not in line))
    of_users.start()
    second = [asked_by(of_users, cookie) for cookie in cookies]
    with closing(sqlite3.connect(place)) as database:
        stored = list(database.execute("select key, token from browser_sessions"))

    assert ([200] * 3, [401, 401, 200]) == (first, second)
    assert [(hash_of(cookies[2].partition("=")[2]), hash_of(TOKENS["root"]))] == stored
    assert 0o600 == os.stat(place).st_mode & 0o777


def test_sessions_are_bounded() -> None:
    """The oldest of too many is over, and so is each after a while; those of another user are not concerned."""
    now, ended = [1000.0], list[str]()
    users = Users("start", {"ada": UserSettings(hash_of("ada"))})
    with closing(Database(Path(":memory:"))) as database:
        sessions = BrowserSessions(database, users, lambda: now[0])
        other, first = sessions.begin("start"), sessions.begin("ada")
        found = sessions.find(first)
        assert found is not None
        with sessions.streaming(found, lambda: ended.append("first")):
            more = [sessions.begin("ada") for _ in range(MAX_BROWSERS)]
        known = [sessions.find(each) is not None for each in (other, first, *more)]
        now[0] += BROWSER_S
        later = {sessions.find(each) for each in (other, *more)}

    assert ([True, False, *[True] * MAX_BROWSERS], ["first"], {None}) == (known, ended, later)


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


@pytest.mark.parametrize(
    ("origin", "host", "is_other"),
    [
        ("https://koi.example.org", "koi.example.org", False),
        ("https://koi.example.org", "127.0.0.1:8421", False),
        ("https://koi.example.org", "koi.example.org:8443", False),
        (OWN, "127.0.0.1:8421", False),
        ("http://koi.example.org:8421", "koi.example.org:8421", False),
        ("http://koi.example.org", "koi.example.org", True),
        ("https://koi.example.org:8443", "koi.example.org", True),
        (OTHER, "127.0.0.1:8421", True),
    ],
)
def test_pages_behind_a_proxy(origin: str, host: str, is_other: bool) -> None:
    """Other ports and schemes of the public URL's name are told from it, also without a port in `Host`."""
    names = ServerNames.of(Address("127.0.0.1", 8421, None, public_url="https://koi.example.org/desk"))

    assert is_other == names.is_other_port(origin, host)
    assert names.is_own_host(host)
    assert names.is_own_origin(origin)


@pytest.mark.parametrize(
    ("path", "status", "location"),
    [
        ("dev/", 307, "../dev"),
        ("desk/dev/", 307, "../dev"),
        ("desk", 307, "/desk/"),
        ("desk/api/health/", 404, None),
        ("api/runs/", 404, None),
        ("api/runs//", 404, None),
        ("static/", 404, None),
    ],
)
def test_a_slash_at_the_end_leads_nowhere_else(
    below_a_path: ServiceProcess, path: str, status: int, location: str | None
) -> None:
    """A page is found below any path that a proxy has taken off; no other request is redirected."""
    answers = [below_a_path.request(method, path, Host="koi.example.org") for method in ("GET", "POST")]

    assert [status, location] == [answers[0].status_code, answers[0].headers.get("location")]
    assert answers[1].status_code in (404, 405)


@pytest.fixture(scope="module")
def below_a_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of the desk that clients reach at `/desk` of another host."""
    folder = tmp_path_factory.mktemp("below")
    service = ServiceProcess(folder, (*desk_in(folder), "--public-url", "https://koi.example.org/desk"))
    service.start()
    yield service
    service.end()


def test_pages_have_the_public_origin(start_service: Callable[..., ServiceProcess]) -> None:
    """A cookie counts for pages of the public URL, not for local ones."""
    service = start_service("--public-url", "https://koi.example.org/desk")
    public = {"Host": "koi.example.org", "Origin": "https://koi.example.org"}
    signed_in = service.request("POST", "desk/api/login", {"token": service.token}, **public)
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    browser = replace(service, token="")

    local = public | {"Origin": "http://127.0.0.1:8421"}
    statuses = [
        browser.request("POST", "desk/api/runs", {}, Cookie=cookie, **each).status_code for each in (public, local)
    ]
    assert [202, 403] == statuses


def test_a_cookie_is_of_the_public_url(start_service: Callable[..., ServiceProcess]) -> None:
    """Through the proxy it is for its path and for TLS alone; who calls the service here has one for here."""
    service = start_service("--public-url", "https://koi.example.org/desk")
    public = {"Host": "koi.example.org", "Origin": "https://koi.example.org"}
    by_page, by_program, here = (
        service.request("POST", "api/login", {"token": service.token}, **headers).headers["set-cookie"].split("; ")
        for headers in (public, {"Host": "koi.example.org"}, {"Origin": service.url})
    )
    out = service.request("POST", "desk/api/logout", Cookie=by_page[0], **public)

    assert [True, True] == ["Path=/desk" in each and "Secure" in each for each in (by_page, by_program)]
    assert (True, False) == ("Path=/" in here, "Secure" in here)
    assert {"Path=/desk", "Secure", "Max-Age=0"} <= {*out.headers["set-cookie"].split("; ")}
    assert [401, 200] == [asked_by(service, each[0]) for each in (by_page, by_program)]


def test_a_cookie_counts_for_pages_of_its_own_port(service: ServiceProcess) -> None:
    """A browser sends it for those of other ports of the machine, too, which get neither an answer nor a WebSocket."""
    cookie, run = sign_in(service), service.begin()
    address = f"{service.url.replace('http', 'ws')}/api/runs/{run}/ws"
    codes = [asked_by(service, cookie, Origin=origin) for origin in (service.url, OTHER)]
    with connect(address, additional_headers={"Cookie": cookie}, origin=service.url) as opened:
        assert opened.recv(LIMIT_S)
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, additional_headers={"Cookie": cookie}, origin=OTHER)

    assert [200, 403] == codes
    assert 200 == service.request("GET", "api/status", Origin=OTHER).status_code


@pytest.mark.parametrize(
    ("method", "headers", "is_refused"),
    [
        ("GET", {}, False),
        ("GET", {"Sec-Fetch-Site": "same-origin"}, False),
        ("GET", {"Sec-Fetch-Site": "none"}, False),
        ("GET", {"Sec-Fetch-Site": "same-site"}, True),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, True),
        ("GET", {"Origin": "null"}, True),
        ("GET", {"Origin": OTHER}, True),
        ("POST", {}, True),
        ("POST", {"Origin": "null"}, True),
        ("POST", {"Origin": OTHER}, True),
        ("POST", {"Origin": "OWN"}, False),
    ],
)
@pytest.mark.parametrize("path", ["api/runs/0123456789ab/cancel", "api/logout"])
def test_neighbours_do_nothing_by_a_cookie(
    service: ServiceProcess, path: str, method: str, headers: dict[str, str], is_refused: bool
) -> None:
    """What browsers send with a cookie for a page of another port, one without an origin, or a form, is refused."""
    cookie = sign_in(service)
    own = {name: value.replace("OWN", service.url) for name, value in headers.items()}

    assert is_refused == (403 == asked_by(service, cookie, method, path, **own))


def test_a_refused_web_socket_is_no_error_of_the_service(start_service: Callable[..., ServiceProcess]) -> None:
    """Anybody may ask for one, so that the log would be full of it."""
    service = start_service()
    with pytest.raises(InvalidStatus, match="401"):
        connect(f"{service.url.replace('http', 'ws')}/api/runs/x/ws")
    service.end()

    assert "handshake" not in "".join(service.told)


@pytest.mark.parametrize("origin", [None, OTHER, "null"])
def test_a_web_socket_by_a_cookie_has_a_page(service: ServiceProcess, origin: str | None) -> None:
    """A browser says of which page a WebSocket is; a refusal says why, as that of a request does."""
    address = f"{service.url.replace('http', 'ws')}/api/runs/{service.begin()}/ws"
    with pytest.raises(InvalidStatus, match="403") as refused:
        connect(address, additional_headers={"Cookie": sign_in(service)}, origin=origin)
    about = json.loads(refused.value.response.body or b"")

    assert "wrong_origin" == about["code"]
    assert about["message"]
    assert about["help"]


@pytest.mark.parametrize("path", ["api/runs", "api/command", "api/login", "api/logout"])
def test_a_form_of_another_page_does_nothing(service: ServiceProcess, path: str) -> None:
    """What a page can send without being asked, a form with the cookie of its reader, is refused twice over."""
    cookie = sign_in(service)
    known = len(service.get("api/runs")["runs"])
    for headers in ({"Origin": "http://evil.example"}, {}):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            sent = {"Cookie": cookie, "Content-Type": kind, **headers}
            answer = httpx2.post(
                f"{service.url}/{path}", content=b'{"handler": "Editor.start"}', headers=sent, verify=certificates()
            )
            assert answer.status_code in (403, 415), (sent, answer.text)

    assert known == len(service.get("api/runs")["runs"])


def test_a_stranger_sends_no_more_than_a_token(service: ServiceProcess) -> None:
    """What is not known to be of a user is not kept in memory."""
    answer = replace(service, token="").request("POST", "api/login", {"token": "x" * 2_000_000})

    assert (413, "too_large") == (answer.status_code, answer.json()["code"])
