"""A run that works, open to other processes of the same person; almost nothing is done before one of them comes."""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module
from koi_lang.outcome import error_of
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.run import Run
from koi_lang.service.live.addresses import has_sockets, listen, socket_path, sweep
from koi_lang.service.live.followed_run import FollowedRun

if TYPE_CHECKING:
    from koi_lang.service.live import server
else:
    server = lazy_module("koi_lang.service.live.server")

# How long the thread has at the end of a run.
END_S = 2.0


class LiveRun(FollowedRun):
    """A `LivePort`: a run with a socket.

    Attributes:
        sweeps: whether it looks for sockets that killed processes have left.
    """

    sweeps = True

    def follow(self, entry: JournalEntry) -> None:
        """Be told an entry that was written to the journal."""
        if self.feed is not None:
            self.feed.follow(entry)

    @contextmanager
    def serve(self, run: Run, journal: Path) -> Iterator[None]:
        """A context in which the run can be followed, where the system has sockets and the folder takes one."""
        path = socket_path(self.ready.folder, run.id)
        if self.sweeps and has_sockets():
            sweep(self.ready.folder)
        listening = _listening(path)
        if listening is None:
            yield
            return
        self.run, self.journal, self.loop = run, journal, asyncio.get_running_loop()
        stopped, stop = os.pipe()
        thread = threading.Thread(target=self._wait, args=(listening, stopped), daemon=True, name="followers")
        thread.start()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(stop)  # which the thread notices
            thread.join(END_S)
            if not thread.is_alive():
                listening.close()
                os.close(stopped)

    def _wait(self, listening: socket.socket, stopped: int) -> None:
        """Wait in a thread until somebody comes, and load only then what serves them."""
        with selectors.DefaultSelector() as selector:
            selector.register(listening, selectors.EVENT_READ)
            selector.register(stopped, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select()}
        if stopped in ready:
            return
        error = error_of(lambda: server.LiveServer(self, listening, stopped).serve())
        if error is not None:  # a fault of ours is no reason for the run to end
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(
                    self.run.host.log, f"warning: nobody can follow the run any more: {error!r}"
                )


def _listening(path: Path) -> socket.socket | None:
    """A socket at a path; None where there can be none, which is nobody's loss but that of those who would connect."""
    if not has_sockets():
        return None
    try:
        return listen(path)
    except OSError:
        return None


class HostedLiveRun(LiveRun):
    """The run of a hosted session: its service has looked for sockets that were left, once for all sessions."""

    sweeps = False
