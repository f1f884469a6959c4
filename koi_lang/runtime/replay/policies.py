"""Replay policies: the use of a record by a run, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Mode = Literal["resume", "branch", "rerun", "replay", "upgrade", "upgrade_branch"]
# How a step differs from the record.
Change = Literal["new", "other", "gone"]


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """The use of a run's own record, or of that of its parent.

    Attributes:
        on_missing: what becomes of something that was not recorded: it is done; it is done, and what was recorded of
            later steps counts no more; or it is refused.
        on_different: what becomes of something that was recorded with other inputs: the run stops; it is done, and
            what was recorded of later steps counts no more; or the recorded outcome is taken.
        has_outside: whether anything new comes from outside: answers of models, effects, what a person says. Without
            that, outcomes are taken as they were written down, also where a secret was taken out of them.
        is_same_run: whether what was paid for, and what was under way when the process was killed, counts for this run.
        reopens_limits: which limits are tried again where a request was refused because of them.
        is_branch: whether the run has a journal of its own, and leaves behind what it does not do of the other one.
        shows_again: whether the person is shown again what the other run has shown, since this is a whole run for them.
        reads_files_anew: whether what files tell agents is looked up again, and not taken from the record.
        tells_models_apart: whether another model, which is to answer now, is something different.
        is_of_past: whether what was recorded is over and done with, though the program is another one by now: models
            are asked nothing again because they are told something else, and calls that had ended do nothing new.
    """

    on_missing: Literal["do", "diverge", "refuse"]
    on_different: Literal["stop", "diverge", "take_recorded"]
    has_outside: bool
    is_same_run: bool
    reopens_limits: Literal["none", "of_run", "all"]
    is_branch: bool = False
    shows_again: bool = False
    reads_files_anew: bool = False
    tells_models_apart: bool = False
    is_of_past: bool = False


LIVE = ReplayPolicy("do", "take_recorded", has_outside=True, is_same_run=False, reopens_limits="none")
RESUME = ReplayPolicy("do", "stop", has_outside=True, is_same_run=True, reopens_limits="of_run")
BRANCH = ReplayPolicy("diverge", "diverge", has_outside=True, is_same_run=False, reopens_limits="all", is_branch=True)
RERUN = replace(BRANCH, shows_again=True, reads_files_anew=True, tells_models_apart=True)
REPLAY = ReplayPolicy(
    "refuse", "take_recorded", has_outside=False, is_same_run=False, reopens_limits="none", shows_again=True
)
UPGRADE = replace(RESUME, is_of_past=True)
UPGRADE_BRANCH = replace(UPGRADE, is_same_run=False, is_branch=True)
POLICIES: Mapping[Mode, ReplayPolicy] = {
    "resume": RESUME,
    "branch": BRANCH,
    "rerun": RERUN,
    "replay": REPLAY,
    "upgrade": UPGRADE,
    "upgrade_branch": UPGRADE_BRANCH,
}
