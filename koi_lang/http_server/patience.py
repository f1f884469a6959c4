"""Connections that send nothing, or a request byte by byte, to an end in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# How long a client has for the head of a request, and for the rest of one that is refused.
PATIENCE_S = 20.0


class PatientProtocol(H11Protocol):
    """HTTP of a connection that is closed when no request has come for a while.

    Nobody needs to be known to open connections; without this, some hundred of them would be all that there are.
    """

    _given_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin with a connection."""
        super().connection_made(transport)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        """Take what has come; a whole head begins a request."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self._given_up is not None:
            self._given_up.cancel()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self._given_up is not None:
            self._given_up.cancel()
        self._given_up = self.loop.call_later(PATIENCE_S, self._give_up, self.cycle)

    def _give_up(self, cycle: object) -> None:
        """Close the connection, unless a request has begun or a WebSocket has taken it over."""
        if self.cycle is cycle and self.transport.get_protocol() is self:
            self.transport.close()
