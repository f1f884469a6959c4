"""The global fetch, against a server on this machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from koi_lang.js.byte_arrays import byte_array
from koi_lang.js.call_helpers import call, get, invoke, iterate
from koi_lang.js.errors import ErrorValue, SyntaxErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.promises import TaskScope, settle


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked; a few paths answer otherwise."""

    def do_GET(self) -> None:
        """Answer a request of any method."""
        if self.path == "/moved":
            self._answer(302, b"", {"Location": "/landed"})
        elif self.path == "/missing":
            self._answer(404, b"nothing here", {})
        elif self.path == "/json":
            self._answer(200, '{"name": "Zoë", "n": 1.0}'.encode(), {"Content-Type": "application/json"})
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen = f"{self.command} {self.path} {self.headers.get('X-Koi')} {self.headers.get('Content-Type')} "
            self._answer(200, seen.encode() + body, {"X-Answer": "yes"})

    do_POST = do_PUT = do_GET

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that echoes."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def ask(address: str, options: Any = None, read: str = "text") -> tuple[Any, Any]:
    """A response and what one of its methods gives."""

    async def program() -> tuple[Any, Any]:
        async with TaskScope():
            response = await settle(call(GLOBALS["fetch"], address, options))
            return response, await settle(invoke(response, read))

    return asyncio.run(program())


def test_a_response_tells_how_it_went(server: str) -> None:
    """Status, address and headers are members; header names have no case."""
    response, body = ask(f"{server}/a")

    assert ["GET /a None None ", True, 200, "OK", f"{server}/a", "yes", None] == [
        body,
        *(get(response, name) for name in ("ok", "status", "statusText", "url")),
        *(invoke(get(response, "headers"), "get", name) for name in ("x-ANSWER", "none")),
    ]


def test_method_headers_and_body_are_sent(server: str) -> None:
    """A text is sent as UTF-8 and says so unless a header says otherwise."""
    plain = ask(server, {"method": "post", "headers": {"X-Koi": "1"}, "body": "é"})[1]
    typed = ask(server, {"method": "PUT", "headers": [["content-type", "application/json"]], "body": "{}"})[1]

    assert [plain, typed] == ["POST / 1 text/plain;charset=UTF-8 é", "PUT / None application/json {}"]


def test_json_is_read_as_the_language_reads_it(server: str) -> None:
    """Numbers are those of JavaScript, text is UTF-8."""
    assert ask(f"{server}/json", read="json")[1] == {"name": "Zoë", "n": 1}


def test_the_bytes_of_an_answer_are_read_and_sent(server: str) -> None:
    """`bytes` and `arrayBuffer` give what came; an array of bytes is a body without a type."""
    sent = ask(server, {"method": "PUT", "body": byte_array(b"a\xffb")}, read="bytes")[1]
    read = ask(f"{server}/missing", read="arrayBuffer")[1]

    assert (b"PUT / None None a\xffb", b"nothing here") == (bytes(sent), bytes(read))


def test_what_is_no_json_is_a_syntax_error(server: str) -> None:
    """The body is not what was asked for."""
    with pytest.raises(SyntaxErrorValue, match="Unexpected token 'o', \"nothing here\""):
        ask(f"{server}/missing", read="json")


def test_an_error_status_is_an_answer(server: str) -> None:
    """`ok` tells it; nothing is thrown."""
    response, body = ask(f"{server}/missing")

    assert [get(response, "ok"), get(response, "status"), body] == [False, 404, "nothing here"]


def test_redirects_are_followed_unless_told_otherwise(server: str) -> None:
    """`manual` gives the redirect itself, `error` refuses it."""
    followed, _ = ask(f"{server}/moved")
    stopped, _ = ask(f"{server}/moved", {"redirect": "manual"})
    with pytest.raises(TypeErrorValue, match="fetch failed"):
        ask(f"{server}/moved", {"redirect": "error"})

    assert [f"{server}/landed", True, 302] == [
        get(followed, "url"), get(followed, "redirected"), get(stopped, "status"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9", "nonsense", "ftp://127.0.0.1/x", "http://[", "http://127.0.0.1:99999"]
)
def test_no_answer_is_a_type_error_with_a_cause(address: str) -> None:
    """The message is the one JavaScript gives; the cause says why."""
    with pytest.raises(TypeErrorValue, match="fetch failed") as failure:
        ask(address)

    assert isinstance(get(failure.value, "cause"), ErrorValue)


def test_a_header_that_cannot_be_sent_is_a_type_error(server: str) -> None:
    """As every request that fails, and not an error of Python."""
    with pytest.raises(TypeErrorValue, match="fetch failed"):
        ask(server, {"headers": {"x-koi": "é"}})


def test_a_get_request_has_no_body(server: str) -> None:
    """Sending one is refused before anything is sent."""
    with pytest.raises(TypeErrorValue, match="cannot have body"):
        ask(server, {"body": "x"})


def test_headers_can_be_listed(server: str) -> None:
    """They come in lower case and sorted."""
    headers = get(ask(f"{server}/json")[0], "headers")

    assert list(iterate(invoke(headers, "keys"))) == ["content-length", "content-type", "date", "server"]
    assert "Response { status: 200, statusText: 'OK'" in inspect(ask(server)[0])
