"""The channel of the debuggee to its adapter: one JSON object a line, over a socket that forked processes share."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from typing import Any

from koi_lang.errors import KoiError

PIECE = 1 << 16


class Channel:
    """One end of the channel; its reader owns the received data.

    Of forked processes one at a time reads. Many threads may send.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._begun = b""
        self._sending = threading.Lock()

    def read(self) -> dict[str, Any] | None:
        """The next message; None when the adapter is gone."""
        while b"\n" not in self._begun:
            try:
                piece = self._connection.recv(PIECE)
            except OSError:
                return None
            if not piece:
                return None
            self._begun += piece
        line, _, self._begun = self._begun.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; one to an adapter that is gone is lost, and reading tells that."""
        data = json.dumps(message, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
        with self._sending:
            try:
                self._connection.sendall(data)
            except OSError:
                return

    def tell(self, event: str, **body: Any) -> None:
        """Tell the adapter that something has happened."""
        self.send({"event": event, "body": body})

    def reply(self, request: Mapping[str, Any], body: Any) -> None:
        """Answer a request of the adapter."""
        self.send({"id": request["id"], "body": body})

    def refuse(self, request: Mapping[str, Any], error: Exception) -> None:
        """Answer a request that is not carried out, with the reason."""
        message = error.message if isinstance(error, KoiError) else f"{type(error).__name__}: {error}"
        help = error.help if isinstance(error, KoiError) else None
        self.send({"id": request["id"], "error": message, **({"help": help} if help else {})})
