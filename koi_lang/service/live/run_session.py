"""A run that no client began, as a session that is looked at and steered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.replay.location import Location
from koi_lang.runtime.run import Run
from koi_lang.sessions.factory import SessionFactory
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.session import Session

if TYPE_CHECKING:
    from koi_lang.service.live.followed_run import FollowedRun

RUN = "run"


class RunSession(Session):
    """The one call that such a run consists of is under way until it ends."""

    def __init__(self, live: FollowedRun) -> None:
        super().__init__(SessionFactory(live.ready, lambda line: None).served_config(), _ignore, _go_over)
        self._followed, self.journal = live, live.journal
        self.client = live.board
        self._call = HeldCall(RUN, RUN, Location(label=RUN))
        self.statistics.usage = summarise(live.journal).totals

    @property
    def is_open(self) -> bool:
        """Whether it has a run."""
        return True

    @property
    def run(self) -> Run:
        """The run."""
        return self._followed.run

    @property
    def current_call(self) -> HeldCall | None:
        """What is under way."""
        return self._call


def _ignore(message: Any) -> None:
    """Nobody has to be told: whoever follows the run is."""


async def _go_over(session: Any, history: Any) -> None:
    """Nothing goes on here."""
