"""Functions to hooks of a run, and what a run told to what is known when it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.runtime.hooks.additions import Additions
from koi_lang.runtime.hooks.types import Hook, Kind
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest
from koi_lang.runtime.journal.entries import JournalEntry, Redact, entry_in, entry_of, line_of
from koi_lang.runtime.journal.history import History, lasting_entries
from tests.playbook.playing import Played
from tests.running import RecordingHost


def hooks(*functions: Callable[..., Any], kind: Kind = "before_action", timeout_s: float = 5.0) -> Additions:
    """Additions with nothing but hooks of one kind, called as their functions."""
    return Additions(hooks=[Hook(f"test.{function.__name__}", kind, function, timeout_s) for function in functions])


def saying(*answers: Any) -> Callable[[Any], Any]:
    """A hook that says one thing after the other, and then nothing; `seen` is what it was asked about."""
    left = list(answers)

    def say(call: Any) -> Any:
        say.seen.append(call)  # type: ignore[attr-defined]
        return left.pop(0) if left else None

    say.seen = []  # type: ignore[attr-defined]
    return say


@dataclass(slots=True)
class Person(RecordingHost):
    """A host whose person answers what they are asked to allow; `asked` is what they were shown."""

    decisions: list[Approval] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """The next decision."""
        self.asked.append((request.what, request.detail))
        return ApprovalDecision(self.decisions.pop(0))


def entries(played: Played, redact: Redact = str) -> list[JournalEntry]:
    """What a journal would hold of a run."""
    lines = [line_of(entry_of(event, number), redact) for number, event in enumerate(played.events, 1)]
    return [entry for entry in map(entry_in, lines) if entry is not None]


def past_of(played: Played, until: Callable[[JournalEntry], bool] | None = None, redact: Redact = str) -> History:
    """What is known of a run that went on until some entry, the first of its kind included."""
    known = entries(played, redact)
    if until is None:
        return History(lasting_entries(known), "resume")
    end = next(number for number, entry in enumerate(known) if until(entry))
    return History(known[: end + 1], "resume")


def told(played: Played, type: str) -> Sequence[dict[str, Any]]:
    """The data of all events of a type."""
    return [event.fields for event in played.events if event.type == type]
