"""A receiver of webhooks on this machine, as somebody else would write one, and hostile ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Received:
    """What came in: the names of headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The name of the delivery."""
        return self.headers["koi-delivery"]


class Receiver(ThreadingHTTPServer):
    """Answers by path: `/ok`, `/fail`, `/hang`, `/drip`, `/redirect`, `/flood`.

    Attributes:
        received: what came in, in order.
        failing: how many requests to `/fail` are refused.
        is_well: whether `/hang` answers, too.
        flooded: bytes that were sent back by `/flood`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hooks)
        self.received: list[Received] = []
        self.failing, self.flooded = 10**6, 0
        self.is_well = False
        self.over = threading.Event()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def url(self, path: str) -> str:
        """One of its addresses."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def at(self, path: str) -> list[Received]:
        """What came in at one of them."""
        return [each for each in self.received if each.path.startswith(f"/{path}")]


class _Hooks(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(Received(self.path, headers, body))
        with suppress(ConnectionError):
            getattr(self, self.path.partition("?")[0].strip("/"))()

    def answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_length": "0", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def ok(self) -> None:
        self.answer(204)

    def fail(self) -> None:
        self.server.failing -= 1
        self.answer(500 if self.server.failing >= 0 else 200)

    def hang(self) -> None:
        if not self.server.is_well:
            self.server.over.wait()
        self.answer(204)

    def drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.over.wait(0.05):
            self.wfile.write(b"x-more: 1\r\n")

    def redirect(self) -> None:
        self.answer(307, location=self.server.url("ok"))

    def flood(self) -> None:
        self.answer(200, content_length=str(8 << 30))
        piece = b"x" * (1 << 20)
        while self.server.flooded < 8 << 30:
            self.wfile.write(piece)
            self.server.flooded += len(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
