"""A provider that writes its answers slowly, in a thread, as people see it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def slow_model(answer: Any, *, pause_s: float, size: int = 4) -> Iterator[tuple[str, threading.Event]]:
    """The base URL of a provider that gives one answer to each request, and what has it hurry.

    Args:
        pause_s: between two pieces.
        size: characters of a piece.
    """
    text, hurry = json.dumps(answer), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for at in range(0, len(text), size):
                self._tell({"delta": {"content": text[at : at + size]}, "finish_reason": None})
                hurry.wait(pause_s)
            self._tell({"delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

        def _tell(self, choice: dict[str, Any]) -> None:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "x"}
            self.wfile.write(f"data: {json.dumps({**chunk, 'choices': [{'index': 0, **choice}]})}\n\n".encode())
            self.wfile.flush()

        def log_message(self, *told: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", hurry
    finally:
        hurry.set()
        server.shutdown()
        server.server_close()
