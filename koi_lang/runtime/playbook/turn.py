"""A turn of a playbook as a record: one answer of its model, and the results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from koi_lang.errors import KoiError, ProviderError
from koi_lang.llm.messages import Request, Thoughts
from koi_lang.runtime.playbook.action_parsing import Action
from koi_lang.runtime.playbook.prompting import Feedback

# How a turn ended: the playbook returned; an action failed; the answer broke off; the rest of it could not be read; or
# everything that it asked for was carried out.
TurnEnd = Literal["return", "failure", "cut", "unreadable", "end"]


@dataclass(frozen=True, slots=True)
class TurnAction:
    """An action of an answer, and its result.

    Attributes:
        feedback: what the model is told of it, as it was when the action had ended: later ones may change its result.
        value: its result; None where it failed.
        error: why it was not carried out.
    """

    action: Action
    feedback: Feedback
    value: Any = None
    error: KoiError | None = None


@dataclass(slots=True)
class Turn:
    """One answer of a model and its results.

    Attributes:
        number: counts from 1 within the call.
        pieces: of the answer, as the model wrote it.
        actions: what it asked for, in its order; not what loops and branches have carried out.
        has_failed: whether one of them has failed; what follows it is not carried out.
        has_returned: whether the playbook has returned.
        problem: why the rest was not read, for the model.
        form: what is wrong with the form of the rest, as in `ReplyError`.
        advice: what the person may do about that; empty for nothing in particular.
        unread: which of the JSON values in the answer that was, counted from 1; 0 where it was none of them.
        values: which of the JSON values in the answer each action that was read stands in, counted from 1.
        thoughts: of the model, as in `Message`.
        error: what cut the answer.
        is_endless: whether it repeated itself, and was not read to its end.
        tokens: of request and answer together, as the provider counted; 0 where it did not.
    """

    number: int
    request: Request
    pieces: list[str] = field(default_factory=list)
    actions: list[TurnAction] = field(default_factory=list)
    has_failed: bool = False
    has_returned: bool = False
    problem: str = ""
    form: str = ""
    advice: str = ""
    unread: int = 0
    values: list[int] = field(default_factory=list)
    thoughts: Thoughts | None = None
    error: ProviderError | None = None
    is_endless: bool = False
    tokens: int = 0

    @property
    def text(self) -> str:
        """The answer as far as it has arrived."""
        return "".join(self.pieces)

    def add(self, done: TurnAction) -> None:
        """Add the result of an action."""
        self.actions.append(done)
        self.has_failed |= done.error is not None

    @property
    def ended_by(self) -> TurnEnd:
        """How it ended."""
        if self.has_returned:
            return "return"
        if self.has_failed:
            return "failure"
        if self.error is not None:
            return "cut"
        return "unreadable" if self.problem else "end"
