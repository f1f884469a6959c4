"""A cable between a browser and a service that a test can cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

PIECE = 1 << 16


class Cable:
    """Listens at a port of its own and passes on what comes, until it is cut.

    Attributes:
        url: by which the service is reached through it.
    """

    def __init__(self, to: str) -> None:
        host, _, port = to.removeprefix("http://").rpartition(":")
        self._to, self._whole = (host, int(port)), threading.Event()
        self._whole.set()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def cut(self) -> None:
        """Break all connections; new ones are closed at once."""
        self._whole.clear()
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Have new connections reach the service again."""
        self._whole.set()

    def remove(self) -> None:
        """Cut it for ever."""
        self.cut()
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._whole.is_set():
                    near.close()
                    continue
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._to)
        except OSError:  # the service is not there at the moment
            near.close()
            return
        self._open |= {near, far}
        back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
        back.start()
        self._pass(near, far)
        back.join()
        self._open -= {near, far}
        near.close()
        far.close()

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while piece := here.recv(PIECE):
                there.sendall(piece)
        with suppress(OSError):
            there.shutdown(socket.SHUT_WR)
