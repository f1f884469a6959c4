"""A server that keeps everybody waiting."""

from __future__ import annotations

import queue
import socket
import threading

from tests.limits import LIMIT_S


class SilentServer:
    """Accepts requests and never ends an answer; tells when those who asked have gone.

    Attributes:
        asked: how many requests there were.

    Args:
        begins: what it sends at once, again and again where it is to drip.
    """

    def __init__(self, begins: bytes, drips: bool) -> None:
        self.begins, self.drips = begins, drips
        self.asked = 0
        self._accepted: queue.Queue[object] = queue.Queue()
        self.gone = threading.Semaphore(0)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self.socket.accept()
            except OSError:
                return
            self.asked += 1
            self._accepted.put(address)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            try:
                connection.sendall(self.begins)
                connection.settimeout(0.01 if self.drips else LIMIT_S)
                self._wait_for_end(connection)
            except OSError:
                pass
        self.gone.release()

    def _wait_for_end(self, connection: socket.socket) -> None:
        while True:
            try:
                if not connection.recv(1024):
                    return
            except TimeoutError:
                if not self.drips:
                    raise
                connection.sendall(b"1\r\nx\r\n")

    def count(self) -> int:
        """How many requests there were, those included that nobody has accepted yet."""
        with socket.create_connection(self.socket.getsockname()) as last:
            while self._accepted.get(timeout=LIMIT_S) != last.getsockname():
                pass
        self.asked -= 1
        return self.asked

    def have_gone(self, count: int) -> bool:
        """Whether so many of those who asked have closed their connections, in time."""
        return all(self.gone.acquire(timeout=LIMIT_S) for _ in range(count))

    def close(self) -> None:
        """Accept nobody any more."""
        self.socket.close()
