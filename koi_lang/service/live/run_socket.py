"""The socket of a run, for other processes of the same person; almost nothing is done before one of them comes."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from koi_lang.errors import error_of
from koi_lang.lazy import lazy_module
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.run import Run
from koi_lang.service.live.addresses import has_sockets, listen, socket_path, sweep
from koi_lang.service.live.followers import Followers

if TYPE_CHECKING:
    from koi_lang.service.live import server
    from koi_lang.sessions.session import Session
else:
    server = lazy_module("koi_lang.service.live.server")

# How long the thread has at the end of a run.
END_S = 2.0
# After how long the event loop waits again for followers that have gone, or could not be taken.
PAUSE_S = 0.1
# After how long the run of a hosted session gets its socket: its first line need not wait for it.
OPEN_AFTER_S = 0.05


class RunSocket(Followers):
    """A `LivePort`: the socket of a run.

    Attributes:
        is_hosted: whether a service has the run, so that a thread ends with its last follower.
    """

    is_hosted = False
    _listening: socket.socket | None = None
    _thread: FollowerThread | None = None

    @classmethod
    def of_session(cls, session: Session) -> Self:
        """The socket of a session's run."""
        return cls(session.ready, session.client, session=session)

    def follow(self, entry: JournalEntry) -> None:
        """Be told an entry that was written to the journal."""
        if self.feed is not None:
            self.feed.follow(entry)

    @contextmanager
    def serve(self, run: Run, journal: Path) -> Iterator[None]:
        """A context in which the run can be followed, where the system has sockets and the folder takes one."""
        self.run, self.journal = run, journal
        self.loop = asyncio.get_running_loop()
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Open the socket, and remove those that killed processes have left."""
        sweep(self.ready.folder)
        self._open()

    def _open(self) -> None:
        if has_sockets():
            with suppress(OSError):
                self._listening = listen(socket_path(self.ready.folder, self.run.id))
        if self._listening is not None:
            self.wait_for_followers(self._listening)

    def end(self) -> None:
        """Close the socket, and send followers away."""
        if self._listening is None:
            return
        socket_path(self.ready.folder, self.run.id).unlink(missing_ok=True)
        if self._thread is None or self._thread.end():
            self._listening.close()
        self._listening = self._thread = None

    def wait_for_followers(self, listening: socket.socket) -> None:
        """Wait for followers in a thread of the run: its code may compute for long."""
        self._thread = FollowerThread(listening, self._wait)

    def _wait(self, listening: socket.socket, stopped: int) -> None:
        """Wait for the first client, and load the server only then."""
        with selectors.DefaultSelector() as selector:
            selector.register(listening, selectors.EVENT_READ)
            selector.register(stopped, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select()}
        if stopped not in ready:
            self.serve_followers(listening, stopped)

    def serve_followers(self, listening: socket.socket, stopped: int) -> None:
        """Serve clients in a thread."""
        error = error_of(lambda: server.LiveServer(self, listening, stopped).serve(until_nobody=self.is_hosted))
        if error is not None:  # a fault of ours is no reason for the run to end
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(
                    self.run.host.log, f"warning: nobody can follow the run any more: {error!r}"
                )


class FollowerThread:
    """A thread at the socket of a run.

    Args:
        work: is done in it, until the descriptor that it is given can be read.
    """

    def __init__(self, listening: socket.socket, work: Callable[[socket.socket, int], None]) -> None:
        self._stopped, self._stop = os.pipe()

        def serve() -> None:
            if hasattr(signal, "pthread_sigmask"):  # signals of a process wake whichever thread the system chooses
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            work(listening, self._stopped)

        self._thread = threading.Thread(target=serve, daemon=True, name="followers")
        self._thread.start()

    def end(self) -> bool:
        """Have it end; gives whether it has within two seconds."""
        os.close(self._stop)  # which the thread notices
        self._thread.join(END_S)
        if self._thread.is_alive():
            return False
        os.close(self._stopped)
        return True


class HostedRunSocket(RunSocket):
    """The socket of a hosted session's run, at which the event loop of the service waits, so that it costs no thread.

    A thread serves those who come until the last one has gone.
    """

    is_hosted = True
    _opening: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Open the socket soon; the service has removed what killed processes have left."""
        self._opening = self.loop.call_later(OPEN_AFTER_S, self._open)

    def wait_for_followers(self, listening: socket.socket) -> None:
        """Have the event loop wait for followers."""

        def take_over() -> None:
            self.loop.remove_reader(listening)
            try:
                self._thread = FollowerThread(listening, self.serve_followers)
            except OSError:  # no more files can be opened now
                self.loop.call_later(PAUSE_S, self._wait_again, listening)

        self.loop.add_reader(listening, take_over)

    def end(self) -> None:
        """Close the socket, and send followers away."""
        if self._opening is not None:
            self._opening.cancel()
        if self._listening is not None:
            self.loop.remove_reader(self._listening)
        super().end()

    def serve_followers(self, listening: socket.socket, stopped: int) -> None:
        """Serve clients in a thread, until the last one has gone."""
        super().serve_followers(listening, stopped)
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self.loop.call_later, PAUSE_S, self._wait_again, listening)

    def _wait_again(self, listening: socket.socket) -> None:
        """Wait for followers again, unless the run has ended meanwhile."""
        if self._listening is not None and (self._thread is None or self._thread.end()):
            self._thread = None
            self.wait_for_followers(listening)
