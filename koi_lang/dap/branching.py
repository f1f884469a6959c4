"""A place in a recorded run, and another result there, to the entries from which a branch goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.dap.trail import Mark, mark_of
from koi_lang.errors import UsageError
from koi_lang.events import ActionOverridden
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import until, with_answer
from koi_lang.runtime.replay.location import Path

# What stands for no other result.
SAME = object()


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """Where a branch begins.

    Attributes:
        at: the last entry that counts.
        goal: the place up to which nothing stops.
        result: of what is done there, instead of what was recorded; `SAME` leaves that as it is to become.
        path: of that.
    """

    at: int
    goal: Mark
    path: Path = ()
    result: Any = SAME

    def as_data(self) -> dict[str, Any]:
        """The plan for another process."""
        given = {} if self.result is SAME else {"result": self.result}
        return {"at": self.at, "goal": self.goal.as_data(), "path": list(self.path), **given}

    def entries(self, recorded: Sequence[JournalEntry]) -> list[JournalEntry]:
        """The valid entries of the run for the branch, with the changed result."""
        if self.result is SAME:
            return until(recorded, self.at)
        chosen = next(entry for entry in recorded if entry.n == self.at)
        kept = until(recorded, self.at)
        if chosen.kind == "done":
            return with_answer(kept, self.at, "result", self.result)
        data = {"intent": chosen.data.get("intent", ""), "decision": "result", "result": self.result}
        return [*kept, replace(chosen, kind=ActionOverridden.type, data=data)]


def branch_plan(data: Mapping[str, Any]) -> BranchPlan:
    """The plan that another process means."""
    return BranchPlan(data["at"], mark_of(data["goal"]), tuple(data["path"]), data.get("result", SAME))


def plan_branch(
    recorded: Sequence[JournalEntry], met: Mapping[int, Mark], here: Mark, result: Any = SAME
) -> BranchPlan:
    """The branch at a place, with another result of the action there, or else of the last one.

    Args:
        recorded: the entries of the run.
        met: the numbers of those that the replay has come to, each with the place it was at then.

    Raises:
        UsageError: nothing was done before the place.
    """
    last = max(met, default=0)
    if here.kind == "action":
        begun = _find(recorded, "begun", here.path)
        return BranchPlan(begun.n, here, here.path, result)
    if result is SAME:
        return BranchPlan(last, here)
    ended = [entry for entry in recorded if entry.kind == "done" and entry.n in met]
    if not ended:
        raise UsageError("nothing was done before this place whose result could be another one")
    begun = _find(recorded, "begun", ended[-1].path)
    if "id" in begun.data:  # an action of a playbook
        return BranchPlan(begun.n, met[begun.n], begun.path, result)
    return BranchPlan(ended[-1].n, met[begun.n], begun.path, result)


def _find(recorded: Sequence[JournalEntry], kind: str, path: Path) -> JournalEntry:
    found = next((entry for entry in recorded if entry.kind == kind and entry.path == path), None)
    if found is None:
        raise UsageError("the recording does not tell what was done here")
    return found
