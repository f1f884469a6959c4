"""A server that answers with what a test gives it: a service of Koi at its worst, or something else entirely."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `breaks` ends the connection in the middle of it, and `holds` keeps it until a command comes."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    breaks: bool = False
    holds: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class StandIn:
    """A server on the loopback; each path has replies, the last of which is given again and again."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    commanded: threading.Event = field(default_factory=threading.Event)

    @property
    def commands(self) -> list[Any]:
        """The commands that runs were sent."""
        return [asked.body for asked in self.asked if asked.path == "/api/command"]

    def reply(self, path: str, *replies: Reply) -> None:
        """Have requests for a path answered."""
        self.replies[path] = list(replies)

    def next(self, path: str) -> Reply:
        """What is answered now."""
        left = self.replies.get(path) or [refused(404, "not_found", f"there is nothing at `{path}`")]
        return left.pop(0) if len(left) > 1 else left[0]


def told(data: Any, status: int = 200) -> Reply:
    """JSON."""
    return Reply(status, json.dumps(data).encode(), {"Content-Type": "application/json"})


def refused(status: int, code: str, message: str, help: str | None = None) -> Reply:
    """A refusal in the words of a service."""
    return told({"code": code, "message": message, "help": help}, status)


def stream(*messages: tuple[str, Any], breaks: bool = False, holds: bool = False) -> Reply:
    """Messages of a run with their ids, and then the end of the connection."""
    body = "".join(f"id: {id}\ndata: {json.dumps(data)}\n\n" for id, data in messages)
    return Reply(200, body.encode(), {"Content-Type": "text/event-stream"}, breaks, holds)


def event(type: str, n: int | None = None, **fields: Any) -> dict[str, Any]:
    """The message of an event."""
    about = {"v": 1, "run": "r1", "path": ["Ada.go#1"], "agent": "Ada", "type": type}
    numbers = {} if n is None else {"n": n}
    return {"type": "event", **numbers, "event": {**about, **({"seq": n, "ts": 1.0} if n else {}), **fields}}


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[StandIn]:
    """A context in which a stand-in answers, over TLS where it has a certificate, with its key in the same file."""
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_json = self.headers.get("Content-Type") == "application/json"
            headers = {name.lower(): value for name, value in self.headers.items()}
            stand_in.asked.append(Asked(self.command, self.path, headers, json.loads(body) if is_json else body))
            path = self.path.partition("?")[0]
            self._answer(stand_in.next(path))
            if path.endswith(("/command", "/cancel")):
                stand_in.commanded.set()

        do_GET = do_POST = do_PUT = do_DELETE = do

        def _answer(self, reply: Reply) -> None:
            if not reply.status:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + (100 if reply.breaks or reply.holds else 0)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = self.close_connection or reply.breaks or reply.holds
            if reply.holds:
                self.wfile.flush()
                stand_in.commanded.wait()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 200

        def handle_error(self, *_: Any) -> None:
            """Nothing: a client that does not trust the certificate breaks off."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    stand_in.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
    try:
        yield stand_in
    finally:
        stand_in.commanded.set()
        server.shutdown()
        server.server_close()
        thread.join()


NO_ANSWER = Reply(0)


def types(messages: Sequence[Any]) -> list[str]:
    """What messages are of, events by their own types."""
    return [message.type if message.event is None else message.event.type for message in messages]
