"""The thread that reads and writes the sockets of a run's followers, also while the program computes."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from koi_lang.rpc.dispatcher import refusal
from koi_lang.rpc.framing import message_in
from koi_lang.service.feed import UNREAD
from koi_lang.service.live.addresses import is_descendant, is_own_peer, peer_of
from koi_lang.service.live.connection import MAX_COMMANDS, LiveConnection
from koi_lang.service.live.desk import LiveDesk, encode
from koi_lang.sessions.errors import SessionError

if TYPE_CHECKING:
    from koi_lang.service.live.followers import Followers

MAX_CLIENTS = 64
# What a reader who is slow has at the end of a run.
END_S = 1.0
# How long the event loop has before code that computes is taken to keep it from ending the run, and how often that is
# looked at.
PATIENCE_S, TICK_S = 0.5, 0.1
OWN = "a command of the run itself may not follow it"
MANY = f"{MAX_CLIENTS} others follow the run already"
ENDED = "the run has ended"


class LiveServer:
    """The clients that follow a run.

    Args:
        listening: takes no connection after the end.
        stopped: can be read when the run is over.
    """

    def __init__(self, live: Followers, listening: socket.socket, stopped: int) -> None:
        self._live = live
        self._listening = listening
        self._stopped = stopped
        self._selector = selectors.DefaultSelector()
        self._connections: dict[socket.socket, LiveConnection] = {}
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._woken, False)
        self._is_woken = False
        self._desk = LiveDesk(live)

    def wake(self) -> None:
        """Have the thread look at changes; safe to call from any thread."""
        if not self._is_woken:
            self._is_woken = True
            with suppress(OSError):  # it is over, or will wake up anyway
                os.write(self._wakes, b"!")

    def serve(self, *, until_nobody: bool = False) -> None:
        """Serve until the run is over.

        Args:
            until_nobody: whether to end as well when the last follower has gone.
        """
        for each in (self._listening, self._stopped, self._woken):
            self._selector.register(each, selectors.EVENT_READ)
        self._desk.begin()
        try:
            while self._turn():
                self._desk.look_after_loop()
                if until_nobody and not self._connections:
                    break
            self._say_goodbye()
        finally:
            self._desk.end()
            for connection in list(self._connections.values()):
                self._drop(connection)
            self._selector.close()
            self._is_woken = True  # nobody writes there any more
            os.close(self._woken)
            os.close(self._wakes)

    def _turn(self) -> bool:
        """Do the work that is possible now; returns whether the run goes on."""
        ready = self._selector.select(TICK_S if self._desk.is_urgent else None)
        known = {key.fileobj: mask for key, mask in ready}
        if self._stopped in known:
            return False
        if self._woken in known:
            os.read(self._woken, 1 << 10)
            # Not before: who wakes it in between would have the byte taken away, and nobody would wake it any more.
            self._is_woken = False
        if self._listening in known:
            self._take_connection()
        for each, mask in known.items():
            connection = self._connections.get(each)  # type: ignore[call-overload]
            if connection is not None and mask & selectors.EVENT_READ:
                self._read(connection)
        for connection in list(self._connections.values()):
            self._look_at(connection)
        return True

    # ------------------------------------------------------------ coming and going

    def _take_connection(self) -> None:
        try:
            taken, _ = self._listening.accept()
        except OSError:
            return
        refused = self._reason_to_refuse(taken)
        connection = LiveConnection(taken, self.wake)
        if refused is None:
            self._connections[taken] = connection
            connection.reply(encode(self._desk.greeting()))
            return
        connection.end(encode({"type": "cut_off", "reason": refused}))
        connection.write()
        connection.close()

    def _reason_to_refuse(self, taken: socket.socket) -> str | None:
        """The reason to refuse a client: processes of its agents must not answer for the person."""
        peer = peer_of(taken)
        if not is_own_peer(taken):
            return "the run is of another user"
        if peer is not None and is_descendant(peer[0]):
            return OWN
        return MANY if len(self._connections) >= MAX_CLIENTS else None

    def _drop(self, connection: LiveConnection) -> None:
        if self._connections.pop(connection.socket, None) is None:
            return
        self._watch(connection, 0)
        self._desk.leave(connection)
        connection.close()

    def _look_at(self, connection: LiveConnection) -> None:
        """Write waiting data to a client, and register the next interest with the selector."""
        if connection.is_cut_off and not connection.is_over:
            self._desk.leave(connection)
            connection.end(encode({"type": "cut_off", "reason": UNREAD}))
        is_there, is_silent = connection.write(), connection.is_over or connection.is_leaving
        if not is_there or (is_silent and not connection.commands and not connection.has_more):
            self._drop(connection)
            return
        wanted = selectors.EVENT_WRITE if connection.has_more else 0
        if connection.commands < MAX_COMMANDS and not is_silent:
            wanted |= selectors.EVENT_READ
        self._watch(connection, wanted)

    def _watch(self, connection: LiveConnection, wanted: int) -> None:
        is_known = connection.socket in self._selector.get_map()
        if not wanted and is_known:
            self._selector.unregister(connection.socket)
        elif wanted and is_known:
            self._selector.modify(connection.socket, wanted)
        elif wanted:
            self._selector.register(connection.socket, wanted)

    def _say_goodbye(self) -> None:
        """Tell everybody the rest, for a while."""
        until = monotonic() + END_S
        while monotonic() < until and any(each.has_more for each in self._connections.values()):
            for connection in list(self._connections.values()):
                if not connection.write():
                    self._drop(connection)
            busy = [each for each in self._connections.values() if each.has_more]
            if busy:
                self._selector.select(TICK_S)

    # ------------------------------------------------------------ what is said

    def _read(self, connection: LiveConnection) -> None:
        piece = connection.read()
        if piece is None:
            return
        for line in connection.lines.feed(piece) if piece else connection.lines.end():
            self._hear(connection, line)
        if not piece:
            connection.is_leaving = True
            self._desk.leave(connection)

    def _hear(self, connection: LiveConnection, line: bytes | None) -> None:
        message: Mapping[str, Any] = {}
        try:
            message = message_in(line)
            if message.get("type") == "follow":
                self._desk.begin_to_follow(connection, message)
            else:
                self._desk.take(connection, message, self.wake)
        except SessionError as error:
            connection.reply(encode(refusal(error, message)))
