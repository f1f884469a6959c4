"""What `std/http` reaches and what not, against servers on this machine, which it must not reach by itself."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError, SettingsError
from koi_lang.runtime.guards.hosts import Allowed, is_public, require_public
from koi_lang.std.http import request
from tests.running import run_file


class Site(ThreadingHTTPServer):
    """A server of this machine that remembers what it was asked, in `asked`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.asked: list[tuple[str, str, dict[str, str], str]] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])


class Pages(BaseHTTPRequestHandler):
    """What the server answers, by path."""

    server: Site

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers, body))
        getattr(self, self.path.partition("?")[0].strip("/").replace("-", "_") or "page")()

    do_POST = do_GET

    def reply(self, body: bytes, kind: str = "text/plain", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def page(self) -> None:
        page = "<title>Té</title><script>x</script><p>One <b>two</b></p><a href='/more#top'>More</a>"
        self.reply(page.encode(), "text/html; charset=utf-8")

    def value(self) -> None:
        self.reply(b'{"n": 1}', "application/json")

    def missing(self) -> None:
        self.reply(b"no", status=404)

    def large(self) -> None:
        self.reply(b"x" * 5000)

    def packed(self) -> None:
        self.reply(gzip.compress(b"packed"), content_encoding="gzip")

    def bomb(self) -> None:
        self.reply(gzip.compress(b"x" * 50_000_000, 1), content_encoding="gzip")

    def broken(self) -> None:
        self.reply(zlib.compress(b"x" * 100)[:-20] + b"?" * 20, content_encoding="deflate")

    def brotli(self) -> None:
        self.reply(b"x", content_encoding="br")

    def odd(self) -> None:
        self.reply(b"x-99", "text/plain; charset=punycode")

    def image(self) -> None:
        self.reply(b"\x89PNG\xff", "image/png")

    def slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(50):
            time.sleep(0.02)
            self.wfile.write(b"x")
            self.wfile.flush()

    def to_inside(self) -> None:
        self.reply(b"", status=302, location=f"http://localhost:{self.server.port}/value")

    def to_value(self) -> None:
        self.reply(b"", status=302, location="/value")

    def to_itself(self) -> None:
        self.reply(b"", status=302, location="/to-itself")

    def to_file(self) -> None:
        self.reply(b"", status=302, location="file:///etc/passwd")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def handle_one_request(self) -> None:
        """Whoever leaves before the end is no error."""
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that runs while the test does; the test is in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def allowed(site: Site) -> str:
    """The address of the server, which the settings of the folder allow."""
    Path("koi.toml").write_text(f'[http]\nallow = ["127.0.0.1:{site.port}"]\n')
    return f"http://127.0.0.1:{site.port}"


def ask(address: str, **options: Any) -> dict[str, Any]:
    """What a server answers."""
    return asyncio.run(request(address, options))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "2130706433", "127.1", "[::ffff:127.0.0.1]"])
def test_this_machine_is_out_of_reach(site: Site, host: str) -> None:
    """Nothing on this machine is asked by default, however its address is written."""
    with pytest.raises(PermissionDeniedError, match="is no public address"):
        ask(f"http://{host}:{site.port}/value")

    assert site.asked == []


def test_a_name_is_judged_by_its_number(site: Site) -> None:
    """The message says which number a name stands for, and what the person can do."""
    with pytest.raises(PermissionDeniedError) as raised:
        ask(f"http://localhost:{site.port}/value")

    assert str(raised.value).startswith(("`localhost` is 127.0.0.1, which", "`localhost` is ::1, which"))
    assert raised.value.help == (
        f'The person can allow it in `koi.toml`: `[http]` and `allow = ["localhost:{site.port}"]`.'
    )


def test_an_allowed_host_is_reached(site: Site, allowed: str) -> None:
    """What `koi.toml` allows is asked; another name or port of the same machine is not."""
    answer = ask(f"{allowed}/value")

    assert (answer["status"], answer["ok"], answer["type"], answer["text"]) == (
        200,
        True,
        "application/json",
        '{"n": 1}',
    )
    for other in (
        f"http://localhost:{site.port}/",
        f"http://127.0.0.1:{site.port + 1}/",
        f"http://127.0.0.2:{site.port}/",
    ):
        with pytest.raises(PermissionDeniedError):
            ask(other)


def test_a_redirect_is_judged_like_an_address(site: Site, allowed: str) -> None:
    """A redirect within what is allowed is followed; one that leads elsewhere is not."""
    assert ask(f"{allowed}/to-value")["url"] == f"{allowed}/value"
    with pytest.raises(PermissionDeniedError):
        ask(f"{allowed}/to-inside")
    assert [path for _, path, _, _ in site.asked] == ["/to-value", "/value", "/to-inside"]


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("/large", {"size": 4999}, "answers with more than 4,999 bytes"),
        ("/bomb", {}, "answers with more than 1,000,000 bytes"),
        ("/slow", {"timeout": 0.1}, "did not answer within 0.1 s"),
        ("/broken", {}, "cannot be unpacked"),
        ("/brotli", {}, "packed with `br`"),
        ("/image", {}, "answers with `image/png`, which is no text"),
        ("/to-itself", {}, "leads on more than 5 times"),
        ("/to-file", {}, "file"),
    ],
)
def test_an_answer_has_limits(allowed: str, path: str, options: dict[str, Any], message: str) -> None:
    """Answers that are too large, too slow, no text, or lead nowhere are refused in words of our own."""
    with pytest.raises(AgentError, match=message):
        ask(allowed + path, **options)


def test_an_answer_is_unpacked(site: Site, allowed: str) -> None:
    """What a server sends packed is text for the program; an error status is an answer, too."""
    assert ask(f"{allowed}/packed")["text"] == "packed"
    assert (ask(f"{allowed}/missing")["status"], ask(f"{allowed}/missing")["ok"]) == (404, False)


def test_a_body_is_sent(site: Site, allowed: str) -> None:
    """Method, headers and body arrive as they were given; the host is the one of the address."""
    ask(f"{allowed}/value", method="post", body="é", headers={"X-Key": "k"})
    ((method, path, headers, body),) = site.asked

    assert (method, path, body, headers["x-key"], headers["host"]) == ("POST", "/value", "é", "k", allowed[7:])


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("ftp://example.org/", {}),
        ("file:///etc/passwd", {}),
        ("example.org", {}),
        ("http://", {}),
        ("http://a\n.org/", {}),
        ("http://[::1/", {}),
        ("http://user:secret@example.org/", {}),
        ("https://example.org/", {"method": "TRACE"}),
        ("https://example.org/", {"body": "x"}),
        ("https://example.org/", {"method": "POST", "body": {"a": 1}}),
        ("https://example.org/", {"headers": {"Host": "localhost"}}),
        ("https://example.org/", {"headers": {"a": 1}}),
        ("https://example.org/", {"timeout": 1000}),
        ("https://example.org/", {"size": -1}),
        ("https://example.org/", {"allow": ["localhost"]}),
    ],
)
def test_what_is_no_request_is_refused(address: str, options: dict[str, Any]) -> None:
    """Nothing is looked up or sent for an address or option that cannot be meant."""
    with pytest.raises(AgentError):
        ask(address, **options)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        *((number, True) for number in ("8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808")),
        *((number, False) for number in ("10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1")),
        *(
            (number, False)
            for number in ("0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "fe80::1", "fd00::1", "fec0::1", "ff02::1")
        ),
        *((number, False) for number in ("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "::ffff:0:127.0.0.1")),
    ],
)
def test_public_numbers(number: str, expected: bool) -> None:
    """Private, local, shared and reserved numbers are not public, also inside of numbers that carry them."""
    assert is_public(ipaddress.ip_address(number)) == expected


def test_one_number_that_is_not_public_is_enough() -> None:
    """A name that stands for a public and a private number is refused, whichever comes first."""
    numbers = [ipaddress.ip_address("8.8.8.8"), ipaddress.ip_address("10.0.0.1")]

    for order in (numbers, numbers[::-1]):
        with pytest.raises(PermissionDeniedError, match=r"`both.example` is 10.0.0.1, which is no public address"):
            require_public("both.example", 80, order, Allowed())
    require_public("both.example", 80, numbers, Allowed.of(["10.0.0.0/8"]))
    require_public("Both.Example.", 80, numbers, Allowed.of(["both.example"]))


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "http://localhost", "localhost:http", ":80", ""])
def test_settings_that_allow_nothing_are_told(entry: str) -> None:
    """An entry of `[http] allow` that names neither a host nor a network is an error of the settings."""
    with pytest.raises(SettingsError, match=r"`koi.toml`"):
        Allowed.of([entry])


def test_a_broken_setting_is_told(site: Site) -> None:
    """A list that is none stops the request with the file that it stands in."""
    Path("koi.toml").write_text('[http]\nallow = "localhost"\n')

    with pytest.raises(SettingsError, match=r"`allow` in `\[http\]` of `koi.toml` is no list"):
        ask(f"http://localhost:{site.port}/")


def test_the_skills_read_pages_and_send_values(site: Site, allowed: str, tmp_path: Path) -> None:
    """`fetchPage` gives what people read, `fetchJson` and `postJson` values; an error status is an error there."""
    path = tmp_path / "program.koi"
    path.write_text(
        f"""
        import "std/http"
        role R {{ can execute }}
        agent A : R {{ on go(args: Json) {{
          console.log(await fetchPage("{allowed}/"))
          console.log(await fetchText("{allowed}/packed"), await fetchJson("{allowed}/value"))
          console.log(await postJson("{allowed}/value", [1]))
          console.log((await httpRequest("{allowed}/missing")).status)
          for (const attempt of [() => fetchText("{allowed}/missing"), () => fetchJson("{allowed}/packed")]) {{
            try {{ await attempt() }} catch (e) {{ console.log(e.message) }}
          }}
        }} }}
        run A.go({{}})
        """
    )
    outcome = run_file(path, tmp_path)

    assert "\n".join(outcome.printed).replace(allowed, "SITE").split("\n") == [
        *("{", "  url: 'SITE/',", "  title: 'Té',", "  text: 'One two\\nMore',"),
        *("  links: [ { url: 'SITE/more', text: 'More' } ]", "}"),
        *("packed { n: 1 }", "{ n: 1 }", "404", "`SITE/missing` answered with the status 404"),
        "`SITE/packed` does not answer with JSON: Unexpected token 'p', \"packed\" is not valid JSON",
    ]


def test_errors_are_of_koi() -> None:
    """A host that does not exist is told in our words, not in those of a library."""
    with pytest.raises(AgentError, match=r"there is no host `a..b`"):
        ask("http://a..b/")


@pytest.mark.parametrize("value", ["topsecret\n", "topsecret\r\nx: y", " topsecret", "töpsecret"])
def test_a_header_that_cannot_be_sent_is_not_shown(allowed: str, value: str) -> None:
    """A key that was read with its line break is refused by the name of its header, never with its value."""
    with pytest.raises(AgentError) as failure:
        ask(f"{allowed}/value", headers={"x-api-key": value})

    assert failure.value.message == "the header `x-api-key` cannot be sent as it is"


def test_an_encoding_that_is_none_of_text(allowed: str) -> None:
    """A server that names an encoding which fails in a way of its own has answered with no text."""
    with pytest.raises(AgentError, match="which is no text"):
        ask(f"{allowed}/odd")
