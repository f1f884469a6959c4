"""The configuration of a session: a program, its runs, and the choice of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from koi_lang.errors import JournalError
from koi_lang.events import Detail
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.concurrency.cancellation import GRACE_S
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.run import Run
from koi_lang.sessions.continuation import LivePort

ExtensionCommand = Callable[[Mapping[str, Any]], Any]


class SessionModel(Protocol):
    """The model that a session uses."""

    def name(self) -> str:
        """The chosen `provider/model`; empty where the program decides."""

    async def change(self, model: str) -> None:
        """Use another one from now on. Raises KoiError, and then nothing has changed."""

    def effort(self) -> str:
        """How much models are asked to think; empty where the program decides."""

    def change_effort(self, effort: str) -> None:
        """Have models think so much from now on; empty leaves it to the program."""

    async def available(self, refresh: bool) -> list[dict[str, Any]]:
        """The models of the connected providers."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that has not started yet.

    Attributes:
        journal: where it is recorded; None where it is not.
        commands: what its extensions add to the protocol, by name.
        live: lets other processes follow it; None where none may.
        stop_recording: has its journal end where it is, as if the process had been killed.
    """

    run: Run
    journal: Path | None = None
    commands: Mapping[str, ExtensionCommand] = field(default_factory=dict)
    live: LivePort | None = None
    stop_recording: Callable[[], None] = lambda: None


OpenRun = Callable[[Host, Sequence[Consumer]], AbstractContextManager[PreparedRun]]
# The id of a recorded session, the entry to go back to, None for its end, and whether it may be one of somebody else.
Reopen = Callable[[str, int | None, bool], OpenRun]


def no_recordings(run: str, at: int | None, trusted: bool) -> OpenRun:
    """Raise JournalError: nothing is known of earlier sessions."""
    raise JournalError(f"there is no session `{run}` to go on with")


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The served program.

    Attributes:
        agents: of the program, in the order of their declaration.
        open_run: makes a run that tells some consumers what happens.
        explain: an error as a person gets it.
        limit: the time that a call may take.
        clean_up_s: how long a call that is ended from outside may clean up.
        detail: how much of an event is told.
        reopen: finds what opens a run that goes on with a recorded session, in its journal, or from an entry of it, in
            a journal of its own. Raises KoiError.
    """

    module: ModuleType
    agents: Sequence[type[Agent]]
    open_run: OpenRun
    choice: SessionModel
    explain: Callable[[BaseException], str]
    limit: Budget
    detail: Detail = "verbose"
    reopen: Reopen = no_recordings
    clean_up_s: float = GRACE_S

    @property
    def name(self) -> str:
        """The name of the program's file."""
        return Path(str(self.module.__file__)).name
