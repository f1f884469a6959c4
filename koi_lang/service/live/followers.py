"""The followers of a run, and how the run is ended for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.run import Run
from koi_lang.sessions.client_host import Client
from koi_lang.sessions.errors import RunAbortedError
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.shared_host import SharedHost

if TYPE_CHECKING:
    from koi_lang.service.feed import Feed
    from koi_lang.sessions.session import Session


class Followers:
    """The followers of a run, and the parts of the run that they use.

    Args:
        board: where its questions are found.
        shared: whose questions they are, where somebody may answer at a terminal, too; None for a session.
        session: whose run it is; None for one that no client began.

    Attributes:
        feed: what followers are told; None before there is one.
        scope: ends the run although its code computes, where that is no session.
        is_aborted: whether somebody has ended it.
    """

    run: Run
    journal: Path
    loop: asyncio.AbstractEventLoop

    def __init__(
        self, ready: Prepared, board: Client, shared: SharedHost | None = None, session: Session | None = None
    ) -> None:
        self.ready = ready
        self.board = board
        self.shared = shared
        self.session = session
        self.feed: Feed | None = None
        self.scope = CancelScope()
        self.is_aborted = False

    def abort(self) -> bool:
        """End the current work as soon as it waits; returns whether there is any."""
        if self.session is not None:
            call = self.session.current_call
            if call is not None:
                call.cancel()
            return call is not None
        self.is_aborted = True
        self.run.stop(RunAbortedError())
        return True

    def interrupt(self) -> None:
        """The same although its code computes and the event loop stands still. Any thread may ask for it."""
        if self.session is not None:
            self.session.interrupt(0)
        else:
            self.is_aborted = True
            self.scope.cancel()

    def require_not_aborted(self) -> None:
        """Raise RunAbortedError where somebody has ended it."""
        if self.is_aborted:
            raise RunAbortedError
